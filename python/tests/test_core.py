"""The parts without input or output, as tables."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import libdsec
from faces import all_exported
from libdsec import DSecContainerRunArgs, errors
from libdsec._core.attach import ACK_EVERY_BYTES, OutputAttachment
from libdsec._core.config import Server, find_server, parse_server
from libdsec._core.lines import Lines, ServerEvents
from libdsec._core.retry import Backoff, Deadline
from libdsec._core.shards import POOL_REQUESTS_MAX, POOLS_MAX, Shards
from libdsec.errors import ERROR_CLASSES
from libdsec.report import container_options, image_parts

KEY = "dsec_" + "k" * 43


def client_file(path: Path, url: str, key: str = KEY) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"url": url, "apiKey": key}))
    return path


def test_a_server_is_found_in_this_order(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "home"), "DSEC_STATE": str(tmp_path / "state")}
    client_file(tmp_path / "state/client.json", "http://127.0.0.1:3")
    assert find_server(environment=environment).base_url == "http://127.0.0.1:3"
    client_file(tmp_path / "home/.config/dsec/client.json", "http://127.0.0.1:2")
    assert find_server(environment=environment).base_url == "http://127.0.0.1:2"
    environment["DSEC_CLIENT"] = str(client_file(tmp_path / "named.json", "http://127.0.0.1:1"))
    assert find_server(environment=environment).base_url == "http://127.0.0.1:1"
    environment |= {"DSEC_URL": "https://dsec.example", "DSEC_API_KEY": "other"}
    assert find_server(environment=environment) == Server("https://dsec.example", "other")
    assert find_server("unix:/run/x.sock", "k", environment) == Server(
        "http://localhost", "k", "/run/x.sock"
    )


def test_a_key_in_a_file_goes_to_the_server_of_that_file_alone(tmp_path: Path) -> None:
    named = client_file(tmp_path / "client.json", "http://127.0.0.1:1")
    environment = {"DSEC_CLIENT": str(named)}
    assert find_server("http://127.0.0.1:1", environment=environment).api_key == KEY
    with pytest.raises(errors.UnauthenticatedError, match="dsec up"):
        find_server("http://evil.example", environment=environment)
    assert KEY not in repr(find_server(environment=environment))


def test_where_no_server_is_known_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.UnavailableError, match="none, which DSEC_CLIENT names"):
        find_server(environment={"DSEC_CLIENT": str(tmp_path / "none")})
    (tmp_path / "bad").write_text("{}")
    with pytest.raises(errors.InvalidArgumentError, match="apiKey"):
        find_server(environment={"DSEC_CLIENT": str(tmp_path / "bad")})
    for url in ("ftp://x", "http://x/path", "127.0.0.1:80", "http://"):
        with pytest.raises(errors.InvalidArgumentError):
            parse_server(url, KEY)


def test_a_client_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    # A link to itself is refused to root too.
    (tmp_path / "client.json").symlink_to("client.json")
    with pytest.raises(errors.UnavailableError, match="client.json cannot be read by this user"):
        find_server(environment={"DSEC_STATE": str(tmp_path)})


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("http://127.0.0.1:1", True),
        ("http://[::1]:1", True),
        ("unix:/x", True),
        ("https://a.example", False),
    ],
)
def test_what_is_on_this_machine_needs_no_proxy(url: str, is_local: bool) -> None:
    assert parse_server(url, KEY).is_local is is_local


def test_waits_grow_and_end() -> None:
    backoff = Backoff(Deadline(None), attempts_max=5, rand=lambda: 1.0)
    error = errors.UnavailableError("x")
    assert [backoff.after(error) for _ in range(4)] == pytest.approx([0.001, 0.002, 0.002, 0.002])
    with pytest.raises(errors.UnavailableError):
        backoff.after(error)
    backoff.reset()
    assert backoff.after(errors.RateLimitedError("x", details={"retryAfterMs": 1500})) == 1.5
    with pytest.raises(errors.ConflictError):
        backoff.after(errors.ConflictError("x"))


def test_what_goes_on_where_it_was_is_patient() -> None:
    now = [0.0]
    backoff = Backoff(Deadline(None), patience=60, rand=lambda: 1.0, clock=lambda: now[0])
    error = errors.UnavailableError("x")
    for now[0] in range(59):
        backoff.after(error)
    now[0] = 60
    with pytest.raises(errors.UnavailableError):
        backoff.after(error)
    backoff.reset()
    backoff.after(error)


def test_a_stream_that_held_was_a_good_one() -> None:
    now = [0.0]
    backoff = Backoff(Deadline(None), patience=60, rand=lambda: 1.0, clock=lambda: now[0])
    for _ in range(10):
        backoff.opened()
        now[0] += 59
        backoff.after(errors.UnavailableError("silent for too long"))
    with pytest.raises(errors.UnavailableError):
        for _ in range(100):
            backoff.opened()
            now[0] += 1
            backoff.after(errors.UnavailableError("lost at once"))


def test_nothing_is_waited_for_beyond_the_time_of_the_caller() -> None:
    now = [0.0]
    deadline = Deadline(10, clock=lambda: now[0])
    assert (deadline.left(), deadline.at_most(3), deadline.is_over) == (10, 3, False)
    with pytest.raises(errors.RateLimitedError):
        Backoff(deadline).after(errors.RateLimitedError("x", details={"retryAfterMs": 10_000}))
    now[0] = 12
    assert (deadline.left(), deadline.at_most(3), deadline.is_over) == (0, 0, True)


def test_pools_are_made_when_the_others_have_enough_to_do() -> None:
    shards = Shards(lambda: object())
    assert {shards.take() for _ in range(POOL_REQUESTS_MAX)} == {0}
    assert shards.take() == 1 and len(shards.pools) == 2
    shards.give_back(0)
    assert shards.take() == 0
    taken = {shards.take() for _ in range(2 * POOL_REQUESTS_MAX * POOLS_MAX)}
    assert taken == set(range(POOLS_MAX)) and len(shards.pools) == POOLS_MAX


def test_lines_may_come_in_any_pieces() -> None:
    lines = Lines()
    assert [lines.feed(piece) for piece in (b"a", b"b\n\nc", b"\n")] == [[], ["ab", ""], ["c"]]
    with pytest.raises(errors.ProtocolError):
        lines.feed(b"x" * 2**21)
    events = ServerEvents()
    assert events.feed(b": hi\nid: 1\r\ndata:a\ndata: b\n\nretry: 5\n\ndata: c\n\n") == [
        ("1", "a\nb"),
        ("1", "c"),
    ]


def test_acknowledgements_are_few_and_true() -> None:
    output = OutputAttachment()
    piece = b"\x01" + bytes(8) + b"x" * (ACK_EVERY_BYTES - 1)
    assert output.receive(piece) is not None
    assert output.acknowledgement("stdout") is None
    output.receive(b"\x01" + (ACK_EVERY_BYTES - 1).to_bytes(8, "little") + b"x")
    told = output.acknowledgement("stdout")
    assert told is not None and json.loads(told)["offset"] == ACK_EVERY_BYTES
    assert output.acknowledgement("stdout") is None


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("example", ("example", None)),
        ("debian:1.2.3", (None, ["base/debian:1.2.3"])),
        ("workspace/task-1:^1", (None, ["workspace/task-1:^1"])),
    ],
)
def test_images_of_the_report(image: str, parts: Any) -> None:
    assert image_parts(image) == parts


@pytest.mark.parametrize("image", ["a/b:1", "base/a", "a:b:c", "registry.example/a/b:1", ""])
def test_what_is_no_image(image: str) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        image_parts(image)


def test_arguments_of_the_report() -> None:
    args = DSecContainerRunArgs(
        container_image="a:1.0.0",
        memory_limit_mb=4096,
        cpu_cores_limit=4,
        ttl_running_stop=300,
        network_rules={"domain": ["example.org"], "service": False},
        init_user="root",
    )
    environment, options = container_options(args)
    assert (
        environment is None and options["layers"] == ["base/a:1.0.0"] and options["user"] == "root"
    )
    assert options["limits"] == libdsec.SandboxLimits(
        memory_bytes=4096 * 2**20, cpu_millicores=4000
    )
    assert options["ttl"] == libdsec.Ttl(lifetime_ms=300_000)
    assert options["network"] == [libdsec.NetworkRule(kind="domain", target="example.org")]
    rules = {"npm": False, "pypi": True}
    _, options = container_options(DSecContainerRunArgs(container_image="a", network_rules=rules))
    assert options["network"] == [libdsec.NetworkRule(kind="service", target="pypi")]


def test_every_code_has_its_class_with_a_remedy() -> None:
    table = (Path(__file__).parents[2] / "docs/reference/errors.md").read_text()
    for code, kind in ERROR_CLASSES.items():
        retryable = "yes" if kind.retryable else "no"
        row = f"| `{code}` | {kind.status} | {retryable} | {kind.exit_code} | {kind.remedy} |"
        assert row in table and getattr(errors, kind.__name__) is kind


def test_both_faces_have_the_same_methods() -> None:
    faces = [all_exported("Async"), all_exported("")]
    assert set(faces[0]) == set(faces[1]) and len(faces[0]) >= 6
    for name, kind in faces[0].items():
        assert public(kind) == public(faces[1][name]), name


def public(kind: type) -> dict[str, list[str]]:
    """Names and parameters of public methods, each with words of its own."""
    methods = {}
    for name, value in inspect.getmembers(kind, inspect.isroutine):
        if name.startswith("_"):
            continue
        assert inspect.getdoc(value), f"{kind.__name__}.{name} says nothing"
        methods[name] = [*inspect.signature(value).parameters]
    return methods
