"""What tests against a fake server share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from faces import AsyncFace, SyncFace
from fake_server import KEY, FakeServer
from libdsec._core import retry
from shapes import SANDBOX, sandbox


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Removes the directory in which pytest keeps those of the last runs."""
    yield
    shutil.rmtree(tmp_path_factory.getbasetemp().parent, ignore_errors=True)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    yield fake
    fake.close()
    assert fake.faults == []


@pytest.fixture(params=["sync", "async"])
def face(request: pytest.FixtureRequest) -> Iterator[Any]:
    one = SyncFace() if request.param == "sync" else AsyncFace()
    yield one
    one.close()


@pytest.fixture
def client(face: Any, server: FakeServer) -> Iterator[Any]:
    with face.client(server.url, KEY) as one:
        yield one


@pytest.fixture
def box(client: Any, server: FakeServer) -> Any:
    """A sandbox of the client."""
    server.on("GET", f"/v1/sandboxes/{SANDBOX}", lambda exchange: exchange.json(sandbox()))
    return client.get(SANDBOX)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr(retry, "FIRST_DELAY_S", 0.001)
    monkeypatch.setattr(retry, "DELAY_S_MAX", 0.002)
