"""Client of DSec: sandboxes for training and evaluating language-model agents.

    from libdsec import Sandbox

    with Sandbox.create("example") as sandbox:
        print(sandbox.exec("python3 -m pytest -q", cwd="/workspace/spans").stdout)

`Client`, `Sandbox` and what they give are for ordinary code; `AsyncClient` and `AsyncSandbox` have the same
methods for `async` code. Times that a caller gives are seconds, unless a name says otherwise; sizes are
bytes.
"""

from libdsec import errors, errors_gen
from libdsec import models_gen as models
from libdsec._async.client import AsyncClient
from libdsec._async.command import AsyncCommand
from libdsec._async.connection import AsyncConnection
from libdsec._async.files import AsyncFiles
from libdsec._async.layers import AsyncEnvironments, AsyncLayers
from libdsec._async.platform import AsyncJobs, AsyncKeys
from libdsec._async.sandbox import AsyncSandbox
from libdsec._async.session import AsyncSession
from libdsec._core.attach import OutputChunk
from libdsec._core.event import Event
from libdsec._core.paths import FileInfo
from libdsec._core.result import ExecResult, SandboxFailure
from libdsec._core.spec import BatchOptions, CreateOptions, SpecOptions
from libdsec._core.version import VERSION as __version__
from libdsec._sync_gen.client import Client
from libdsec._sync_gen.command import Command
from libdsec._sync_gen.connection import Connection
from libdsec._sync_gen.files import Files
from libdsec._sync_gen.layers import Environments, Layers
from libdsec._sync_gen.platform import Jobs, Keys
from libdsec._sync_gen.sandbox import Sandbox
from libdsec._sync_gen.session import Session
from libdsec.errors import CommandFailed, DsecError, Timeout
from libdsec.errors_gen import *  # noqa: F403
from libdsec.models_gen import (
    GradeCommand,
    KeyLimits,
    NetworkRule,
    Policy,
    PtySize,
    SandboxLimits,
    Ttl,
)
from libdsec.report import DSecClient, DSecContainerRunArgs

__all__ = [
    "AsyncClient",
    "AsyncCommand",
    "AsyncConnection",
    "AsyncEnvironments",
    "AsyncFiles",
    "AsyncJobs",
    "AsyncKeys",
    "AsyncLayers",
    "AsyncSandbox",
    "AsyncSession",
    "BatchOptions",
    "Client",
    "Command",
    "CommandFailed",
    "Connection",
    "CreateOptions",
    "DSecClient",
    "DSecContainerRunArgs",
    "DsecError",
    "Environments",
    "Event",
    "ExecResult",
    "FileInfo",
    "Files",
    "GradeCommand",
    "Jobs",
    "KeyLimits",
    "Keys",
    "Layers",
    "NetworkRule",
    "OutputChunk",
    "Policy",
    "PtySize",
    "Sandbox",
    "SandboxFailure",
    "SandboxLimits",
    "Session",
    "SpecOptions",
    "Timeout",
    "Ttl",
    "__version__",
    "errors",
    "models",
]
__all__ += errors_gen.__all__
