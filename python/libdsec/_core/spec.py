"""From what callers write to what the API takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar

from pydantic import BaseModel, ValidationError

from libdsec import models_gen as models
from libdsec._core.answer import first_problem
from libdsec.errors import InvalidArgumentError

M = TypeVar("M", bound=BaseModel)

Backend = Literal["fncall", "container", "microvm", "fullvm"]
Isolation = Literal["job", "project", "node"]
Stage = Literal["build", "solve", "grade"]
SandboxState = Literal[
    "creating",
    "running",
    "pausing",
    "paused",
    "resuming",
    "snapshotting",
    "stopping",
    "stopped",
    "failed",
]
OutputStream = Literal["stdout", "stderr"]
# Of each output, what is kept and what a result holds where the caller does not say.
OUTPUT_BYTES_MAX = 64 * 2**20

CommandLine = str | Sequence[str]


class SpecOptions(TypedDict, total=False):
    """What a sandbox shall be. Models may also be given as mappings with the names of their fields.

    `layers`: instead of an environment, `kind/name:version` each, the base first. `backend`: what runs it.
    `limits`: processors in thousandths, memory and disk in bytes. `network`: what it may reach; nothing,
    where absent. `policy`: what it may do, as a document or the name of a profile, and `stage`: the one
    of its stages to begin with. `env`, `user`, `cwd`: defaults of its commands. `watch_paths`: what is
    changed there, or below, is told as events `tamper`. `labels`, `job`: to find it, and to act on many.
    `ttl`: milliseconds until it ends by itself. `isolation`: who may share its layers in memory.
    `require_protections`, `allow_degraded`: what the node must be able to enforce. `grading`: for graders
    alone, see the guide to grading.
    """

    layers: Sequence[str] | None
    backend: Backend | None
    limits: models.SandboxLimits | Mapping[str, Any] | None
    network: Sequence[models.NetworkRule | Mapping[str, Any]] | None
    policy: str | models.Policy | Mapping[str, Any] | None
    stage: Stage | None
    env: Mapping[str, str] | None
    user: str | None
    cwd: str | None
    watch_paths: Sequence[str] | None
    labels: Mapping[str, str] | None
    job: str | None
    ttl: models.Ttl | Mapping[str, Any] | None
    isolation: Isolation | None
    require_protections: Sequence[str] | None
    allow_degraded: bool | None
    grading: bool | None


class BatchOptions(SpecOptions, total=False):
    """`idempotency_key`: of this call, made where absent. `timeout`: seconds for the call."""

    idempotency_key: str | None
    timeout: float | None


class CreateOptions(BatchOptions, total=False):
    """`wait_for`: `ready` (default), or `allocated`: at once when a node has accepted."""

    wait_for: Literal["allocated", "ready"] | None


class GradeOptions(TypedDict, total=False):
    """`solution_paths` and `commands` are needed.

    `commands`: programs of the grader, each with the tests that it has to report (`expect`). `test_paths`:
    below the solution paths, never taken. `layers`: of the kinds `tools` and `grading`, at `/.dsec/<name>`.
    `full_state`: take also what acts on tests; the result is not trusted. `timeout`: seconds for all of it,
    900 where absent.
    """

    solution_paths: Sequence[str]
    commands: Sequence[models.GradeCommand | Mapping[str, Any]]
    test_paths: Sequence[str] | None
    layers: Sequence[str] | None
    limits: models.SandboxLimits | Mapping[str, Any] | None
    entries_max: int | None
    bytes_max: int | None
    full_state: bool | None
    timeout: float | None


CALL_OPTIONS = ("idempotency_key", "timeout")


def spec_fields(environment: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a spec, without those that are not set."""
    fields: dict[str, Any] = {"environment": environment}
    fields.update((name, value) for name, value in options.items() if name not in CALL_OPTIONS)
    if fields.get("limits") is not None:
        fields["limits"] = as_model(models.SandboxLimits, fields["limits"])
    if fields.get("ttl") is not None:
        fields["ttl"] = as_model(models.Ttl, fields["ttl"])
    if fields.get("policy") is not None and not isinstance(fields["policy"], str):
        fields["policy"] = as_model(models.Policy, fields["policy"])
    if fields.get("network") is not None:
        fields["network"] = [as_model(models.NetworkRule, rule) for rule in fields["network"]]
    return {name: value for name, value in fields.items() if value is not None}


def grade_request(options: GradeOptions) -> models.GradeRequest:
    fields = {name: value for name, value in options.items() if value is not None}
    if "timeout" in fields:
        fields["timeout_ms"] = milliseconds(options["timeout"] or 0)
        del fields["timeout"]
    fields["commands"] = [as_model(models.GradeCommand, each) for each in options["commands"]]
    if "limits" in fields:
        fields["limits"] = as_model(models.SandboxLimits, options["limits"] or {})
    return as_model(models.GradeRequest, fields)


def as_model(kind: type[M], value: M | Mapping[str, Any]) -> M:
    """The model of a mapping. `InvalidArgumentError` for a name that the model does not have."""
    if isinstance(value, kind):
        return value
    names = set(kind.model_fields) | {field.alias for field in kind.model_fields.values()}
    for name in value:
        if name not in names:
            known = ", ".join(kind.model_fields)
            raise InvalidArgumentError(
                f"{kind.__name__} has no {name}; it has {known}", details={"field": str(name)}
            )
    try:
        return kind.model_validate(value)
    except ValidationError as cause:
        field = ".".join(str(part) for part in cause.errors()[0]["loc"])
        raise InvalidArgumentError(first_problem(cause), details={"field": field}) from cause


def exec_spec(
    command: CommandLine,
    *,
    timeout: float | None = None,
    max_output_bytes: int | None = None,
    **fields: Any,
) -> models.ExecSpec:
    """A text goes to the shell, a list is the program and its arguments. `timeout`: seconds."""
    what = {"shell": command} if isinstance(command, str) else {"argv": list(command)}
    set_fields = {name: value for name, value in fields.items() if value is not None}
    set_fields["output_bytes_max"] = (
        OUTPUT_BYTES_MAX if max_output_bytes is None else max_output_bytes
    )
    if timeout is not None:
        set_fields["timeout_ms"] = max(1, milliseconds(timeout))
    return as_model(models.ExecSpec, {**what, **set_fields})


def as_bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
