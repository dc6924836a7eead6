"""However much goes through a client, it takes as much memory: measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_server import KEY, Exchange, FakeServer, give
from shapes import ATTACH, BOX_PATH, EXEC_PATH, command, sandbox
from test_files import CONTENT, STAT, entry

MIB = 2**20
BYTES = 256 * MIB
PEAK_BYTES_MAX = 100 * MIB

PROGRAM = """
import json, os, resource, sys
from libdsec import Client

url, key, sandbox, exec_id, local, what = sys.argv[1:]
with Client(url, key) as client:
    box = client.get(sandbox)
    if what == "upload":
        moved = os.stat(local).st_size
        box.files.upload(local, "/f")
    elif what == "download":
        moved = box.files.download("/f", local + ".back")
    else:
        moved = sum(len(chunk.data) for chunk in box.command(exec_id).stream())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"moved": moved, "peak": peak}))
"""


def download(exchange: Exchange) -> None:
    exchange.begin({"dsec-size-bytes": str(BYTES)})
    for _ in range(BYTES // MIB):
        exchange.chunk(bytes(MIB))
    exchange.end()


def attach(exchange: Exchange) -> None:
    """Keeps to the window: never more than 1 MiB that is not acknowledged."""
    socket = exchange.upgrade()
    sent = acknowledged = 0
    while sent < BYTES:
        socket.output("stdout", sent, bytes(65_536))
        sent += 65_536
        while sent - acknowledged > MIB - 65_536:
            acknowledged = json.loads(socket.receive())["offset"]
    socket.send({"type": "exit", "exec": command()})
    while acknowledged < BYTES:
        acknowledged = json.loads(socket.receive())["offset"]
    socket.close()


@pytest.mark.parametrize("what", ["upload", "download", "stream"])
def test_memory_does_not_grow(server: FakeServer, tmp_path: Path, what: str) -> None:
    local = tmp_path / "local"
    with local.open("wb") as file:
        file.truncate(BYTES)
    server.on("GET", BOX_PATH, give(sandbox()))
    server.on("GET", EXEC_PATH, give(command("running")))
    server.on("PUT", CONTENT, give(entry(sizeBytes=BYTES)))
    server.on("GET", CONTENT, download)
    server.on("GET", STAT, give(entry(sizeBytes=BYTES)))
    server.on("GET", ATTACH, attach)
    told = run(server.url, KEY, sandbox()["id"], command()["id"], str(local), what)
    assert told["moved"] == BYTES
    assert told["peak"] < PEAK_BYTES_MAX


def run(*arguments: str) -> Any:
    program = [sys.executable, "-c", PROGRAM, *arguments]
    root = Path(__file__).parents[1]
    done = subprocess.run(program, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
