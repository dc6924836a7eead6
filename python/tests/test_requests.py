"""Attempts, errors and keys."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from fake_server import KEY, Exchange, FakeServer, give, hang_up, refuse
from libdsec import DsecError, Timeout, errors
from libdsec.errors import ERROR_CLASSES
from shapes import BOX_PATH, SANDBOX, sandbox

CREATE = ("POST", "/v1/sandboxes")


def test_a_create_that_has_to_be_repeated_is_the_same_request(
    client: Any, server: FakeServer
) -> None:
    server.on(*CREATE, hang_up, refuse("unavailable"), refuse("overloaded"), give(sandbox(), 201))
    box = client.create("example", limits={"memory_bytes": 2**30}, wait_for="allocated")
    assert box.id == SANDBOX and box.state == "running"
    sent = server.to(*CREATE)
    assert len(sent) == 4 and len({(one.key, one.body) for one in sent}) == 1
    assert sent[0].json == {
        "environment": "example",
        "limits": {"memoryBytes": 2**30},
        "waitFor": "allocated",
    }
    assert sent[0].headers["authorization"] == f"Bearer {KEY}"


def test_calls_have_keys_of_their_own_and_those_that_are_given(
    client: Any, server: FakeServer
) -> None:
    server.on(*CREATE, give(sandbox(), 201))
    client.create("a")
    client.create("a")
    client.create("a", idempotency_key="mine")
    first, second, third = (one.key for one in server.to(*CREATE))
    assert first != second and third == "mine"


@pytest.mark.parametrize("code", sorted(ERROR_CLASSES))
def test_each_code_is_a_class(client: Any, server: FakeServer, code: str) -> None:
    kind = ERROR_CLASSES[code]
    server.on(*CREATE, refuse(code, kind.status, details={"field": "x"}, retryable=True))
    with pytest.raises(kind) as caught:
        client.create("a")
    error = caught.value
    assert (type(error), error.code, error.status) == (kind, code, kind.status)
    assert (error.details, error.request_id, error.retryable) == ({"field": "x"}, "request-1", True)
    assert error.remedy == "Do so." and "request-1" in str(error)
    is_repeated = code in ("unavailable", "overloaded", "rate-limited")
    assert len(server.requests) == (10 if is_repeated else 1)


def test_a_code_of_the_future_is_kept(client: Any, server: FakeServer) -> None:
    server.on(*CREATE, refuse("no-such-code", 418))
    with pytest.raises(DsecError) as caught:
        client.create("a")
    assert type(caught.value) is DsecError
    assert (caught.value.code, caught.value.status) == ("no-such-code", 418)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (502, errors.UnavailableError),
        (401, errors.UnauthenticatedError),
        (404, errors.NotFoundError),
        (500, errors.ProtocolError),
    ],
)
def test_what_is_no_answer_of_dsec(
    client: Any, server: FakeServer, status: int, kind: type[DsecError]
) -> None:
    server.on(*CREATE, lambda exchange: exchange.bytes(b"<html>", status))
    with pytest.raises(kind):
        client.create("a")


def test_an_answer_that_does_not_fit_is_a_breach_of_protocol(
    client: Any, server: FakeServer
) -> None:
    server.on(*CREATE, give({"id": 1}, 201))
    with pytest.raises(errors.ProtocolError):
        client.create("a")


def test_time_that_is_up_is_a_timeout(face: Any, server: FakeServer) -> None:
    def stall(exchange: Exchange) -> None:
        time.sleep(0.5)
        hang_up(exchange)

    server.on("GET", BOX_PATH, stall)
    with face.client(server.url, KEY, timeout=0.2) as client:
        with pytest.raises(Timeout) as caught:
            client.get(SANDBOX)
    assert isinstance(caught.value, (errors.DeadlineExceededError, TimeoutError))
    assert len(server.requests) == 1


def test_where_nothing_listens_it_says_what_to_do(face: Any) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with face.client(url, KEY) as client, pytest.raises(errors.UnavailableError) as caught:
            client.version()
    assert "dsec up" in str(caught.value) and url in str(caught.value)


def test_a_server_on_a_unix_socket(face: Any, server: FakeServer, tmp_path: Any) -> None:
    """The fake one listens on TCP; what goes through the socket is passed on."""
    path = tmp_path / "api.sock"
    server.on("GET", "/v1/version", give({"version": "1", "api": "v1", "frames": 3}))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def pass_on() -> None:
            inner, _ = listener.accept()
            port = int(server.url.rsplit(":", 1)[1])
            with inner, socket.create_connection(("127.0.0.1", port)) as outer:
                outer.sendall(inner.recv(65_536))
                while data := outer.recv(65_536):
                    inner.sendall(data)

        threading.Thread(target=pass_on, daemon=True).start()
        with face.client(f"unix:{path}", KEY) as client:
            assert client.version().frames == 3
    assert server.requests[0].headers["host"] == "localhost"


def test_a_slip_of_the_pen_is_told_before_anything_is_sent(client: Any, server: FakeServer) -> None:
    for options in (
        {"limits": {"memory": 1}},
        {"ttl": {"idle_ms": "x"}},
        {"labels": 3},
        {"memory": 1},
    ):
        with pytest.raises(errors.InvalidArgumentError) as caught:
            client.create("a", **options)
        assert caught.value.details["field"]
    assert server.requests == []
