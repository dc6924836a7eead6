# Generated from packages/protocol/src/api by `npm run generate`. Do not edit.

"""The operations of the API."""

from libdsec._core.route import Route

CREATE_SANDBOX = Route("createSandbox", "POST", "/v1/sandboxes", "keyed")
CREATE_SANDBOXES = Route("createSandboxes", "POST", "/v1/sandbox-batches", "keyed")
LIST_SANDBOXES = Route("listSandboxes", "GET", "/v1/sandboxes", "read")
GET_SANDBOX = Route("getSandbox", "GET", "/v1/sandboxes/{sandboxId}", "read")
STOP_SANDBOX = Route("stopSandbox", "POST", "/v1/sandboxes/{sandboxId}/stop", "idempotent")
PAUSE_SANDBOX = Route("pauseSandbox", "POST", "/v1/sandboxes/{sandboxId}/pause", "idempotent")
RESUME_SANDBOX = Route("resumeSandbox", "POST", "/v1/sandboxes/{sandboxId}/resume", "idempotent")
RENEW_SANDBOX = Route("renewSandbox", "PUT", "/v1/sandboxes/{sandboxId}/ttl", "idempotent")
UPDATE_NETWORK = Route("updateNetwork", "PUT", "/v1/sandboxes/{sandboxId}/network", "idempotent")
SET_SANDBOX_STAGE = Route(
    "setSandboxStage", "PUT", "/v1/sandboxes/{sandboxId}/policy/stage", "idempotent"
)
LOOSEN_SANDBOX_STAGE = Route(
    "loosenSandboxStage", "PUT", "/v1/sandboxes/{sandboxId}/policy/loosened-stage", "idempotent"
)
ROLLBACK_SANDBOX = Route("rollbackSandbox", "POST", "/v1/sandboxes/{sandboxId}/rollback", "keyed")
PACK_DIFF = Route("packDiff", "POST", "/v1/sandboxes/{sandboxId}/pack-diff", "keyed")
CREATE_SNAPSHOT = Route("createSnapshot", "POST", "/v1/sandboxes/{sandboxId}/snapshots", "keyed")
LIST_SNAPSHOTS = Route("listSnapshots", "GET", "/v1/snapshots", "read")
GET_SNAPSHOT = Route("getSnapshot", "GET", "/v1/snapshots/{snapshotId}", "read")
REMOVE_SNAPSHOT = Route("removeSnapshot", "DELETE", "/v1/snapshots/{snapshotId}", "idempotent")
BRANCH_SNAPSHOT = Route("branchSnapshot", "POST", "/v1/snapshots/{snapshotId}/branches", "keyed")
START_EXEC = Route("startExec", "POST", "/v1/sandboxes/{sandboxId}/execs", "keyed")
LIST_EXECS = Route("listExecs", "GET", "/v1/sandboxes/{sandboxId}/execs", "read")
GET_EXEC = Route("getExec", "GET", "/v1/sandboxes/{sandboxId}/execs/{execId}", "read")
READ_EXEC_OUTPUT = Route(
    "readExecOutput", "GET", "/v1/sandboxes/{sandboxId}/execs/{execId}/output", "read"
)
WRITE_EXEC_STDIN = Route(
    "writeExecStdin", "POST", "/v1/sandboxes/{sandboxId}/execs/{execId}/stdin", "idempotent"
)
SIGNAL_EXEC = Route(
    "signalExec", "POST", "/v1/sandboxes/{sandboxId}/execs/{execId}/signal", "keyed"
)
RESIZE_EXEC = Route(
    "resizeExec", "PUT", "/v1/sandboxes/{sandboxId}/execs/{execId}/pty", "idempotent"
)
SET_EXEC_TIMEOUT = Route(
    "setExecTimeout", "PUT", "/v1/sandboxes/{sandboxId}/execs/{execId}/timeout", "idempotent"
)
ATTACH_EXEC = Route(
    "attachExec", "GET", "/v1/sandboxes/{sandboxId}/execs/{execId}/attach", "idempotent"
)
OPEN_SESSION = Route("openSession", "POST", "/v1/sandboxes/{sandboxId}/sessions", "keyed")
LIST_SESSIONS = Route("listSessions", "GET", "/v1/sandboxes/{sandboxId}/sessions", "read")
CLOSE_SESSION = Route(
    "closeSession", "DELETE", "/v1/sandboxes/{sandboxId}/sessions/{sessionId}", "idempotent"
)
CONNECT_PORT = Route(
    "connectPort", "GET", "/v1/sandboxes/{sandboxId}/ports/{port}/connect", "idempotent"
)
READ_FILE = Route("readFile", "GET", "/v1/sandboxes/{sandboxId}/files/content", "read")
WRITE_FILE = Route("writeFile", "PUT", "/v1/sandboxes/{sandboxId}/files/content", "idempotent")
STAT_FILE = Route("statFile", "GET", "/v1/sandboxes/{sandboxId}/files/stat", "read")
LIST_FILES = Route("listFiles", "GET", "/v1/sandboxes/{sandboxId}/files", "read")
MAKE_DIRECTORY = Route(
    "makeDirectory", "POST", "/v1/sandboxes/{sandboxId}/files/directory", "keyed"
)
MOVE_FILE = Route("moveFile", "POST", "/v1/sandboxes/{sandboxId}/files/move", "keyed")
REMOVE_FILE = Route("removeFile", "DELETE", "/v1/sandboxes/{sandboxId}/files", "keyed")
GRADE_SANDBOX = Route("gradeSandbox", "POST", "/v1/sandboxes/{sandboxId}/grade", "idempotent")
IMPORT_LAYER = Route("importLayer", "POST", "/v1/layer-imports", "idempotent")
LIST_LAYERS = Route("listLayers", "GET", "/v1/layers", "read")
GET_LAYER = Route("getLayer", "GET", "/v1/layers/{layerId}", "read")
VERIFY_LAYER = Route("verifyLayer", "POST", "/v1/layers/{layerId}/verify", "read")
REMOVE_LAYER = Route("removeLayer", "DELETE", "/v1/layers/{layerId}", "idempotent")
LIST_LAYER_REFS = Route("listLayerRefs", "GET", "/v1/layer-refs", "read")
RESOLVE_LAYER_REF = Route("resolveLayerRef", "GET", "/v1/resolve", "read")
CREATE_LAYER_REF = Route(
    "createLayerRef", "PUT", "/v1/layer-refs/{kind}/{name}/{version}", "idempotent"
)
REMOVE_LAYER_REF = Route(
    "removeLayerRef", "DELETE", "/v1/layer-refs/{kind}/{name}/{version}", "idempotent"
)
LIST_ENVIRONMENTS = Route("listEnvironments", "GET", "/v1/environments", "read")
GET_ENVIRONMENT = Route("getEnvironment", "GET", "/v1/environments/{name}", "read")
PUT_ENVIRONMENT = Route("putEnvironment", "PUT", "/v1/environments/{name}", "idempotent")
REMOVE_ENVIRONMENT = Route("removeEnvironment", "DELETE", "/v1/environments/{name}", "idempotent")
LIST_JOBS = Route("listJobs", "GET", "/v1/jobs", "read")
GET_JOB = Route("getJob", "GET", "/v1/jobs/{jobId}", "read")
PAUSE_JOB = Route("pauseJob", "POST", "/v1/jobs/{jobId}/pause", "idempotent")
RESUME_JOB = Route("resumeJob", "POST", "/v1/jobs/{jobId}/resume", "idempotent")
STOP_JOB = Route("stopJob", "POST", "/v1/jobs/{jobId}/stop", "idempotent")
STREAM_EVENTS = Route("streamEvents", "GET", "/v1/events", "read")
GET_AUDIT = Route("getAudit", "GET", "/v1/audit", "read")
CREATE_KEY = Route("createKey", "POST", "/v1/keys", "keyed")
LIST_KEYS = Route("listKeys", "GET", "/v1/keys", "read")
ROTATE_KEY = Route("rotateKey", "POST", "/v1/keys/{keyId}/rotate", "keyed")
REVOKE_KEY = Route("revokeKey", "DELETE", "/v1/keys/{keyId}", "idempotent")
GET_EDGE_STATE = Route("getEdgeState", "GET", "/v1/edge/state", "read")
GET_DOCTOR_REPORT = Route("getDoctorReport", "GET", "/v1/doctor", "read")
GET_METRICS = Route("getMetrics", "GET", "/v1/metrics", "read")
GET_HEALTH = Route("getHealth", "GET", "/v1/health", "read")
GET_VERSION = Route("getVersion", "GET", "/v1/version", "read")
GET_OPEN_API = Route("getOpenApi", "GET", "/v1/openapi.json", "read")
