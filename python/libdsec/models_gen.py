# Generated from spec/openapi.json by `npm run generate`. Do not edit.

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel


class AttachResize(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["resize"]
    rows: int
    columns: int


class AttachStdinAck(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["stdin-ack"]
    offset: int


class AttachStdinEnd(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["stdin-end"]
    offset: int


class DeniedEvent(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cursor: str = Field(description="Opaque place in a stream of events.")
    at_ms: int
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    type: Literal["denied"]
    at: Literal["dns", "egress", "packet", "call"]
    reason: str
    target: str | None = None
    port: int | None = None
    process: str | None = None
    version: int = Field(description="Of the rules that were in force.")
    suppressed: int = Field(
        description="Others since the last event, which were only counted."
    )


class DirectoryCreate(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    path: str | None = Field(
        default=None,
        description="UTF-8 path; relative ones start at the working directory of the sandbox.",
    )
    path_base64: str | None = Field(
        default=None,
        description="The same as base64 of its bytes, for a path that is not UTF-8.",
    )
    user: str | None = Field(
        default=None,
        description="Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.",
    )
    mode: int | None = Field(default=None, description="Permission bits, as a decimal number.")
    create_parents: bool | None = None


class DoctorCheck(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    id: str
    group: str
    status: Literal["ok", "degraded", "missing", "unknown"]
    found: str
    needed_for: str
    remedy: str


class DoctorHost(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    os: str
    kernel: str
    architecture: str
    cpus: int
    memory_bytes: int
    uid: int


class DoctorReason(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    check: str
    status: Literal["ok", "degraded", "missing", "unknown"]
    why: str


class EdgeLoad(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    admitting: bool
    refusal: str | None = Field(default=None, description="Why it admits no more.")
    cpu_count: int
    memory_total_bytes: int
    memory_available_bytes: int
    disk_available_bytes: int
    pids_available: int
    cpu_pressure_pct: float | None = None
    memory_pressure_pct: float | None = None
    io_pressure_pct: float | None = None


class Environment(BaseModel):
    """
    An ordered list of layers under a name: base, workspace, toolkits, diffs.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    name: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    layers: list[str]
    revision: int
    updated_at_ms: int


class EnvironmentPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    environments: list[Environment]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class EnvironmentPut(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    layers: list[str]
    revision: int | None = Field(
        default=None, description="Replace only this revision; 0: only if there is none."
    )


class EventType(
    RootModel[Literal["sandbox-state", "exec-exit", "session-end", "denied", "tamper", "lost"]]
):
    root: Literal["sandbox-state", "exec-exit", "session-end", "denied", "tamper", "lost"]


class ExecExit(BaseModel):
    """
    Either `exitCode` or `signal`.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    exit_code: int | None = None
    signal: int | None = None
    core_dumped: bool
    timed_out: bool
    oom_killed: bool
    ended_by_policy: bool | None = Field(
        default=None,
        description="It was ended by a switch to another stage, which took away what it could have had open.",
    )
    trusted: bool = Field(
        description="False in a session, where the sandbox itself reports the status.",
    )


class ExecExitEvent(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cursor: str = Field(description="Opaque place in a stream of events.")
    at_ms: int
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    type: Literal["exec-exit"]
    exec: str = Field(description="Id of a command.")
    exit: ExecExit | None = None


class FileMove(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    source: str | None = Field(
        default=None,
        description="UTF-8 path; relative ones start at the working directory of the sandbox.",
    )
    source_base64: str | None = Field(
        default=None,
        description="The same as base64 of its bytes, for a path that is not UTF-8.",
    )
    target: str | None = Field(
        default=None,
        description="UTF-8 path; relative ones start at the working directory of the sandbox.",
    )
    target_base64: str | None = Field(
        default=None,
        description="The same as base64 of its bytes, for a path that is not UTF-8.",
    )
    user: str | None = Field(
        default=None,
        description="Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.",
    )
    replace: bool | None = None


class FileRule(BaseModel):
    """
    All that can be done there. `hide` stands alone: nothing, there and below, whatever other rules say, and where it can be, as if nothing were there.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    path: str = Field(
        description="An absolute path; * and ? stand for bytes of a name, ** for any number of names. Holds for what it names and for all below.",
    )
    access: list[Literal["read", "write", "exec", "hide"]]


class GradeCommand(BaseModel):
    """
    A program of the grader that reports each test of `expect` once. It runs as user and group 65533 unless `user` says otherwise, and never has a capability.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    argv: list[str]
    cwd: str | None = Field(
        default=None, description="An absolute path inside the sandbox, as /workspace."
    )
    env: dict[str, str] | None = Field(
        default=None,
        description="Names of variables have letters, digits and underscores, as PATH; first no digit.",
    )
    user: str | None = Field(
        default=None,
        description="Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.",
    )
    timeout_ms: int | None = None
    expect: list[str]


class HealthPart(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    ok: bool
    detail: str | None = None


class ImportFormat(RootModel[Literal["tar", "oci-archive", "docker-archive"]]):
    root: Literal["tar", "oci-archive", "docker-archive"]


class Job(BaseModel):
    """
    The sandboxes that carry one job label, counted.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    job: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    creating: int
    running: int
    paused: int
    stopped: int
    failed: int
    first_created_at_ms: int


class JobPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    jobs: list[Job]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class KeyLimits(BaseModel):
    """
    For an agent in a sandbox: the key makes sandboxes of its own and reaches those alone.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    sandboxes_max: int = Field(description="At a time.")
    cpu_millicores: int | None = Field(
        default=None, description="Of each sandbox."
    )
    memory_bytes: int | None = Field(
        default=None, description="Of each sandbox."
    )


class KeyRotate(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    grace_ms: int | None = Field(
        default=None,
        description="How long the secrets before it are good yet: an hour unless it is said; 0: they end.",
    )


class LayerDevice(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    blob_id: str = Field(description="sha256: and 64 hex digits.")
    bytes: int


class LayerKind(
    RootModel[Literal["base", "workspace", "toolkit", "diff", "tools", "grading"]]
):
    root: Literal["base", "workspace", "toolkit", "diff", "tools", "grading"]


class LayerRef(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    ref: str = Field(
        description="kind/name:version, as base/python:3.11.0; the kind is one of LayerKind.",
    )
    layer_id: str = Field(
        description="sha256: and 64 hex digits."
    )
    tree_digest: str = Field(
        description="sha256: and 64 hex digits."
    )
    created_at_ms: int


class LayerRefCreate(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    layer_id: str = Field(
        description="sha256: and 64 hex digits."
    )


class LayerRefPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    refs: list[LayerRef]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class LayerVerifyReport(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    layer_id: str = Field(
        description="sha256: and 64 hex digits."
    )
    ok: bool
    problems: list[str]
    checked_bytes: int


class LostEvent(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cursor: str = Field(description="Opaque place in a stream of events.")
    at_ms: int
    type: Literal["lost"]


class OutputChunk(BaseModel):
    """
    A stretch of output; `base64` where `text` is not exact.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    offset: int
    text: str
    base64: str | None = None


class OutputStream(RootModel[Literal["stdout", "stderr"]]):
    root: Literal["stdout", "stderr"]


class OutputTotals(BaseModel):
    """
    Offsets are absolute; kept are the bytes below `headBytes` and from `tailOffset` on.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    total_bytes: int
    head_bytes: int
    tail_offset: int
    truncated: bool
    ended: bool = Field(description="No more bytes will come.")


class PackDiffRequest(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    ref: str | None = Field(
        default=None,
        description="kind/name:version, as base/python:3.11.0; the kind is one of LayerKind.",
    )


class PackDiffResult(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    layer_id: str = Field(
        description="sha256: and 64 hex digits."
    )
    tree_digest: str = Field(
        description="sha256: and 64 hex digits."
    )
    ref: str | None = Field(
        default=None,
        description="kind/name:version, as base/python:3.11.0; the kind is one of LayerKind.",
    )
    entries: int
    stored_bytes: int
    frozen_ms: float = Field(
        description="How long the sandbox stood still."
    )


class PtySize(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    rows: int
    columns: int


class RollbackRequest(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    snapshot: str = Field(description="Id of a snapshot.")


class SandboxLayer(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    ref: str | None = Field(
        default=None,
        description="kind/name:version, as base/python:3.11.0; the kind is one of LayerKind, and the version may be ^1, ~1.2 or latest as well.",
    )
    layer_id: str = Field(
        description="sha256: and 64 hex digits."
    )


class SandboxLimits(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cpu_millicores: int | None = Field(
        default=None, description="1000 is one processor."
    )
    memory_bytes: int | None = None
    pids_max: int | None = None
    disk_bytes: int | None = Field(
        default=None, description="Of the writable layer."
    )
    inodes_max: int | None = Field(
        default=None, description="Of the writable layer."
    )
    open_files_max: int | None = Field(
        default=None, description="For each process."
    )


class SandboxStateEvent(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cursor: str = Field(description="Opaque place in a stream of events.")
    at_ms: int
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    type: Literal["sandbox-state"]
    state: Literal["creating", "running", "pausing", "paused", "resuming", "snapshotting", "stopping", "stopped", "failed"]
    end_reason: (
        Literal[
            "stopped",
            "ttl",
            "oom",
            "disk",
            "killed",
            "agent",
            "edge-restart",
            "backend-failed",
            "host-lost",
            "protocol",
        ]
        | None
    ) = None
    revision: int


class SandboxTimings(BaseModel):
    """
    Milliseconds from the moment the edge (or the apiserver, in its answers) took the request.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    allocated_ms: float | None = Field(
        default=None, description="The edge had accepted."
    )
    ready_ms: float | None = Field(
        default=None, description="The agent inside had said hello."
    )
    first_command_ms: float | None = Field(
        default=None, description="The first exit code had come back."
    )


class SandboxUsage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cpu_us: int = Field(description="Processor time used.")
    memory_bytes: int
    memory_peak_bytes: int
    disk_bytes: int
    inodes: int
    pids: int


class Session(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    id: str = Field(description="Id of a session.")
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    open: bool
    trusted: Literal[False]
    created_at_ms: int


class SessionEndEvent(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cursor: str = Field(description="Opaque place in a stream of events.")
    at_ms: int
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    type: Literal["session-end"]
    session: str = Field(description="Id of a session.")
    ended_by_policy: bool | None = None


class SessionPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    sessions: list[Session]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class SessionSpec(BaseModel):
    """
    A persistent shell. What it says about its commands is the sandbox's own word: `trusted` is always false.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    shell: list[str] | None = None
    cwd: str | None = Field(
        default=None, description="An absolute path inside the sandbox, as /workspace."
    )
    env: dict[str, str] | None = Field(
        default=None,
        description="Names of variables have letters, digits and underscores, as PATH; first no digit.",
    )
    user: str | None = Field(
        default=None,
        description="Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.",
    )
    pty: PtySize | None = None


class Snapshot(BaseModel):
    """
    A named state: the sandbox's layers and, on top of them, what it had changed.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    id: str = Field(description="Id of a snapshot.")
    name: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    layers: list[SandboxLayer]
    memory: bool
    frozen_ms: float = Field(
        description="How long the sandbox stood still."
    )
    stored_bytes: int
    created_at_ms: int


class SnapshotCreate(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    name: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    memory: bool | None = Field(
        default=None, description="Memory and devices as well: virtual machines only."
    )


class SnapshotPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    snapshots: list[Snapshot]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class SolutionLeft(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    path: str
    reason: Literal["kind", "name", "test", "hard-link", "link-target", "runs-by-itself", "changed"]


class SolutionTaken(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    files: int
    directories: int
    links: int
    bytes: int


class StageSwitch(BaseModel):
    """
    The stage whose rules hold from now on.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    stage: Literal["build", "solve", "grade"]


class StdinAccepted(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    offset: int = Field(description="Taken so far.")


class SyscallCondition(BaseModel):
    """
    Of the low 32 bits of an argument, which is all that the kernel looks at for an `int`.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    argument: int
    equals: int
    mask: int | None = Field(default=None, description="Bits that are looked at; absent: all.")


class SyscallDenial(BaseModel):
    """
    A system call that is refused, with EPERM if nothing else is said. With `when`: if all of it holds.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    call: str
    when: list[SyscallCondition] | None = None
    error: Literal["EPERM", "EACCES", "EINVAL", "ENOSYS"] | None = None


class TamperEvent(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    cursor: str = Field(description="Opaque place in a stream of events.")
    at_ms: int
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    type: Literal["tamper"]
    at: Literal["watched-path"]
    reason: str
    target: str | None = None
    suppressed: int = Field(
        description="Others since the last event, which were only counted."
    )


class TimeoutRequest(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    timeout_ms: int | None = Field(
        default=None,
        description="From the start of the command; absent: none.",
    )


class Ttl(BaseModel):
    """
    What ends a sandbox by itself.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    idle_ms: int | None = Field(
        default=None, description="Without any operation."
    )
    lifetime_ms: int | None = Field(
        default=None, description="From when it is set on, running or not."
    )
    grace_ms: int | None = Field(
        default=None,
        description="Kept after its time is up for scoring; no command starts any more.",
    )


class Version(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    version: str
    api: Literal["v1"]
    frames: int


class AttachAck(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["ack"]
    channel: Literal["stdout", "stderr"]
    offset: int


class AttachEnd(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["end"]
    channel: Literal["stdout", "stderr"]
    offset: int


class AttachGap(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["gap"]
    channel: Literal["stdout", "stderr"]
    offset: int = Field(description="First byte that is lost.")
    next_offset: int = Field(
        description="First byte after the gap."
    )


class AttachSignal(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["signal"]
    signal: int
    scope: Literal["leader", "tree"]


class AuditDenied(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["denied"]
    at: Literal["dns", "egress", "packet", "call"]
    reason: str
    target: str | None = None
    count: int = Field(description="How often, as far as each was looked at.")
    first_at_ms: int
    last_at_ms: int
    port: int | None = None


class AuditTamper(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["tamper"]
    at: Literal["watched-path"]
    reason: str
    target: str | None = None
    count: int = Field(description="How often, as far as each was looked at.")
    first_at_ms: int
    last_at_ms: int


class BranchCreate(BaseModel):
    """
    Several sandboxes from one snapshot. Absent fields are those of the sandbox that it was taken of.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    count: int
    labels: dict[str, str] | None = Field(
        default=None,
        description="Names of labels have a-z, 0-9, dot, underscore and hyphen, as team; first a-z or 0-9.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    limits: SandboxLimits | None = None
    ttl: Ttl | None = None


class DoctorVerdict(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    status: Literal["possible", "degraded", "impossible", "unknown"]
    reasons: list[DoctorReason]


class EdgeSandbox(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    id: str = Field(description="Id of a sandbox: sb-<shard>-<edge>-<random>.")
    state: Literal["creating", "running", "pausing", "paused", "resuming", "snapshotting", "stopping", "stopped", "failed"]
    end_reason: (
        Literal[
            "stopped",
            "ttl",
            "oom",
            "disk",
            "killed",
            "agent",
            "edge-restart",
            "backend-failed",
            "host-lost",
            "protocol",
        ]
        | None
    ) = None
    revision: int
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    created_at_ms: int


class EdgeState(BaseModel):
    """
    What an edge is and has. `revision` is that of the edge as a whole: every change raises it. `full`: sandboxes that are not listed do not exist. `events`: where the event stream goes on after this.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    edge: str = Field(description="Id of an edge.")
    epoch: int = Field(description="Grows with every start of the edge.")
    boot_id: str
    revision: int
    full: bool
    events: str = Field(description="Opaque place in a stream of events.")
    load: EdgeLoad
    backends: list[Literal["fncall", "container", "microvm", "fullvm"]]
    sandboxes: list[EdgeSandbox]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class ErrorBody(BaseModel):
    """
    The body of every response that is not a success.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    code: Literal["invalid-argument", "unauthenticated", "permission-denied", "not-found", "already-exists", "conflict", "idempotency-conflict", "state-conflict", "too-large", "rate-limited", "quota-exceeded", "overloaded", "unavailable", "deadline-exceeded", "cancelled", "unsupported", "internal", "data-loss", "storage-full", "import-limit", "import-invalid", "layer-invalid", "protocol", "freeze-timeout", "agent-lost", "command-not-found", "output-lost", "secret-lost", "grade-invalid"]
    message: str = Field(description="For people; may change.")
    retryable: bool = Field(description="The same request may succeed later.")
    remedy: str = Field(description="What the caller can do about it.")
    details: dict[str, str | float | bool]


class Event(
    RootModel[
        SandboxStateEvent
        | ExecExitEvent
        | SessionEndEvent
        | DeniedEvent
        | TamperEvent
        | LostEvent
    ]
):
    root: SandboxStateEvent | ExecExitEvent | SessionEndEvent | DeniedEvent | TamperEvent | LostEvent


class Exec(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    id: str = Field(description="Id of a command.")
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    sequence: int = Field(description="Place in the sandbox among all operations.")
    session: str | None = Field(default=None, description="Id of a session.")
    command: str = Field(description="Beginning of the command, to show.")
    state: Literal["starting", "running", "exited", "failed", "unknown"]
    exit: ExecExit | None = None
    error: ErrorBody | None = None
    started_at_ms: int
    ended_at_ms: int | None = None
    running_ms: int | None = Field(
        default=None,
        description="Without the time that the sandbox was paused.",
    )
    cpu_us: int | None = None
    memory_peak_bytes: int | None = None
    stdout: OutputTotals
    stderr: OutputTotals


class ExecPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    execs: list[Exec]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class ExecSpec(BaseModel):
    """
    Either `argv`, or `shell`: text for `/bin/sh -c`, or for the session's shell.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    argv: list[str] | None = None
    shell: str | None = None
    session: str | None = Field(default=None, description="Id of a session.")
    cwd: str | None = Field(
        default=None, description="An absolute path inside the sandbox, as /workspace."
    )
    env: dict[str, str] | None = Field(
        default=None,
        description="Names of variables have letters, digits and underscores, as PATH; first no digit.",
    )
    user: str | None = Field(
        default=None,
        description="Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.",
    )
    stdin: bool | None = Field(
        default=None, description="Keep standard input open for bytes that come later."
    )
    pty: PtySize | None = None
    timeout_ms: int | None = Field(
        default=None,
        description="Running time; the time of a paused sandbox does not count.",
    )
    output_bytes_max: int | None = Field(
        default=None,
        description="Kept of each stream: a head and the tail; the rest is counted.",
    )
    wait_ms: int | None = Field(
        default=None,
        description="Wait up to so many milliseconds for a change before answering.",
    )


class ExecStarted(BaseModel):
    """
    With `waitMs` and a command that has ended in time, `stdout` and `stderr` hold the beginning of its output, which is all of it when `totalBytes` says so.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    exec: Exec
    stdout: OutputChunk | None = None
    stderr: OutputChunk | None = None


class FileEntry(BaseModel):
    """
    The forms in base64 are there where the others are not exact.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    name_base64: str | None = None
    kind: Literal["file", "directory", "symlink", "char", "block", "fifo", "socket"]
    mode: int = Field(description="Permission bits, as a decimal number.")
    uid: int
    gid: int
    size_bytes: int
    allocated_bytes: int = Field(
        description="Space taken, less than the size for a file with holes.",
    )
    links: int
    mtime_seconds: int = Field(
        description="Since the Unix epoch; `mtimeNanoseconds` is added.",
    )
    mtime_nanoseconds: int
    symlink_target: str | None = None
    symlink_target_base64: str | None = None


class FilePage(BaseModel):
    """
    In the order of the directory; entries made or removed meanwhile may or may not be seen.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    entries: list[FileEntry]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class GradeRequest(BaseModel):
    """
    `solutionPaths` are what a solver may hand in; `testPaths` below them are never taken. `layers` are of the kinds tools and grading, at /.dsec/NAME.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    solution_paths: list[str]
    test_paths: list[str] | None = None
    layers: list[str] | None = None
    commands: list[GradeCommand]
    limits: SandboxLimits | None = None
    timeout_ms: int | None = Field(
        default=None, description="For all of it; absent: 15 minutes."
    )
    entries_max: int | None = Field(
        default=None, description="Taken; absent: 20,000."
    )
    bytes_max: int | None = Field(
        default=None, description="Taken; absent: 256 MiB."
    )
    full_state: bool | None = Field(
        default=None,
        description="Take what runs by itself (conftest.py, *.pth and the like) and `testPaths` as well, and layers of kind diff: the result is not trusted.",
    )


class GradedTest(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    name: str = Field(description="Name of a test, without control characters.")
    outcome: Literal["passed", "failed", "skipped", "error"]


class Health(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    ok: bool
    parts: list[HealthPart]


class JobFailure(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    error: ErrorBody


class JobResult(BaseModel):
    """
    What became of an operation on all sandboxes of a job. At most 100 failures are told one by one.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    matched: int
    changed: int = Field(
        description="Whose state is now as asked, and was not before."
    )
    failed: int
    failures: list[JobFailure]


class Key(BaseModel):
    """
    An API key without its secret, which is stored hashed.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    id: str = Field(description="Id of an API key; not its secret.")
    name: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    scopes: list[Literal["sandboxes:read", "sandboxes:write", "exec", "files:read", "files:write", "ports", "layers:read", "layers:write", "grading", "policies:loosen", "keys", "node"]]
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    last_used_at_ms: int | None = None
    limits: KeyLimits | None = None
    sandbox: str | None = Field(
        default=None, description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )


class KeyCreate(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    name: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    scopes: list[Literal["sandboxes:read", "sandboxes:write", "exec", "files:read", "files:write", "ports", "layers:read", "layers:write", "grading", "policies:loosen", "keys", "node"]]
    lifetime_ms: int | None = None
    principal: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    project: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    limits: KeyLimits | None = None
    sandbox: str | None = Field(
        default=None, description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )


class KeyCreated(BaseModel):
    """
    The only time that the secret is told. A repetition of the request tells the key without it.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    key: Key
    secret: str | None = None


class KeyPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    keys: list[Key]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class Layer(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    layer_id: str = Field(
        description="sha256: and 64 hex digits."
    )
    tree_digest: str = Field(
        description="sha256: and 64 hex digits."
    )
    meta_bytes: int
    entries: int
    content_bytes: int = Field(
        description="Of all files, as their sizes say."
    )
    stored_bytes: int = Field(
        description="Of the data that this layer added to the store.",
    )
    shared_bytes: int = Field(
        description="Of the data that it found in other layers.",
    )
    devices: list[LayerDevice]


class LayerImportEvent(BaseModel):
    """
    A line of the stream that an import answers with. The last one has `layer` or `error`.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    entries: int
    content_bytes: int
    layer: Layer | None = None
    error: ErrorBody | None = None


class LayerPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    layers: list[Layer]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class NetworkRule(BaseModel):
    """
    One thing that a sandbox may reach; everything else is denied.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    kind: Literal["service", "domain", "address"]
    target: str = Field(
        description="Name of a service, a domain (`*.` in front for all below), or an address range.",
    )
    ports: list[int] | None = None
    protocol: Literal["tcp", "udp"] | None = None


class NetworkUpdate(BaseModel):
    """
    All rules from now on. What they do not open is shut when the answer comes, open connections included.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    version: int = Field(
        description="Of the rules that are replaced: `conflict` where others are in force.",
    )
    rules: list[NetworkRule]


class Protection(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    name: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    state: Literal["enforced", "degraded", "absent"]
    detail: str | None = None


class SandboxNetwork(BaseModel):
    """
    Of a sandbox that was created with rules: its address on the node, and the rules in force.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    address: str
    version: int = Field(
        description="Of the rules; grows with every change of them."
    )
    rules: list[NetworkRule]


class SignalRequest(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    signal: int
    scope: Literal["leader", "tree"] | None = None


class SocketRule(BaseModel):
    """
    Sockets that may be made; without `types`, all types that the platform has.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    family: Literal["unix", "inet", "inet6", "netlink"]
    types: list[Literal["stream", "dgram", "raw", "seqpacket"]] | None = None


class AttachAttached(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["attached"]
    exec: Exec
    stdin_offset: int = Field(
        description="Bytes of stdin taken so far."
    )


class AttachClientMessage(
    RootModel[AttachAck | AttachStdinEnd | AttachResize | AttachSignal]
):
    root: AttachAck | AttachStdinEnd | AttachResize | AttachSignal


class AttachError(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["error"]
    error: ErrorBody


class AttachExit(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["exit"]
    exec: Exec


class AttachServerMessage(
    RootModel[
        AttachAttached
        | AttachStdinAck
        | AttachGap
        | AttachEnd
        | AttachExit
        | AttachError
    ]
):
    root: AttachAttached | AttachStdinAck | AttachGap | AttachEnd | AttachExit | AttachError


class AuditRecord(BaseModel):
    """
    What one sandbox tried, the first kinds of attempts by themselves and the others as a number.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    sandbox: str = Field(
        description="Id of a sandbox: sb-<shard>-<edge>-<random>."
    )
    created_at_ms: int
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    since_ms: int = Field(
        description="From when on it was counted: the start of the edge, or of the sandbox.",
    )
    total: int = Field(description="All attempts, those that are lost among them.")
    lost: int = Field(
        description="Attempts of which nothing but their number is known."
    )
    rows: list[AuditDenied | AuditTamper]


class DoctorReport(BaseModel):
    """
    What `dsec doctor --json` prints: one probe of a host.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    version: Literal[1]
    taken_at: str
    host: DoctorHost
    checks: list[DoctorCheck]
    verdicts: dict[str, DoctorVerdict]


class GradeReport(BaseModel):
    """
    Every expected test, as the runner told it. `output` is the end of what each command wrote.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    trusted: bool = Field(description="False with `fullState`.")
    total: int
    passed: int
    tests: list[GradedTest]
    taken: SolutionTaken
    left: list[SolutionLeft]
    left_count: int = Field(
        description="Of entries that were not taken; `left` shows the first.",
    )
    output: list[str]
    duration_ms: int


class PolicyStage(BaseModel):
    """
    Laid over the rest while the stage lasts.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    files: list[FileRule] | None = None
    sockets: list[SocketRule] | None = None
    network: list[NetworkRule] | None = None
    capabilities: list[Literal["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service", "setfcap"]] | None = (
        None
    )
    syscalls: list[SyscallDenial] | None = None
    devices: list[Literal["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"]] | None = (
        None
    )
    require: list[Literal["files", "sockets", "network", "capabilities", "syscalls", "devices", "mounts", "landlock", "apparmor", "seccomp", "device-rules", "agent"]] | None = (
        None
    )


class PolicyStages(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    build: PolicyStage | None = None
    solve: PolicyStage | None = None
    grade: PolicyStage | None = None


class AuditPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    records: list[AuditRecord]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")


class GradeEvent(BaseModel):
    """
    A line of the stream that a grade answers with. The last one has `report` or `error`.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    stage: Literal["compose", "collect", "apply", "test"]
    report: GradeReport | None = None
    error: ErrorBody | None = None


class Policy(BaseModel):
    """
    What a sandbox may do. `files`, `syscalls` and `require` of an overlay add to what lies below; its other lists replace theirs.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    version: Literal[1]
    description: str | None = None
    extends: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    files: list[FileRule] | None = None
    sockets: list[SocketRule] | None = None
    network: list[NetworkRule] | None = None
    capabilities: list[Literal["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service", "setfcap"]] | None = (
        None
    )
    syscalls: list[SyscallDenial] | None = None
    devices: list[Literal["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"]] | None = (
        None
    )
    require: list[Literal["files", "sockets", "network", "capabilities", "syscalls", "devices", "mounts", "landlock", "apparmor", "seccomp", "device-rules", "agent"]] | None = (
        None
    )
    stages: PolicyStages | None = None


class SandboxCreate(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    backend: Literal["fncall", "container", "microvm", "fullvm"] | None = None
    environment: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    layers: list[str] | None = None
    limits: SandboxLimits | None = None
    network: list[NetworkRule] | None = None
    policy: str | Policy | None = Field(
        default=None,
        description="Name of a profile (open, default, locked, or one of the operator), or the document itself.",
    )
    stage: Literal["build", "solve", "grade"] | None = None
    env: dict[str, str] | None = Field(
        default=None,
        description="Names of variables have letters, digits and underscores, as PATH; first no digit.",
    )
    user: str | None = Field(
        default=None,
        description="Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.",
    )
    cwd: str | None = Field(
        default=None, description="An absolute path inside the sandbox, as /workspace."
    )
    labels: dict[str, str] | None = Field(
        default=None,
        description="Names of labels have a-z, 0-9, dot, underscore and hyphen, as team; first a-z or 0-9.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    ttl: Ttl | None = None
    isolation: Literal["job", "project", "node"] | None = None
    grading: bool | None = Field(
        default=None,
        description="It may have layers of kind grading, and the tools of the platform at /.dsec. Only keys with the scope grading make it, run commands in it, and reach its files and ports.",
    )
    watch_paths: list[str] | None = None
    require_protections: list[str] | None = None
    allow_degraded: bool | None = Field(
        default=None,
        description="Start even where the node lacks a protection, and say so.",
    )
    wait_for: Literal["allocated", "ready"] | None = None


class SandboxSpec(BaseModel):
    """
    Either a named `environment` or the `layers` themselves. What is absent gets its default once.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    backend: Literal["fncall", "container", "microvm", "fullvm"] | None = None
    environment: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    layers: list[str] | None = None
    limits: SandboxLimits | None = None
    network: list[NetworkRule] | None = None
    policy: str | Policy | None = Field(
        default=None,
        description="Name of a profile (open, default, locked, or one of the operator), or the document itself.",
    )
    stage: Literal["build", "solve", "grade"] | None = None
    env: dict[str, str] | None = Field(
        default=None,
        description="Names of variables have letters, digits and underscores, as PATH; first no digit.",
    )
    user: str | None = Field(
        default=None,
        description="Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.",
    )
    cwd: str | None = Field(
        default=None, description="An absolute path inside the sandbox, as /workspace."
    )
    labels: dict[str, str] | None = Field(
        default=None,
        description="Names of labels have a-z, 0-9, dot, underscore and hyphen, as team; first a-z or 0-9.",
    )
    job: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    ttl: Ttl | None = None
    isolation: Literal["job", "project", "node"] | None = None
    grading: bool | None = Field(
        default=None,
        description="It may have layers of kind grading, and the tools of the platform at /.dsec. Only keys with the scope grading make it, run commands in it, and reach its files and ports.",
    )
    watch_paths: list[str] | None = None
    require_protections: list[str] | None = None
    allow_degraded: bool | None = Field(
        default=None,
        description="Start even where the node lacks a protection, and say so.",
    )


class Sandbox(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    id: str = Field(description="Id of a sandbox: sb-<shard>-<edge>-<random>.")
    state: Literal["creating", "running", "pausing", "paused", "resuming", "snapshotting", "stopping", "stopped", "failed"]
    end_reason: (
        Literal[
            "stopped",
            "ttl",
            "oom",
            "disk",
            "killed",
            "agent",
            "edge-restart",
            "backend-failed",
            "host-lost",
            "protocol",
        ]
        | None
    ) = None
    error: ErrorBody | None = None
    revision: int = Field(description="Grows with every change of this record.")
    edge: str = Field(description="Id of an edge.")
    project: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    principal: str = Field(
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    spec: SandboxSpec
    layers: list[SandboxLayer]
    created_at_ms: int
    ended_at_ms: int | None = None
    expires_at_ms: int | None = Field(
        default=None,
        description="By its lifetime or idle time, whichever is first.",
    )
    timings: SandboxTimings
    protections: list[Protection]
    stage: Literal["build", "solve", "grade"] | None = None
    upper_driver: str | None = Field(
        default=None,
        description="A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.",
    )
    network: SandboxNetwork | None = None
    usage: SandboxUsage | None = None


class SandboxBatchCreate(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    count: int
    spec: SandboxSpec


class SandboxBatchItem(BaseModel):
    """
    A line of the answer to a batch: a sandbox that is ready, or why there is none.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    index: int
    sandbox: Sandbox | None = None
    error: ErrorBody | None = None


class SandboxPage(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        populate_by_name=True,
    )
    sandboxes: list[Sandbox]
    cursor: str | None = Field(default=None, description="Opaque place in a listing or stream.")
