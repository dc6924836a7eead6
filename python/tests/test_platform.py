"""Many sandboxes, events, listings, layers, keys, jobs; and the ends of contexts."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from fake_server import KEY, Exchange, FakeServer, HangUp, give, hang_up, refuse
from libdsec import SandboxFailure, Timeout, errors, models
from shapes import BOX_PATH, SANDBOX, sandbox

NETWORK = {"address": "100.96.0.2", "version": 5, "rules": []}

BATCH = ("POST", "/v1/sandbox-batches")
DIGEST = "sha256:" + "0" * 64
NO_ROOM = {
    "code": "overloaded",
    "message": "no room",
    "retryable": True,
    "remedy": "",
    "details": {},
}


def box_id(index: int) -> str:
    return f"sb-s1-e1-{index:016}"


def lines(*values: object, broken: bool = False) -> Any:
    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for value in values:
            exchange.line(value)
        if broken:
            raise HangUp
        exchange.end()

    return answer


def made(index: int) -> dict[str, Any]:
    return {"index": index, "sandbox": sandbox(box_id(index))}


def test_many_are_told_once_each_over_lost_connections(client: Any, server: FakeServer) -> None:
    failed = {"index": 1, "error": NO_ROOM}
    server.on(
        *BATCH,
        hang_up,
        lines(made(2), made(0), broken=True),
        lines(made(0), failed, made(2), made(3)),
    )
    items = list(client.create_many(4, "example", job="j", idempotency_key="mine"))
    assert [getattr(item, "id", None) for item in items] == [box_id(2), box_id(0), None, box_id(3)]
    assert isinstance(items[2], SandboxFailure) and isinstance(
        items[2].error, errors.OverloadedError
    )
    sent = server.to(*BATCH)
    assert {(one.key, one.body) for one in sent} == {("mine", sent[0].body)} and len(sent) == 3
    assert sent[0].json == {"count": 4, "spec": {"environment": "example", "job": "j"}}


def test_of_many_a_failure_can_be_raised(client: Any, server: FakeServer) -> None:
    server.on(*BATCH, lines(made(0), {"index": 1, "error": NO_ROOM}))
    items = iter(client.create_many(2, layers=["base/a:1.0.0"], raise_on_failure=True))
    with contextlib.closing(items):  # type: ignore[type-var]
        assert next(items).id == box_id(0)
    with pytest.raises(errors.OverloadedError, match="no room"):
        list(client.create_many(2, raise_on_failure=True))


def test_many_of_which_some_are_never_told(face: Any, server: FakeServer) -> None:
    server.on(*BATCH, lines(made(0)))
    with face.client(server.url, KEY, timeout=0.3) as client:
        with pytest.raises(errors.UnavailableError, match="1 of 2"):
            list(client.create_many(2, "a"))
    assert len(server.to(*BATCH)) > 1


def test_events_go_on_from_the_last_one(client: Any, server: FakeServer) -> None:
    def event(cursor: str, kind: str = "lost") -> bytes:
        return f'id: {cursor}\ndata: {{"type":"{kind}","cursor":"{cursor}","atMs":1}}\n\n'.encode()

    def first(exchange: Exchange) -> None:
        exchange.begin()
        exchange.chunk(b": connected\n\n" + event("a") + event("b")[:9])
        exchange.chunk(event("b")[9:] + b":\n\n" + event("c", "of-the-future"))
        raise HangUp

    def second(exchange: Exchange) -> None:
        exchange.begin()
        exchange.chunk(event("d"))
        exchange.end()

    server.on("GET", "/v1/events", first, second, refuse("unauthenticated", 401))
    events = iter(client.events(job="j", types=["lost", "exec-exit"]))
    got = [next(events) for _ in range(3)]
    assert [event.cursor for event in got] == ["a", "b", "d"]
    assert isinstance(got[0], models.LostEvent)
    with pytest.raises(errors.UnauthenticatedError):
        next(events)
    events.close()  # type: ignore[attr-defined]
    queries = [one.query for one in server.to("GET", "/v1/events")]
    same = {"job": ["j"], "type": ["lost", "exec-exit"]}
    assert queries == [same, {**same, "cursor": ["c"]}, {**same, "cursor": ["d"]}]


def test_listings_go_through_their_pages(client: Any, server: FakeServer) -> None:
    def page(start: int, cursor: str | None) -> Any:
        boxes = [sandbox(box_id(start + at)) for at in range(2)]
        return give({"sandboxes": boxes, **({} if cursor is None else {"cursor": cursor})})

    server.on("GET", "/v1/sandboxes", page(0, "x"), hang_up, page(2, None))
    found = client.list(state=["running", "paused"], job="j", label={"a": "b", "c": "d"})
    assert [box.id for box in found] == [box_id(at) for at in range(4)]
    first, _, second = server.to("GET", "/v1/sandboxes")
    filters = {"state": ["running", "paused"], "job": ["j"], "label": ["a=b", "c=d"]}
    assert first.query == {**filters, "limit": ["500"]}
    assert second.query == {**first.query, "cursor": ["x"]}
    server.on("GET", "/v1/sandboxes", page(0, "x"), page(2, "y"))
    assert len(list(client.list(limit=3, page_size=2))) == 3
    assert [one.query for one in server.requests[-2:]] == [
        {"limit": ["2"]},
        {"limit": ["1"], "cursor": ["x"]},
    ]
    assert list(client.list(limit=0)) == []


def test_a_context_stops_its_sandbox(client: Any, server: FakeServer) -> None:
    stop = f"{BOX_PATH}/stop"
    server.on("POST", "/v1/sandboxes", give(sandbox(), 201))
    server.on("POST", stop, hang_up, give(sandbox(state="stopped")))
    with client.create("a") as box:
        pass
    assert box.state == "stopped" and len(server.to("POST", stop)) == 2
    server.on("POST", stop, refuse("not-found", 404))
    with client.create("a"):
        pass
    server.on("POST", stop, refuse("internal", 500))
    with pytest.raises(ZeroDivisionError), client.create("a"):
        raise ZeroDivisionError
    with pytest.raises(errors.InternalError), client.create("a"):
        pass


def test_a_sandbox_with_a_client_of_its_own(face: Any, server: FakeServer) -> None:
    server.on("POST", "/v1/sandboxes", give(sandbox(), 201))
    server.on("POST", f"{BOX_PATH}/stop", give(sandbox(state="stopped")))
    with face.create("example", url=server.url, api_key=KEY, ttl={"lifetime_ms": 5}) as box:
        assert box.id == SANDBOX
    assert server.to("POST", "/v1/sandboxes")[0].json["ttl"] == {"lifetimeMs": 5}
    assert box.state == "stopped"
    with pytest.raises(errors.CancelledError):
        box.refresh()


def test_the_life_of_a_sandbox(box: Any, server: FakeServer) -> None:
    server.on("POST", f"{BOX_PATH}/pause", give(sandbox(state="paused")))
    server.on("POST", f"{BOX_PATH}/resume", give(sandbox()))
    server.on("PUT", f"{BOX_PATH}/ttl", give(sandbox(revision=4)))
    assert box.pause().state == box.state == "paused"
    assert box.resume().state == "running"
    assert box.renew({"idle_ms": 1000}).info.revision == 4
    assert server.requests[-1].json == {"idleMs": 1000}
    with pytest.raises(errors.UnsupportedError):
        box.set_network([])
    server.on("PUT", f"{BOX_PATH}/network", give(sandbox(network=NETWORK)))
    rules = [{"kind": "service", "target": "pypi"}]
    network = box.set_network(rules, version=4).info.network
    assert network is not None and network.version == 5
    box.set_network([])
    assert server.requests[-1].json == {"version": 5, "rules": []}
    waiting = give(sandbox(revision=5))
    server.on(
        "GET", BOX_PATH, waiting, waiting, hang_up, give(sandbox(state="stopped", endReason="ttl"))
    )
    assert box.wait().info.end_reason == "ttl"
    assert [one.query.get("afterRevision") for one in server.to("GET", BOX_PATH)[-4:]] == [
        None,
        ["5"],
        ["5"],
        ["5"],
    ]
    with pytest.raises(errors.StateConflictError, match="ttl"):
        box.wait("running")


def test_waiting_for_a_sandbox(box: Any, server: FakeServer) -> None:
    assert box.wait("running").state == "running"
    with pytest.raises(Timeout):
        box.wait("ended", timeout=0.05)
    server.on("GET", BOX_PATH, give(sandbox(state="failed", endReason="oom", error=NO_ROOM)))
    with pytest.raises(errors.StateConflictError, match="no room"):
        box.wait("running")


def layer() -> dict[str, Any]:
    sizes = {"metaBytes": 1, "entries": 1, "contentBytes": 1, "storedBytes": 1, "sharedBytes": 0}
    return {"layerId": DIGEST, "treeDigest": DIGEST, **sizes, "devices": []}


def test_a_layer_of_an_archive(client: Any, server: FakeServer, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    archive.write_bytes(b"tar" * 100_000)
    step = {"entries": 5, "contentBytes": 6}
    done = {**step, "layer": layer()}
    seen: list[int] = []
    server.on("POST", "/v1/layer-imports", lines(step, broken=True), lines(step, done))
    got = client.layers.import_(
        archive, "base", "debian", "1.0.0", on_progress=lambda event: seen.append(event.entries)
    )
    assert got.layer_id == DIGEST and seen == [5, 5]
    lost, sent = server.to("POST", "/v1/layer-imports")
    assert sent.body == lost.body == b"tar" * 100_000
    assert sent.query == {"format": ["tar"], "ref": ["base/debian:1.0.0"]}
    server.on(
        "POST", "/v1/layer-imports", lines({**step, "error": {**NO_ROOM, "code": "import-limit"}})
    )
    with pytest.raises(errors.ImportLimitError):
        client.layers.import_(io.BytesIO(b"x"), "base", "a", "1.0.0", format="oci-archive")


def test_layers_and_their_names(client: Any, server: FakeServer) -> None:
    ref = {"ref": "base/a:1.0.0", "layerId": DIGEST, "treeDigest": DIGEST, "createdAtMs": 1}
    report = {"layerId": DIGEST, "ok": True, "problems": [], "checkedBytes": 9}
    encoded = f"/v1/layers/{DIGEST.replace(':', '%3A')}"
    server.on("GET", "/v1/layers", give({"layers": [layer()]}))
    server.on("GET", encoded, give(layer()))
    server.on("POST", f"{encoded}/verify", give(report))
    server.on("DELETE", encoded, lambda exchange: exchange.empty())
    server.on("GET", "/v1/layer-refs", give({"refs": [ref]}))
    server.on("GET", "/v1/resolve", give(ref))
    server.on("PUT", "/v1/layer-refs/base/a/1.0.0", give(ref))
    server.on("DELETE", "/v1/layer-refs/base/a/1.0.0", lambda exchange: exchange.empty())
    assert [one.layer_id for one in client.layers.list()] == [DIGEST]
    assert client.layers.get(DIGEST).entries == 1
    assert client.layers.verify(DIGEST).ok
    client.layers.remove(DIGEST)
    assert [one.ref for one in client.layers.refs(kind="base", name="a")] == ["base/a:1.0.0"]
    assert client.layers.resolve("base/a:^1").layer_id == DIGEST
    assert client.layers.tag("base", "a", "1.0.0", DIGEST).ref == "base/a:1.0.0"
    client.layers.untag("base", "a", "1.0.0")


def test_environments_keys_and_jobs(client: Any, server: FakeServer) -> None:
    environment = {"name": "e", "layers": ["base/a:1.0.0"], "revision": 2, "updatedAtMs": 1}
    server.on("GET", "/v1/environments", give({"environments": [environment]}))
    server.on("GET", "/v1/environments/e", give(environment))
    server.on("PUT", "/v1/environments/e", give(environment))
    server.on("DELETE", "/v1/environments/e", lambda exchange: exchange.empty())
    assert [one.name for one in client.environments.list()] == ["e"]
    assert client.environments.get("e").revision == 2
    client.environments.put("e", ["base/a:1.0.0"], revision=0)
    assert server.requests[-1].json == {"layers": ["base/a:1.0.0"], "revision": 0}
    client.environments.remove("e")

    key = {
        "id": "ke-aaaaaaaaaaaaaaaa",
        "name": "k",
        "project": "p",
        "principal": "q",
        "scopes": ["exec"],
        "createdAtMs": 1,
    }
    server.on("POST", "/v1/keys", give({"key": key, "secret": KEY}, 201))
    server.on("GET", "/v1/keys", give({"keys": [key]}))
    server.on("DELETE", f"/v1/keys/{key['id']}", lambda exchange: exchange.empty())
    assert client.keys.create("k", ["exec"], lifetime_ms=1500).secret == KEY
    assert server.requests[-1].json == {"name": "k", "scopes": ["exec"], "lifetimeMs": 1500}
    assert [one.id for one in client.keys.list()] == [key["id"]]
    client.keys.revoke(str(key["id"]))

    job = {
        "job": "j",
        "project": "p",
        "creating": 0,
        "running": 2,
        "paused": 0,
        "stopped": 0,
        "failed": 0,
        "firstCreatedAtMs": 1,
    }
    result = {"matched": 2, "changed": 2, "failed": 0, "failures": []}
    server.on("GET", "/v1/jobs", give({"jobs": [job]}))
    server.on("GET", "/v1/jobs/j", give(job))
    assert [one.job for one in client.jobs.list()] == ["j"] and client.jobs.get("j").running == 2
    for verb in ("stop", "pause", "resume"):
        server.on("POST", f"/v1/jobs/j/{verb}", hang_up, give(result))
        assert getattr(client.jobs, verb)("j").changed == 2


def test_the_server_itself(client: Any, server: FakeServer) -> None:
    server.on("GET", "/v1/health", give({"ok": True, "parts": []}))
    server.on("GET", "/v1/version", give({"version": "1", "api": "v1", "frames": 1}))
    server.on("GET", "/v1/metrics", lambda exchange: exchange.bytes(b"up 1\n"))
    host = {"os": "x", "kernel": "y", "architecture": "z", "cpus": 1, "memoryBytes": 1, "uid": 0}
    report = {"version": 1, "takenAt": "t", "host": host, "checks": [], "verdicts": {}}
    server.on("GET", "/v1/doctor", give(report))
    assert client.health().ok and client.version().api == "v1"
    assert client.metrics() == "up 1\n" and client.doctor().host.cpus == 1


MADE_KEY = {
    "id": "ke-" + "a" * 16,
    "name": "k",
    "project": "p",
    "principal": "u",
    "scopes": ["exec"],
    "createdAtMs": 1,
}


def test_a_key_whose_secret_was_lost_is_an_error_that_names_it(
    client: Any, server: FakeServer
) -> None:
    server.on("POST", "/v1/keys", hang_up, give({"key": MADE_KEY}))
    with pytest.raises(errors.SecretLostError, match="Revoke the key and make another") as raised:
        client.keys.create("k", ["exec"])
    assert raised.value.details == {"keyId": MADE_KEY["id"]}
    server.on("POST", f"/v1/keys/{MADE_KEY['id']}/rotate", give({"key": MADE_KEY}))
    with pytest.raises(errors.SecretLostError, match="was rotated"):
        client.keys.rotate(MADE_KEY["id"], grace_ms=0)


def test_a_key_of_a_file_that_is_refused_is_read_from_it_again(
    face: Any, server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.json"
    seen: list[str] = []

    def answer(exchange: Exchange) -> None:
        seen.append(exchange.request.headers["authorization"])
        if seen[-1] == "Bearer second":
            exchange.json({"version": "1", "api": "v1", "frames": 1})
        else:
            exchange.error("unauthenticated", 401)

    server.on("GET", "/v1/version", answer)
    file.write_text(json.dumps({"url": server.url, "apiKey": "first"}))
    for name in ("DSEC_URL", "DSEC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DSEC_CLIENT", str(file))
    with face.client(None, None) as client:
        with pytest.raises(errors.UnauthenticatedError):
            client.version()
        file.write_text(json.dumps({"url": "http://127.0.0.1:1", "apiKey": "second"}))
        with pytest.raises(errors.UnauthenticatedError):
            client.version()
        file.write_text(json.dumps({"url": server.url, "apiKey": "second"}))
        assert client.version().api == "v1"
    assert seen == ["Bearer first"] * 3 + ["Bearer second"]
