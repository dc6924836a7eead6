# Generated from packages/std/src/codes.ts by `npm run generate`. Do not edit.

"""A class for each code of docs/reference/errors.md."""

from libdsec._core.error import DsecError


class InvalidArgumentError(DsecError):
    """Correct the named field and send the request again."""

    code = "invalid-argument"
    status = 400
    retryable = False
    exit_code = 2
    remedy = "Correct the named field and send the request again."


class UnauthenticatedError(DsecError):
    """Send a valid, unexpired API key or ticket."""

    code = "unauthenticated"
    status = 401
    retryable = False
    exit_code = 3
    remedy = "Send a valid, unexpired API key or ticket."


class PermissionDeniedError(DsecError):
    """Use a key whose scopes allow this operation."""

    code = "permission-denied"
    status = 403
    retryable = False
    exit_code = 4
    remedy = "Use a key whose scopes allow this operation."


class NotFoundError(DsecError):
    """Check the name or id; list what exists with the matching ls command."""

    code = "not-found"
    status = 404
    retryable = False
    exit_code = 5
    remedy = "Check the name or id; list what exists with the matching ls command."


class AlreadyExistsError(DsecError):
    """Choose another name, or use the existing object."""

    code = "already-exists"
    status = 409
    retryable = False
    exit_code = 6
    remedy = "Choose another name, or use the existing object."


class ConflictError(DsecError):
    """Read the current revision and try again."""

    code = "conflict"
    status = 409
    retryable = True
    exit_code = 7
    remedy = "Read the current revision and try again."


class IdempotencyConflictError(DsecError):
    """Use a new idempotency key for a request with another body."""

    code = "idempotency-conflict"
    status = 409
    retryable = False
    exit_code = 8
    remedy = "Use a new idempotency key for a request with another body."


class StateConflictError(DsecError):
    """The sandbox is in a state that does not allow this; look at its state first."""

    code = "state-conflict"
    status = 409
    retryable = False
    exit_code = 9
    remedy = "The sandbox is in a state that does not allow this; look at its state first."


class TooLargeError(DsecError):
    """Send less at once, or use the streaming form of the operation."""

    code = "too-large"
    status = 413
    retryable = False
    exit_code = 10
    remedy = "Send less at once, or use the streaming form of the operation."


class RateLimitedError(DsecError):
    """Wait for the time in Retry-After, then try again."""

    code = "rate-limited"
    status = 429
    retryable = True
    exit_code = 11
    remedy = "Wait for the time in Retry-After, then try again."


class QuotaExceededError(DsecError):
    """Stop something, or ask for a larger quota."""

    code = "quota-exceeded"
    status = 429
    retryable = True
    exit_code = 12
    remedy = "Stop something, or ask for a larger quota."


class OverloadedError(DsecError):
    """The node or fleet is at its limit; try again later or on another node."""

    code = "overloaded"
    status = 503
    retryable = True
    exit_code = 13
    remedy = "The node or fleet is at its limit; try again later or on another node."


class UnavailableError(DsecError):
    """The service is not reachable now; try again."""

    code = "unavailable"
    status = 503
    retryable = True
    exit_code = 14
    remedy = "The service is not reachable now; try again."


class DeadlineExceededError(DsecError):
    """Allow more time, or find out what is slow."""

    code = "deadline-exceeded"
    status = 504
    retryable = True
    exit_code = 15
    remedy = "Allow more time, or find out what is slow."


class CancelledError(DsecError):
    """The caller gave up; nothing to do."""

    code = "cancelled"
    status = 499
    retryable = False
    exit_code = 16
    remedy = "The caller gave up; nothing to do."


class UnsupportedError(DsecError):
    """This node or backend cannot do it; `dsec doctor` says what is missing."""

    code = "unsupported"
    status = 501
    retryable = False
    exit_code = 17
    remedy = "This node or backend cannot do it; `dsec doctor` says what is missing."


class InternalError(DsecError):
    """A fault in DSec: report it with the trace id."""

    code = "internal"
    status = 500
    retryable = True
    exit_code = 18
    remedy = "A fault in DSec: report it with the trace id."


class DataLossError(DsecError):
    """Stored bytes do not match their digest; restore or import the object again."""

    code = "data-loss"
    status = 500
    retryable = False
    exit_code = 19
    remedy = "Stored bytes do not match their digest; restore or import the object again."


class StorageFullError(DsecError):
    """Free disk space or inodes, then try again."""

    code = "storage-full"
    status = 507
    retryable = True
    exit_code = 20
    remedy = "Free disk space or inodes, then try again."


class ImportLimitError(DsecError):
    """The archive exceeds an import limit; raise that limit if the source is trusted."""

    code = "import-limit"
    status = 413
    retryable = False
    exit_code = 21
    remedy = "The archive exceeds an import limit; raise that limit if the source is trusted."


class ImportInvalidError(DsecError):
    """The archive or image is malformed; build it again."""

    code = "import-invalid"
    status = 422
    retryable = False
    exit_code = 22
    remedy = "The archive or image is malformed; build it again."


class LayerInvalidError(DsecError):
    """The layer is damaged or uses a feature outside the whitelist; import it again."""

    code = "layer-invalid"
    status = 422
    retryable = False
    exit_code = 23
    remedy = "The layer is damaged or uses a feature outside the whitelist; import it again."


class ProtocolError(DsecError):
    """The peer broke the wire protocol; its connection was closed."""

    code = "protocol"
    status = 502
    retryable = False
    exit_code = 24
    remedy = "The peer broke the wire protocol; its connection was closed."


class FreezeTimeoutError(DsecError):
    """The sandbox did not freeze in time; try again when it is less busy."""

    code = "freeze-timeout"
    status = 503
    retryable = True
    exit_code = 25
    remedy = "The sandbox did not freeze in time; try again when it is less busy."


class AgentLostError(DsecError):
    """The agent inside the sandbox is gone; create a new sandbox."""

    code = "agent-lost"
    status = 502
    retryable = False
    exit_code = 26
    remedy = "The agent inside the sandbox is gone; create a new sandbox."


class CommandNotFoundError(DsecError):
    """The command does not exist inside the sandbox or cannot be executed."""

    code = "command-not-found"
    status = 422
    retryable = False
    exit_code = 27
    remedy = "The command does not exist inside the sandbox or cannot be executed."


class OutputLostError(DsecError):
    """The requested output offset is no longer kept; read from the offset given."""

    code = "output-lost"
    status = 410
    retryable = False
    exit_code = 28
    remedy = "The requested output offset is no longer kept; read from the offset given."


class SecretLostError(DsecError):
    """Revoke the key and make another one; or, if it was rotated, rotate it again."""

    code = "secret-lost"
    status = 410
    retryable = False
    exit_code = 30
    remedy = "Revoke the key and make another one; or, if it was rotated, rotate it again."


class GradeInvalidError(DsecError):
    """The grading run did not report the expected tests; it is not a score."""

    code = "grade-invalid"
    status = 422
    retryable = False
    exit_code = 29
    remedy = "The grading run did not report the expected tests; it is not a score."


__all__ = [
    "AgentLostError",
    "AlreadyExistsError",
    "CancelledError",
    "CommandNotFoundError",
    "ConflictError",
    "DataLossError",
    "DeadlineExceededError",
    "FreezeTimeoutError",
    "GradeInvalidError",
    "IdempotencyConflictError",
    "ImportInvalidError",
    "ImportLimitError",
    "InternalError",
    "InvalidArgumentError",
    "LayerInvalidError",
    "NotFoundError",
    "OutputLostError",
    "OverloadedError",
    "PermissionDeniedError",
    "ProtocolError",
    "QuotaExceededError",
    "RateLimitedError",
    "SecretLostError",
    "StateConflictError",
    "StorageFullError",
    "TooLargeError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
]

ERROR_CLASSES: dict[str, type[DsecError]] = {
    "invalid-argument": InvalidArgumentError,
    "unauthenticated": UnauthenticatedError,
    "permission-denied": PermissionDeniedError,
    "not-found": NotFoundError,
    "already-exists": AlreadyExistsError,
    "conflict": ConflictError,
    "idempotency-conflict": IdempotencyConflictError,
    "state-conflict": StateConflictError,
    "too-large": TooLargeError,
    "rate-limited": RateLimitedError,
    "quota-exceeded": QuotaExceededError,
    "overloaded": OverloadedError,
    "unavailable": UnavailableError,
    "deadline-exceeded": DeadlineExceededError,
    "cancelled": CancelledError,
    "unsupported": UnsupportedError,
    "internal": InternalError,
    "data-loss": DataLossError,
    "storage-full": StorageFullError,
    "import-limit": ImportLimitError,
    "import-invalid": ImportInvalidError,
    "layer-invalid": LayerInvalidError,
    "protocol": ProtocolError,
    "freeze-timeout": FreezeTimeoutError,
    "agent-lost": AgentLostError,
    "command-not-found": CommandNotFoundError,
    "output-lost": OutputLostError,
    "secret-lost": SecretLostError,
    "grade-invalid": GradeInvalidError,
}
