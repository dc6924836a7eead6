"""Files: names of any bytes, content of any size, connections that break."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from fake_server import Exchange, FakeServer, HangUp, give, hang_up, refuse
from libdsec import errors
from shapes import BOX_PATH

CONTENT = f"{BOX_PATH}/files/content"
STAT = f"{BOX_PATH}/files/stat"
FILES = f"{BOX_PATH}/files"


def entry(name: str = "f", **more: Any) -> dict[str, Any]:
    numbers = {"mode": 0o644, "uid": 0, "gid": 0, "sizeBytes": 3, "allocatedBytes": 0, "links": 1}
    times = {"mtimeSeconds": 5, "mtimeNanoseconds": 500_000_000}
    return {"name": name, "kind": "file", **numbers, **times, **more}


def serve(data: bytes, piece: int | None = None) -> Any:
    """Gives `data` from the offset asked for; breaks off after `piece` bytes, if given."""

    def answer(exchange: Exchange) -> None:
        query = exchange.request.query
        offset = int(query["offset"][0])
        rest = data[offset : offset + int(query.get("lengthBytes", [len(data)])[0])]
        headers = {"dsec-size-bytes": str(len(data)), "dsec-offset": str(offset)}
        if piece is None:
            return exchange.bytes(rest, 200, headers)
        exchange.begin(headers)
        exchange.chunk(rest[:piece])
        raise HangUp

    return answer


def test_a_file_is_read_over_lost_connections(box: Any, server: FakeServer) -> None:
    data = os.urandom(2_000_000)
    server.on("GET", CONTENT, serve(data, 900_000), hang_up, serve(data, 50_000), serve(data))
    server.on("GET", STAT, give(entry()))
    assert box.files.read("/f") == data
    offsets = [one.query["offset"][0] for one in server.to("GET", CONTENT)]
    assert offsets == ["0", "900000", "900000", "950000"]


def test_a_small_file_is_read_as_a_whole(box: Any, server: FakeServer) -> None:
    server.on("GET", CONTENT, serve(b"old", 2), hang_up, serve(b"newer"))
    assert box.files.read("/f") == b"newer"
    server.on("GET", CONTENT, serve(b""))
    assert box.files.read("/f") == b""


def test_a_stretch_of_a_file(box: Any, server: FakeServer) -> None:
    server.on("GET", CONTENT, serve(b"0123456789"))
    assert b"".join(box.files.stream("/f", offset=3, length=4)) == b"3456"
    data = os.urandom(4_000_000)
    server.on("GET", CONTENT, serve(data, 500_000), serve(data))
    server.on("GET", STAT, give(entry()))
    assert box.files.read("/f", offset=1_000_000, length=2_000_000) == data[1_000_000:3_000_000]
    assert server.requests[-2].query["lengthBytes"] == ["1500000"]


def test_a_file_that_changes_meanwhile_is_not_mixed(box: Any, server: FakeServer) -> None:
    server.on("GET", CONTENT, serve(b"a" * 2**21, 500), serve(b"b" * 2**21))
    server.on("GET", STAT, give(entry()), give(entry(mtimeNanoseconds=7)))
    with pytest.raises(errors.ConflictError):
        box.files.read("/f")


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/ä b&c", {"path": ["/ä b&c"]}),
        (PurePosixPath("/a/b"), {"path": ["/a/b"]}),
        (b"/ok", {"path": ["/ok"]}),
        (b"/\xff\n", {"pathBase64": ["L/8K"]}),
        (os.fsdecode(b"/\xff\n"), {"pathBase64": ["L/8K"]}),
    ],
)
def test_any_bytes_are_a_name(box: Any, server: FakeServer, path: Any, query: Any) -> None:
    server.on("GET", CONTENT, serve(b"x"))
    assert box.files.read_text(path, user="me") == "x"
    assert server.to("GET", CONTENT)[0].query == {**query, "user": ["me"], "offset": ["0"]}


def test_what_can_be_read_again_is_sent_again(box: Any, server: FakeServer) -> None:
    data = os.urandom(700_000)
    with io.BytesIO(b"skipped" + data) as file:
        file.seek(7)
        for content in (data, file):
            server.requests.clear()
            server.on(
                "PUT", CONTENT, hang_up, refuse("unavailable"), give(entry(sizeBytes=700_000))
            )
            assert box.files.write("/f", content, mode=0o600).size_bytes == 700_000
            sent = server.to("PUT", CONTENT)
            assert [one.body == data for one in sent] == [True] * 3
            assert sent[0].headers["content-length"] == "700000"
            assert sent[0].query == {"path": ["/f"], "mode": ["384"], "createParents": ["true"]}


def test_what_a_function_gives_is_sent_again(box: Any, server: FakeServer) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a" * 300_000
        yield b"b"

    server.on("PUT", CONTENT, hang_up, refuse("unavailable"), give(entry()))
    box.files.write("/f", pieces)
    assert [one.body for one in server.to("PUT", CONTENT)] == [b"a" * 300_000 + b"b"] * 3


def test_what_is_exclusive_and_may_have_arrived_is_not_sent_again(
    box: Any, server: FakeServer, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    server.on("PUT", CONTENT, hang_up, give(entry()))
    with pytest.raises(errors.UnavailableError):
        box.files.write("/f", b"x", exclusive=True)
    server.on("PUT", CONTENT, hang_up, give(entry()))
    with pytest.raises(errors.UnavailableError):
        box.files.upload(source, "/f", exclusive=True)
    assert len(server.to("PUT", CONTENT)) == 2


def test_what_cannot_be_read_again_is_not(box: Any, server: FakeServer) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a" * 300_000
        yield b"b"

    server.on("PUT", CONTENT, give(entry()))
    box.files.write("/f", pieces(), exclusive=True)
    (sent,) = server.to("PUT", CONTENT)
    assert sent.body == b"a" * 300_000 + b"b" and sent.headers["transfer-encoding"] == "chunked"
    server.on("PUT", CONTENT, hang_up, give(entry()))
    with pytest.raises(errors.UnavailableError):
        box.files.write("/f", pieces())
    assert len(server.to("PUT", CONTENT)) == 2


def test_text_and_nothing_are_content(box: Any, server: FakeServer) -> None:
    server.on("PUT", CONTENT, give(entry()))
    box.files.write("/f", "ä")
    box.files.write("/f", b"")
    assert [one.body for one in server.to("PUT", CONTENT)] == ["ä".encode(), b""]


def test_files_of_this_machine(box: Any, server: FakeServer, tmp_path: Path) -> None:
    data = os.urandom(600_000)
    source = tmp_path / "source"
    source.write_bytes(data)
    source.chmod(0o755)
    server.on("PUT", CONTENT, give(entry()))
    sizes: list[int] = []
    box.files.upload(source, "/f", on_progress=sizes.append)
    assert sizes == [262_144, 524_288, 600_000]
    (sent,) = server.to("PUT", CONTENT)
    assert sent.body == data and sent.query["mode"] == [str(0o755)]

    seen: list[int] = []
    names: set[str] = set()

    def look(size: int) -> None:
        seen.append(size)
        names.update(path.name for path in tmp_path.iterdir())

    server.on("GET", CONTENT, serve(data, 400_000), serve(data))
    target = tmp_path / "target"
    assert box.files.download("/f", target, on_progress=look) == len(data)
    # Who is killed meanwhile leaves nothing.
    assert names == {"source"} or not hasattr(os, "O_TMPFILE")
    assert seen[-1] == len(data)
    assert target.read_bytes() == data
    server.on("GET", CONTENT, refuse("permission-denied", 403))
    with pytest.raises(errors.PermissionDeniedError):
        box.files.download("/f", tmp_path / "not-there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


def test_what_a_directory_holds(box: Any, server: FakeServer) -> None:
    odd = entry("\ufffd", nameBase64=base64.b64encode(b"\xff").decode(), kind="directory")
    server.on(
        "GET", FILES, give({"entries": [entry("a")], "cursor": "next"}), give({"entries": [odd]})
    )
    first, second = box.files.list("/")
    assert (first.name, first.name_bytes, first.is_directory, first.mtime) == (
        "a",
        b"a",
        False,
        5.5,
    )
    assert (second.name_bytes, second.is_directory) == (b"\xff", True)
    assert server.to("GET", FILES)[1].query == {"path": ["/"], "limit": ["500"], "cursor": ["next"]}


def test_small_changes(box: Any, server: FakeServer) -> None:
    server.on("GET", f"{FILES}/stat", give(entry()), give(entry()), refuse("not-found", 404))
    assert box.files.stat("/f", follow_symlinks=False).name == "f"
    assert (box.files.exists("/f"), box.files.exists("/g")) == (True, False)
    assert server.to("GET", f"{FILES}/stat")[0].query["followSymlinks"] == ["false"]
    server.on("POST", f"{FILES}/directory", hang_up, give(entry(kind="directory"), 201))
    assert box.files.mkdir(b"/\xff").is_directory
    lost, made = server.to("POST", f"{FILES}/directory")
    assert lost.key == made.key and made.json == {"pathBase64": "L/8=", "createParents": True}
    server.on("POST", f"{FILES}/move", lambda exchange: exchange.empty())
    box.files.move("/a", b"/\xff", replace=True)
    assert server.requests[-1].json == {"source": "/a", "targetBase64": "L/8=", "replace": True}
    server.on("DELETE", FILES, lambda exchange: exchange.empty())
    box.files.remove("/a", recursive=True)
    assert server.requests[-1].query == {"path": ["/a"], "recursive": ["true"]}
    assert server.requests[-1].key
