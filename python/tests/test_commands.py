"""Commands: round trips, output in all its forms, input."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from fake_server import Exchange, FakeServer, HangUp, Socket, give, hang_up, refuse
from libdsec import CommandFailed, OutputChunk, Timeout, errors
from shapes import ATTACH, BOX_PATH, EXEC, EXEC_PATH, EXECS, command, exit_with, started, totals

OUTPUT = f"{EXEC_PATH}/output"
STDIN = f"{EXEC_PATH}/stdin"
LOST = {"code": "agent-lost", "message": "x", "retryable": False, "remedy": "", "details": {}}


def test_a_short_command_is_one_round_trip(box: Any, server: FakeServer) -> None:
    server.on("POST", EXECS, hang_up, give(started("hello\n"), 201))
    result = box.exec("echo hello", cwd="/tmp", env={"A": "b"}, user="me", timeout=2.5)
    assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("hello\n", "", 0, True)
    assert (result.exec_id, result.duration_ms, result.truncated) == (EXEC, 12, False)
    first, second = server.to("POST", EXECS)
    assert (first.key, first.body) == (second.key, second.body)
    assert first.json == {
        **{"shell": "echo hello", "cwd": "/tmp", "env": {"A": "b"}, "user": "me"},
        **{"timeoutMs": 2500, "outputBytesMax": 64 * 2**20, "waitMs": 30_000},
    }


def test_a_list_is_a_program_and_its_arguments(box: Any, server: FakeServer) -> None:
    server.on("POST", EXECS, give(started(), 201))
    box.exec(["ls", "-l"])
    assert server.to("POST", EXECS)[0].json["argv"] == ["ls", "-l"]


def test_a_long_command_is_waited_for(box: Any, server: FakeServer) -> None:
    server.on("POST", EXECS, give({"exec": command("running")}, 201))
    running = give(command("running"))
    server.on("GET", EXEC_PATH, running, hang_up, running, give(command(stdout=totals(3))))
    server.on("GET", OUTPUT, lambda exchange: exchange.bytes(b"abc"))
    assert box.exec("sleep 100").stdout == "abc"
    assert [one.query["waitMs"] for one in server.to("GET", EXEC_PATH)] == [["30000"]] * 4


def test_output_that_breaks_off_goes_on_where_it_was(box: Any, server: FakeServer) -> None:
    data = bytes(range(256)) * 4000

    def half(exchange: Exchange) -> None:
        exchange.begin()
        exchange.chunk(data[:500_000])
        raise HangUp

    def rest(exchange: Exchange) -> None:
        exchange.bytes(data[int(exchange.request.query["offset"][0]) :])

    server.on("POST", EXECS, give({"exec": command(stdout=totals(len(data)))}, 201))
    server.on("GET", OUTPUT, half, rest)
    result = box.exec("x")
    assert result.stdout_bytes == data and not result.truncated
    assert [one.query["offset"] for one in server.to("GET", OUTPUT)] == [["0"], ["500000"]]


def test_of_too_much_output_both_ends_are_there(box: Any, server: FakeServer) -> None:
    whole = b"a" * 50 + b"b" * 900 + b"c" * 50

    def stretch(exchange: Exchange) -> None:
        query = exchange.request.query
        offset = int(query["offset"][0])
        exchange.bytes(whole[offset : offset + int(query["lengthBytes"][0])])

    server.on("GET", OUTPUT, stretch)
    server.on("POST", EXECS, give({"exec": command(stdout=totals(1000, 50, 950))}, 201))
    result = box.exec("x")
    assert result.stdout_bytes == b"a" * 50 + b"c" * 50 and result.truncated
    server.on("POST", EXECS, give({"exec": command(stdout=totals(1000))}, 201))
    result = box.exec("x", max_output_bytes=20)
    assert result.stdout_bytes == b"a" * 10 + b"c" * 10 and result.truncated


def test_output_that_moves_is_read_again(box: Any, server: FakeServer) -> None:
    server.on("POST", EXECS, give({"exec": command(stdout=totals(1000, 50, 950))}, 201))
    head = lambda exchange: exchange.bytes(b"a" * 50)  # noqa: E731
    server.on("GET", OUTPUT, head, refuse("output-lost", 410), head, lambda e: e.bytes(b"c" * 60))
    server.on("GET", EXEC_PATH, give(command(stdout=totals(1010, 50, 950))))
    assert box.exec("x").stdout_bytes == b"a" * 50 + b"c" * 60
    server.on("GET", OUTPUT, lambda exchange: exchange.bytes(b"short"))
    with pytest.raises(errors.OutputLostError):
        box.exec("x")


def test_bytes_that_are_no_text(box: Any, server: FakeServer) -> None:
    answer = started("\ufffd")
    answer["stdout"]["base64"] = "/w=="
    server.on("POST", EXECS, give({**answer, "exec": command(stdout=totals(1))}, 201))
    result = box.exec("x")
    assert (result.stdout_bytes, result.stdout) == (b"\xff", "\ufffd")


def test_a_command_that_is_checked(box: Any, server: FakeServer) -> None:
    answer = started("boo", exit=exit_with(3))
    server.on("POST", EXECS, give(answer, 201))
    assert box.exec("x").exit_code == 3
    with pytest.raises(CommandFailed, match="exit code 3: boo") as caught:
        box.exec("x", check=True)
    assert pickle.loads(pickle.dumps(caught.value)).result == caught.value.result
    late = started("", exit=exit_with(0, timedOut=True))
    server.on("POST", EXECS, give(late, 201))
    assert box.exec("x").timed_out and not box.exec("x").ok


def test_what_was_asked_for_is_named(box: Any, server: FakeServer) -> None:
    base = {"retryable": False, "remedy": "", "details": {"errno": 2}}
    said = {**base, "code": "command-not-found", "message": "command: No such file or directory"}
    server.on("POST", EXECS, give({"exec": command("failed", error=said)}, 201))
    with pytest.raises(errors.CommandNotFoundError, match="^nonesuch: No such file"):
        box.exec(["nonesuch", "x"])
    said = {**base, "code": "not-found", "message": "working directory: No such file or directory"}
    server.on("POST", EXECS, give({"exec": command("failed", error=said)}, 201))
    with pytest.raises(errors.NotFoundError, match="^working directory /away: No such file"):
        box.exec("x", cwd="/away")
    said = {**base, "code": "not-found", "message": "no such user or group: No such process"}
    server.on("POST", EXECS, give({"exec": command("failed", error=said)}, 201))
    with pytest.raises(errors.NotFoundError, match=r"^no such user or group: b\\u\{1b\} \("):
        box.exec("x", user="b\x1b")
    said = {**base, "message": "stat: No such file or directory"}
    server.on("GET", f"{BOX_PATH}/files/stat", refuse("not-found", 404, **said))
    with pytest.raises(errors.NotFoundError, match="^/nope: stat: No such file"):
        box.files.stat("/nope")


def test_a_command_without_a_result(box: Any, server: FakeServer) -> None:
    error = {
        "code": "command-not-found",
        "message": "no x",
        "retryable": False,
        "remedy": "",
        "details": {},
    }
    server.on("POST", EXECS, give({"exec": command("failed", error=error)}, 201))
    with pytest.raises(errors.CommandNotFoundError, match="no x"):
        box.exec("x")
    server.on("POST", EXECS, give({"exec": command("unknown")}, 201))
    with pytest.raises(errors.AgentLostError):
        box.exec("x")


def test_input_is_written_at_its_offsets(box: Any, server: FakeServer) -> None:
    taken = bytearray()

    def take(exchange: Exchange) -> None:
        offset = int(exchange.request.query["offset"][0])
        assert offset <= len(taken)
        taken[offset:] = exchange.request.body
        exchange.json({"offset": len(taken)})

    def forget(exchange: Exchange) -> None:
        taken.extend(exchange.request.body[:1000])
        raise HangUp

    server.on("POST", EXECS, give({"exec": command("running")}, 201))
    server.on("POST", STDIN, forget, take)
    server.on("GET", EXEC_PATH, give(command()))
    data = bytes(range(250)) * 10_000
    assert box.exec("cat >f", stdin=data).ok
    assert taken == data
    assert server.to("POST", EXECS)[0].json["stdin"] is True
    assert "waitMs" not in server.to("POST", EXECS)[0].json
    last = server.to("POST", STDIN)[-1]
    assert (last.query, last.body) == ({"offset": ["2500000"], "end": ["true"]}, b"")


def test_input_that_nobody_reads_is_no_error(box: Any, server: FakeServer) -> None:
    server.on("POST", EXECS, give({"exec": command("running")}, 201))
    server.on("POST", STDIN, refuse("state-conflict", 409))
    server.on("GET", EXEC_PATH, give(command()))
    assert box.exec("true", stdin="much").ok


def test_input_for_a_command_found_again_goes_on(box: Any, server: FakeServer) -> None:
    server.on("GET", EXEC_PATH, give(command("running")))
    server.on("POST", STDIN, give({"offset": 7}), give({"offset": 9}))
    box.command(EXEC).write("xy")
    assert [one.query["offset"] for one in server.to("POST", STDIN)] == [["0"], ["7"]]


def running(box: Any, server: FakeServer) -> Any:
    server.on("POST", EXECS, give({"exec": command("running")}, 201))
    return box.start("x")


def attached(socket: Socket) -> Socket:
    socket.send({"type": "attached", "exec": command("running"), "stdinOffset": 0})
    return socket


def finish(socket: Socket) -> None:
    socket.send({"type": "end", "channel": "stdout", "offset": 1})
    socket.send({"type": "of-the-future"})
    socket.send({"type": "exit", "exec": command()})
    socket.close()


def test_a_stream_goes_on_after_lost_connections(box: Any, server: FakeServer) -> None:
    acknowledged: list[Any] = []

    def first(exchange: Exchange) -> None:
        socket = attached(exchange.upgrade())
        for at in range(5):
            socket.output("stdout", at * 65_536, b"o" * 65_536)
        acknowledged.append(json.loads(socket.receive()))
        socket.output("stderr", 0, b"err")
        raise HangUp

    def second(exchange: Exchange) -> None:
        socket = attached(exchange.upgrade())
        query = exchange.request.query
        assert query == {"stdoutOffset": ["327680"], "stderrOffset": ["3"]}
        socket.close(1001, "restart")

    def third(exchange: Exchange) -> None:
        socket = attached(exchange.upgrade())
        socket.send({"type": "gap", "channel": "stdout", "offset": 327_680, "nextOffset": 400_000})
        socket.output("stdout", 400_000, b"end")
        finish(socket)

    server.on("GET", ATTACH, first, refuse("unavailable"), second, third)
    started = running(box, server)
    chunks = list(started.stream(skip_lost=True))
    assert acknowledged == [{"type": "ack", "channel": "stdout", "offset": 262_144}]
    assert sum(len(chunk.data) for chunk in chunks if chunk.stream == "stdout") == 5 * 65_536 + 3
    assert OutputChunk("stderr", b"err", 0) in chunks
    assert chunks[-1] == OutputChunk("stdout", b"end", 400_000)
    assert started.info.state == "exited" and len(server.to("GET", ATTACH)) == 4


@pytest.mark.parametrize(
    ("tell", "kind"),
    [
        (
            lambda socket: socket.send({"type": "error", "error": LOST}),
            "AgentLostError",
        ),
        (lambda socket: socket.close(4005, "gone"), "NotFoundError"),
        (lambda socket: socket.close(1008), "PermissionDeniedError"),
        (lambda socket: socket.output("stdout", 5, b"x"), "ProtocolError"),
        (lambda socket: socket.send(b"\x01"), "ProtocolError"),
        (
            lambda socket: socket.send(
                {"type": "gap", "channel": "stdout", "offset": 0, "nextOffset": 9}
            ),
            "OutputLostError",
        ),
    ],
)
def test_a_stream_ends_with_what_is_for_good(
    box: Any, server: FakeServer, tell: Any, kind: str
) -> None:
    server.on("GET", ATTACH, lambda exchange: tell(attached(exchange.upgrade())))
    with pytest.raises(getattr(errors, kind)):
        list(running(box, server).stream())
    assert len(server.to("GET", ATTACH)) == 1


def test_a_stream_of_a_command_that_is_not_there(box: Any, server: FakeServer) -> None:
    server.on("GET", ATTACH, refuse("not-found", 404))
    with pytest.raises(errors.NotFoundError) as caught:
        list(running(box, server).stream())
    assert caught.value.request_id == "request-1"


def test_one_output_is_followed(box: Any, server: FakeServer) -> None:
    def half(exchange: Exchange) -> None:
        exchange.begin()
        exchange.chunk(b"abc")
        raise HangUp

    def rest(exchange: Exchange) -> None:
        exchange.begin()
        exchange.chunk(b"def")
        exchange.end()

    server.on("GET", OUTPUT, half, rest)
    assert b"".join(running(box, server).output("stderr")) == b"abcdef"
    assert server.to("GET", OUTPUT)[1].query == {
        "stream": ["stderr"],
        "offset": ["3"],
        "follow": ["true"],
    }


def test_waiting_has_a_limit(box: Any, server: FakeServer) -> None:
    server.on("GET", EXEC_PATH, give(command("running")))
    with pytest.raises(Timeout):
        running(box, server).wait(timeout=0.05)


def test_signals_sizes_and_limits(box: Any, server: FakeServer) -> None:
    def empty(exchange: Exchange) -> None:
        exchange.empty()

    server.on("POST", f"{EXEC_PATH}/signal", hang_up, empty, empty, refuse("state-conflict", 409))
    server.on("PUT", f"{EXEC_PATH}/pty", empty)
    server.on("PUT", f"{EXEC_PATH}/timeout", empty)
    started = running(box, server)
    started.signal(15, "leader")
    started.kill()
    lost, first, second = server.to("POST", f"{EXEC_PATH}/signal")
    assert lost.key == first.key != second.key
    assert (first.json, second.json) == (
        {"signal": 15, "scope": "leader"},
        {"signal": 9, "scope": "tree"},
    )
    server.on("GET", EXEC_PATH, give(command()))
    started.kill()
    started.resize(40, 120)
    started.set_timeout(500)
    started.set_timeout(None)
    assert [one.json for one in server.requests[-3:]] == [
        {"rows": 40, "columns": 120},
        {"timeoutMs": 500},
        {},
    ]


def test_a_session_keeps_a_shell(box: Any, server: FakeServer) -> None:
    session = {
        "id": "se-aaaaaaaaaaaaaaaa",
        "sandbox": box.id,
        "open": True,
        "trusted": False,
        "createdAtMs": 1,
    }
    server.on("POST", f"/v1/sandboxes/{box.id}/sessions", give(session, 201))
    server.on("DELETE", f"/v1/sandboxes/{box.id}/sessions/{session['id']}", lambda e: e.empty())
    server.on("POST", EXECS, give(started("/tmp\n"), 201))
    with box.session(cwd="/tmp", shell="/bin/bash") as shell:
        assert shell.exec("pwd").stdout == "/tmp\n"
    assert server.to("POST", f"/v1/sandboxes/{box.id}/sessions")[0].json == {
        "shell": ["/bin/bash"],
        "cwd": "/tmp",
    }
    assert server.to("POST", EXECS)[0].json["session"] == session["id"]
    assert server.requests[-1].method == "DELETE"


def test_a_port_is_bytes_in_both_directions(box: Any, server: FakeServer) -> None:
    got: list[bytes] = []

    def port(exchange: Exchange) -> None:
        socket = exchange.upgrade()
        got.append(socket.receive())
        got.append(socket.receive())
        socket.send(b"pong")
        socket.send(b"")
        socket.close()

    server.on("GET", f"/v1/sandboxes/{box.id}/ports/80/connect", port)
    with box.connect(80) as stream:
        stream.write("ping")
        stream.end()
        assert list(stream) == [b"pong"] and stream.read() is None
    assert got == [b"ping", b""]
    server.on("GET", f"/v1/sandboxes/{box.id}/ports/81/connect", refuse("unavailable"))
    with pytest.raises(errors.UnavailableError):
        box.connect(81)
