/* Generated from packages/protocol by `npm run generate`. Do not edit. */
#include "frame.h"

static const struct dsec_field dsec_msg_hello_fields[] = {
	{ .name = "nonce", .tag = 1, .offset = offsetof(struct dsec_msg_hello, nonce),
	  .kind = DSEC_KIND_BYTES, .optional = false, .min = INT64_C(16), .max = INT64_C(16),
	  .bytes_max = 16 },
	{ .name = "versionMax", .tag = 2,
	  .offset = offsetof(struct dsec_msg_hello, version_max), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(255), .bytes_max = 1 },
	{ .name = "sandboxId", .tag = 3,
	  .offset = offsetof(struct dsec_msg_hello, sandbox_id), .kind = DSEC_KIND_STRING,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(40), .bytes_max = 40 },
};

const struct dsec_message dsec_msg_hello = {
	.name = "hello",
	.fields = dsec_msg_hello_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_hello),
	.bytes_max = 75,
};

static const struct dsec_field dsec_msg_welcome_fields[] = {
	{ .name = "nonce", .tag = 1, .offset = offsetof(struct dsec_msg_welcome, nonce),
	  .kind = DSEC_KIND_BYTES, .optional = false, .min = INT64_C(16), .max = INT64_C(16),
	  .bytes_max = 16 },
	{ .name = "version", .tag = 2, .offset = offsetof(struct dsec_msg_welcome, version),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(1), .max = INT64_C(255),
	  .bytes_max = 1 },
	{ .name = "agentVersion", .tag = 3,
	  .offset = offsetof(struct dsec_msg_welcome, agent_version),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(64),
	  .bytes_max = 64 },
	{ .name = "instance", .tag = 4,
	  .offset = offsetof(struct dsec_msg_welcome, instance), .kind = DSEC_KIND_BYTES,
	  .optional = false, .min = INT64_C(16), .max = INT64_C(16), .bytes_max = 16 },
};

const struct dsec_message dsec_msg_welcome = {
	.name = "welcome",
	.fields = dsec_msg_welcome_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_welcome),
	.bytes_max = 121,
};


const struct dsec_message dsec_msg_empty = {
	.name = "empty",
	.fields = NULL,
	.field_count = 0,
	.size = sizeof(struct dsec_msg_empty),
	.bytes_max = 0,
};

static const struct dsec_field dsec_msg_error_fields[] = {
	{ .name = "code", .tag = 1, .offset = offsetof(struct dsec_msg_error, code),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "message", .tag = 2, .offset = offsetof(struct dsec_msg_error, message),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(1024), .bytes_max = 1024 },
	{ .name = "errnoValue", .tag = 3,
	  .offset = offsetof(struct dsec_msg_error, errno_value), .kind = DSEC_KIND_I32,
	  .optional = true, .min = INT64_C(1), .max = INT64_C(4095), .bytes_max = 4 },
};

const struct dsec_message dsec_msg_error = {
	.name = "error",
	.fields = dsec_msg_error_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_error),
	.bytes_max = 1086,
};

static const struct dsec_field dsec_msg_reseed_fields[] = {
	{ .name = "entropy", .tag = 1, .offset = offsetof(struct dsec_msg_reseed, entropy),
	  .kind = DSEC_KIND_BYTES, .optional = false, .min = INT64_C(32),
	  .max = INT64_C(512), .bytes_max = 512 },
	{ .name = "wallMs", .tag = 2, .offset = offsetof(struct dsec_msg_reseed, wall_ms),
	  .kind = DSEC_KIND_U64, .optional = true, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "hostname", .tag = 3, .offset = offsetof(struct dsec_msg_reseed, hostname),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(63),
	  .bytes_max = 63 },
	{ .name = "machineId", .tag = 4,
	  .offset = offsetof(struct dsec_msg_reseed, machine_id), .kind = DSEC_KIND_BYTES,
	  .optional = true, .min = INT64_C(16), .max = INT64_C(16), .bytes_max = 16 },
};

const struct dsec_message dsec_msg_reseed = {
	.name = "reseed",
	.fields = dsec_msg_reseed_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_reseed),
	.bytes_max = 623,
};

static const struct dsec_field dsec_msg_pty_size_fields[] = {
	{ .name = "rows", .tag = 1, .offset = offsetof(struct dsec_msg_pty_size, rows),
	  .kind = DSEC_KIND_U16, .optional = false, .min = INT64_C(1), .max = INT64_C(65535),
	  .bytes_max = 2 },
	{ .name = "columns", .tag = 2, .offset = offsetof(struct dsec_msg_pty_size, columns),
	  .kind = DSEC_KIND_U16, .optional = false, .min = INT64_C(1), .max = INT64_C(65535),
	  .bytes_max = 2 },
};

const struct dsec_message dsec_msg_pty_size = {
	.name = "pty-size",
	.fields = dsec_msg_pty_size_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_pty_size),
	.bytes_max = 16,
};

static const struct dsec_field dsec_msg_exec_start_fields[] = {
	{ .name = "execId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_exec_start, exec_id), .kind = DSEC_KIND_STRING,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(40), .bytes_max = 40 },
	{ .name = "argv", .tag = 2, .offset = offsetof(struct dsec_msg_exec_start, argv),
	  .kind = DSEC_KIND_LIST, .optional = true, .min = INT64_C(1), .max = INT64_C(4096),
	  .bytes_max = 163840, .item_bytes_max = 131071 },
	{ .name = "shell", .tag = 3, .offset = offsetof(struct dsec_msg_exec_start, shell),
	  .kind = DSEC_KIND_PATH, .optional = true, .min = INT64_C(1),
	  .max = INT64_C(131071), .bytes_max = 131071 },
	{ .name = "sessionId", .tag = 4,
	  .offset = offsetof(struct dsec_msg_exec_start, session_id),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "cwd", .tag = 5, .offset = offsetof(struct dsec_msg_exec_start, cwd),
	  .kind = DSEC_KIND_PATH, .optional = true, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "env", .tag = 6, .offset = offsetof(struct dsec_msg_exec_start, env),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(1024),
	  .bytes_max = 65536, .item_bytes_max = 32768 },
	{ .name = "user", .tag = 7, .offset = offsetof(struct dsec_msg_exec_start, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "pty", .tag = 8, .offset = offsetof(struct dsec_msg_exec_start, pty),
	  .kind = DSEC_KIND_STRUCT, .optional = true, .min = INT64_C(0), .max = INT64_C(16),
	  .bytes_max = 16, .message = &dsec_msg_pty_size },
	{ .name = "timeoutMs", .tag = 9,
	  .offset = offsetof(struct dsec_msg_exec_start, timeout_ms), .kind = DSEC_KIND_U64,
	  .optional = true, .min = INT64_C(1), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "stdinOpen", .tag = 10,
	  .offset = offsetof(struct dsec_msg_exec_start, stdin_open), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "windowBytes", .tag = 11,
	  .offset = offsetof(struct dsec_msg_exec_start, window_bytes),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(65536),
	  .max = INT64_C(1048576), .bytes_max = 4 },
	{ .name = "trace", .tag = 12, .offset = offsetof(struct dsec_msg_exec_start, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_exec_start = {
	.name = "exec-start",
	.fields = dsec_msg_exec_start_fields,
	.field_count = 12,
	.size = sizeof(struct dsec_msg_exec_start),
	.bytes_max = 364813,
};

static const struct dsec_field dsec_msg_exec_attach_fields[] = {
	{ .name = "execId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_exec_attach, exec_id), .kind = DSEC_KIND_STRING,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(40), .bytes_max = 40 },
	{ .name = "stdoutOffset", .tag = 2,
	  .offset = offsetof(struct dsec_msg_exec_attach, stdout_offset),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "stderrOffset", .tag = 3,
	  .offset = offsetof(struct dsec_msg_exec_attach, stderr_offset),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
};

const struct dsec_message dsec_msg_exec_attach = {
	.name = "exec-attach",
	.fields = dsec_msg_exec_attach_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_exec_attach),
	.bytes_max = 74,
};

static const struct dsec_field dsec_msg_exec_started_fields[] = {
	{ .name = "attached", .tag = 1,
	  .offset = offsetof(struct dsec_msg_exec_started, attached), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "stdinOffset", .tag = 2,
	  .offset = offsetof(struct dsec_msg_exec_started, stdin_offset),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "stdinCredit", .tag = 3,
	  .offset = offsetof(struct dsec_msg_exec_started, stdin_credit),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
};

const struct dsec_message dsec_msg_exec_started = {
	.name = "exec-started",
	.fields = dsec_msg_exec_started_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_exec_started),
	.bytes_max = 35,
};

static const struct dsec_field dsec_msg_exec_exit_fields[] = {
	{ .name = "execId", .tag = 1, .offset = offsetof(struct dsec_msg_exec_exit, exec_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "exitCode", .tag = 2,
	  .offset = offsetof(struct dsec_msg_exec_exit, exit_code), .kind = DSEC_KIND_U8,
	  .optional = true, .min = INT64_C(0), .max = INT64_C(255), .bytes_max = 1 },
	{ .name = "signal", .tag = 3, .offset = offsetof(struct dsec_msg_exec_exit, signal),
	  .kind = DSEC_KIND_U8, .optional = true, .min = INT64_C(1), .max = INT64_C(64),
	  .bytes_max = 1 },
	{ .name = "coreDumped", .tag = 4,
	  .offset = offsetof(struct dsec_msg_exec_exit, core_dumped), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "timedOut", .tag = 5,
	  .offset = offsetof(struct dsec_msg_exec_exit, timed_out), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "trusted", .tag = 6,
	  .offset = offsetof(struct dsec_msg_exec_exit, trusted), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "stdoutBytes", .tag = 7,
	  .offset = offsetof(struct dsec_msg_exec_exit, stdout_bytes), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "stderrBytes", .tag = 8,
	  .offset = offsetof(struct dsec_msg_exec_exit, stderr_bytes), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "runningMs", .tag = 9,
	  .offset = offsetof(struct dsec_msg_exec_exit, running_ms), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "cpuUserUs", .tag = 10,
	  .offset = offsetof(struct dsec_msg_exec_exit, cpu_user_us), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "cpuSystemUs", .tag = 11,
	  .offset = offsetof(struct dsec_msg_exec_exit, cpu_system_us),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "memoryPeakBytes", .tag = 12,
	  .offset = offsetof(struct dsec_msg_exec_exit, memory_peak_bytes),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "endedByPolicy", .tag = 13,
	  .offset = offsetof(struct dsec_msg_exec_exit, ended_by_policy),
	  .kind = DSEC_KIND_U8, .optional = true, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
};

const struct dsec_message dsec_msg_exec_exit = {
	.name = "exec-exit",
	.fields = dsec_msg_exec_exit_fields,
	.field_count = 13,
	.size = sizeof(struct dsec_msg_exec_exit),
	.bytes_max = 172,
};

static const struct dsec_field dsec_msg_exec_exit_ack_fields[] = {
	{ .name = "execId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_exec_exit_ack, exec_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
};

const struct dsec_message dsec_msg_exec_exit_ack = {
	.name = "exec-exit-ack",
	.fields = dsec_msg_exec_exit_ack_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_exec_exit_ack),
	.bytes_max = 46,
};

static const struct dsec_field dsec_msg_signal_fields[] = {
	{ .name = "signal", .tag = 1, .offset = offsetof(struct dsec_msg_signal, signal),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(1), .max = INT64_C(64),
	  .bytes_max = 1 },
	{ .name = "scope", .tag = 2, .offset = offsetof(struct dsec_msg_signal, scope),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
};

const struct dsec_message dsec_msg_signal = {
	.name = "signal",
	.fields = dsec_msg_signal_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_signal),
	.bytes_max = 14,
};

static const struct dsec_field dsec_msg_timeout_fields[] = {
	{ .name = "timeoutMs", .tag = 1,
	  .offset = offsetof(struct dsec_msg_timeout, timeout_ms), .kind = DSEC_KIND_U64,
	  .optional = true, .min = INT64_C(1), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
};

const struct dsec_message dsec_msg_timeout = {
	.name = "timeout",
	.fields = dsec_msg_timeout_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_timeout),
	.bytes_max = 14,
};

static const struct dsec_field dsec_msg_session_open_fields[] = {
	{ .name = "sessionId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_session_open, session_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "argv", .tag = 2, .offset = offsetof(struct dsec_msg_session_open, argv),
	  .kind = DSEC_KIND_LIST, .optional = true, .min = INT64_C(1), .max = INT64_C(4096),
	  .bytes_max = 163840, .item_bytes_max = 131071 },
	{ .name = "cwd", .tag = 3, .offset = offsetof(struct dsec_msg_session_open, cwd),
	  .kind = DSEC_KIND_PATH, .optional = true, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "env", .tag = 4, .offset = offsetof(struct dsec_msg_session_open, env),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(1024),
	  .bytes_max = 65536, .item_bytes_max = 32768 },
	{ .name = "user", .tag = 5, .offset = offsetof(struct dsec_msg_session_open, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "pty", .tag = 6, .offset = offsetof(struct dsec_msg_session_open, pty),
	  .kind = DSEC_KIND_STRUCT, .optional = true, .min = INT64_C(0), .max = INT64_C(16),
	  .bytes_max = 16, .message = &dsec_msg_pty_size },
};

const struct dsec_message dsec_msg_session_open = {
	.name = "session-open",
	.fields = dsec_msg_session_open_fields,
	.field_count = 6,
	.size = sizeof(struct dsec_msg_session_open),
	.bytes_max = 233628,
};

static const struct dsec_field dsec_msg_session_close_fields[] = {
	{ .name = "sessionId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_session_close, session_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
};

const struct dsec_message dsec_msg_session_close = {
	.name = "session-close",
	.fields = dsec_msg_session_close_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_session_close),
	.bytes_max = 46,
};

static const struct dsec_field dsec_msg_session_watch_fields[] = {
	{ .name = "sessionId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_session_watch, session_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
};

const struct dsec_message dsec_msg_session_watch = {
	.name = "session-watch",
	.fields = dsec_msg_session_watch_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_session_watch),
	.bytes_max = 46,
};

static const struct dsec_field dsec_msg_granted_tree_fields[] = {
	{ .name = "path", .tag = 1, .offset = offsetof(struct dsec_msg_granted_tree, path),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "access", .tag = 2,
	  .offset = offsetof(struct dsec_msg_granted_tree, access), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
};

const struct dsec_message dsec_msg_granted_tree = {
	.name = "granted-tree",
	.fields = dsec_msg_granted_tree_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_granted_tree),
	.bytes_max = 4115,
};

static const struct dsec_field dsec_msg_session_rules_fields[] = {
	{ .name = "capabilities", .tag = 1,
	  .offset = offsetof(struct dsec_msg_session_rules, capabilities),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "handledAccess", .tag = 2,
	  .offset = offsetof(struct dsec_msg_session_rules, handled_access),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "trees", .tag = 3,
	  .offset = offsetof(struct dsec_msg_session_rules, trees), .kind = DSEC_KIND_LIST,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(256), .bytes_max = 40960,
	  .message = &dsec_msg_granted_tree },
	{ .name = "seccomp", .tag = 4,
	  .offset = offsetof(struct dsec_msg_session_rules, seccomp),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(8),
	  .max = INT64_C(16384), .bytes_max = 16384 },
};

const struct dsec_message dsec_msg_session_rules = {
	.name = "session-rules",
	.fields = dsec_msg_session_rules_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_session_rules),
	.bytes_max = 57384,
};

static const struct dsec_field dsec_msg_channel_fields[] = {
	{ .name = "channel", .tag = 1, .offset = offsetof(struct dsec_msg_channel, channel),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(2),
	  .bytes_max = 1 },
};

const struct dsec_message dsec_msg_channel = {
	.name = "channel",
	.fields = dsec_msg_channel_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_channel),
	.bytes_max = 7,
};

static const struct dsec_field dsec_msg_file_read_fields[] = {
	{ .name = "path", .tag = 1, .offset = offsetof(struct dsec_msg_file_read, path),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "user", .tag = 2, .offset = offsetof(struct dsec_msg_file_read, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "offset", .tag = 3, .offset = offsetof(struct dsec_msg_file_read, offset),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "lengthBytes", .tag = 4,
	  .offset = offsetof(struct dsec_msg_file_read, length_bytes), .kind = DSEC_KIND_U64,
	  .optional = true, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "rawToken", .tag = 5,
	  .offset = offsetof(struct dsec_msg_file_read, raw_token), .kind = DSEC_KIND_BYTES,
	  .optional = true, .min = INT64_C(16), .max = INT64_C(16), .bytes_max = 16 },
	{ .name = "trace", .tag = 6, .offset = offsetof(struct dsec_msg_file_read, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_file_read = {
	.name = "file-read",
	.fields = dsec_msg_file_read_fields,
	.field_count = 6,
	.size = sizeof(struct dsec_msg_file_read),
	.bytes_max = 4253,
};

static const struct dsec_field dsec_msg_file_write_fields[] = {
	{ .name = "path", .tag = 1, .offset = offsetof(struct dsec_msg_file_write, path),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "user", .tag = 2, .offset = offsetof(struct dsec_msg_file_write, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "mode", .tag = 3, .offset = offsetof(struct dsec_msg_file_write, mode),
	  .kind = DSEC_KIND_U16, .optional = true, .min = INT64_C(0), .max = INT64_C(4095),
	  .bytes_max = 2 },
	{ .name = "createParents", .tag = 4,
	  .offset = offsetof(struct dsec_msg_file_write, create_parents),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
	{ .name = "exclusive", .tag = 5,
	  .offset = offsetof(struct dsec_msg_file_write, exclusive), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "rawToken", .tag = 6,
	  .offset = offsetof(struct dsec_msg_file_write, raw_token), .kind = DSEC_KIND_BYTES,
	  .optional = true, .min = INT64_C(16), .max = INT64_C(16), .bytes_max = 16 },
	{ .name = "trace", .tag = 7, .offset = offsetof(struct dsec_msg_file_write, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_file_write = {
	.name = "file-write",
	.fields = dsec_msg_file_write_fields,
	.field_count = 7,
	.size = sizeof(struct dsec_msg_file_write),
	.bytes_max = 4247,
};

static const struct dsec_field dsec_msg_file_stat_fields[] = {
	{ .name = "path", .tag = 1, .offset = offsetof(struct dsec_msg_file_stat, path),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "user", .tag = 2, .offset = offsetof(struct dsec_msg_file_stat, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "followSymlinks", .tag = 3,
	  .offset = offsetof(struct dsec_msg_file_stat, follow_symlinks),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
	{ .name = "trace", .tag = 4, .offset = offsetof(struct dsec_msg_file_stat, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_file_stat = {
	.name = "file-stat",
	.fields = dsec_msg_file_stat_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_file_stat),
	.bytes_max = 4210,
};

static const struct dsec_field dsec_msg_file_list_fields[] = {
	{ .name = "path", .tag = 1, .offset = offsetof(struct dsec_msg_file_list, path),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "user", .tag = 2, .offset = offsetof(struct dsec_msg_file_list, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "cursor", .tag = 3, .offset = offsetof(struct dsec_msg_file_list, cursor),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(1), .max = INT64_C(264),
	  .bytes_max = 264 },
	{ .name = "entriesMax", .tag = 4,
	  .offset = offsetof(struct dsec_msg_file_list, entries_max), .kind = DSEC_KIND_U16,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(1024), .bytes_max = 2 },
	{ .name = "trace", .tag = 5, .offset = offsetof(struct dsec_msg_file_list, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_file_list = {
	.name = "file-list",
	.fields = dsec_msg_file_list_fields,
	.field_count = 5,
	.size = sizeof(struct dsec_msg_file_list),
	.bytes_max = 4481,
};

static const struct dsec_field dsec_msg_file_mkdir_fields[] = {
	{ .name = "path", .tag = 1, .offset = offsetof(struct dsec_msg_file_mkdir, path),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "user", .tag = 2, .offset = offsetof(struct dsec_msg_file_mkdir, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "mode", .tag = 3, .offset = offsetof(struct dsec_msg_file_mkdir, mode),
	  .kind = DSEC_KIND_U16, .optional = true, .min = INT64_C(0), .max = INT64_C(4095),
	  .bytes_max = 2 },
	{ .name = "createParents", .tag = 4,
	  .offset = offsetof(struct dsec_msg_file_mkdir, create_parents),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
	{ .name = "trace", .tag = 5, .offset = offsetof(struct dsec_msg_file_mkdir, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_file_mkdir = {
	.name = "file-mkdir",
	.fields = dsec_msg_file_mkdir_fields,
	.field_count = 5,
	.size = sizeof(struct dsec_msg_file_mkdir),
	.bytes_max = 4218,
};

static const struct dsec_field dsec_msg_file_move_fields[] = {
	{ .name = "source", .tag = 1, .offset = offsetof(struct dsec_msg_file_move, source),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "target", .tag = 2, .offset = offsetof(struct dsec_msg_file_move, target),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "user", .tag = 3, .offset = offsetof(struct dsec_msg_file_move, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "replace", .tag = 4,
	  .offset = offsetof(struct dsec_msg_file_move, replace), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "trace", .tag = 5, .offset = offsetof(struct dsec_msg_file_move, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_file_move = {
	.name = "file-move",
	.fields = dsec_msg_file_move_fields,
	.field_count = 5,
	.size = sizeof(struct dsec_msg_file_move),
	.bytes_max = 8311,
};

static const struct dsec_field dsec_msg_file_remove_fields[] = {
	{ .name = "path", .tag = 1, .offset = offsetof(struct dsec_msg_file_remove, path),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "user", .tag = 2, .offset = offsetof(struct dsec_msg_file_remove, user),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(65),
	  .bytes_max = 65 },
	{ .name = "recursive", .tag = 3,
	  .offset = offsetof(struct dsec_msg_file_remove, recursive), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "trace", .tag = 4, .offset = offsetof(struct dsec_msg_file_remove, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_file_remove = {
	.name = "file-remove",
	.fields = dsec_msg_file_remove_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_file_remove),
	.bytes_max = 4210,
};

static const struct dsec_field dsec_msg_file_attributes_fields[] = {
	{ .name = "name", .tag = 1,
	  .offset = offsetof(struct dsec_msg_file_attributes, name), .kind = DSEC_KIND_PATH,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(255), .bytes_max = 255 },
	{ .name = "kind", .tag = 2,
	  .offset = offsetof(struct dsec_msg_file_attributes, kind), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(6), .bytes_max = 1 },
	{ .name = "mode", .tag = 3,
	  .offset = offsetof(struct dsec_msg_file_attributes, mode), .kind = DSEC_KIND_U16,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(4095), .bytes_max = 2 },
	{ .name = "uid", .tag = 4, .offset = offsetof(struct dsec_msg_file_attributes, uid),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "gid", .tag = 5, .offset = offsetof(struct dsec_msg_file_attributes, gid),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "sizeBytes", .tag = 6,
	  .offset = offsetof(struct dsec_msg_file_attributes, size_bytes),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "allocatedBytes", .tag = 7,
	  .offset = offsetof(struct dsec_msg_file_attributes, allocated_bytes),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "links", .tag = 8,
	  .offset = offsetof(struct dsec_msg_file_attributes, links), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "mtimeSeconds", .tag = 9,
	  .offset = offsetof(struct dsec_msg_file_attributes, mtime_seconds),
	  .kind = DSEC_KIND_I64, .optional = false, .min = INT64_C(-9007199254740991),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "mtimeNanoseconds", .tag = 10,
	  .offset = offsetof(struct dsec_msg_file_attributes, mtime_nanoseconds),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(999999999), .bytes_max = 4 },
	{ .name = "symlinkTarget", .tag = 11,
	  .offset = offsetof(struct dsec_msg_file_attributes, symlink_target),
	  .kind = DSEC_KIND_PATH, .optional = true, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
};

const struct dsec_message dsec_msg_file_attributes = {
	.name = "file-attributes",
	.fields = dsec_msg_file_attributes_fields,
	.field_count = 11,
	.size = sizeof(struct dsec_msg_file_attributes),
	.bytes_max = 4459,
};

static const struct dsec_field dsec_msg_file_entries_fields[] = {
	{ .name = "entries", .tag = 1,
	  .offset = offsetof(struct dsec_msg_file_entries, entries), .kind = DSEC_KIND_LIST,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1024), .bytes_max = 64512,
	  .message = &dsec_msg_file_attributes },
	{ .name = "cursor", .tag = 2,
	  .offset = offsetof(struct dsec_msg_file_entries, cursor), .kind = DSEC_KIND_BYTES,
	  .optional = true, .min = INT64_C(1), .max = INT64_C(264), .bytes_max = 264 },
};

const struct dsec_message dsec_msg_file_entries = {
	.name = "file-entries",
	.fields = dsec_msg_file_entries_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_file_entries),
	.bytes_max = 64788,
};

static const struct dsec_field dsec_msg_port_open_fields[] = {
	{ .name = "port", .tag = 1, .offset = offsetof(struct dsec_msg_port_open, port),
	  .kind = DSEC_KIND_U16, .optional = false, .min = INT64_C(1), .max = INT64_C(65535),
	  .bytes_max = 2 },
	{ .name = "rawToken", .tag = 2,
	  .offset = offsetof(struct dsec_msg_port_open, raw_token), .kind = DSEC_KIND_BYTES,
	  .optional = true, .min = INT64_C(16), .max = INT64_C(16), .bytes_max = 16 },
	{ .name = "trace", .tag = 3, .offset = offsetof(struct dsec_msg_port_open, trace),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(25), .max = INT64_C(25),
	  .bytes_max = 25 },
};

const struct dsec_message dsec_msg_port_open = {
	.name = "port-open",
	.fields = dsec_msg_port_open_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_port_open),
	.bytes_max = 61,
};

static const struct dsec_field dsec_msg_done_fields[] = {
	{ .name = "bytes", .tag = 1, .offset = offsetof(struct dsec_msg_done, bytes),
	  .kind = DSEC_KIND_U64, .optional = true, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
};

const struct dsec_message dsec_msg_done = {
	.name = "done",
	.fields = dsec_msg_done_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_done),
	.bytes_max = 14,
};

static const struct dsec_field dsec_msg_launcher_hello_fields[] = {
	{ .name = "nonce", .tag = 1,
	  .offset = offsetof(struct dsec_msg_launcher_hello, nonce), .kind = DSEC_KIND_BYTES,
	  .optional = false, .min = INT64_C(16), .max = INT64_C(16), .bytes_max = 16 },
	{ .name = "versionMax", .tag = 2,
	  .offset = offsetof(struct dsec_msg_launcher_hello, version_max),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(1), .max = INT64_C(255),
	  .bytes_max = 1 },
	{ .name = "edgeId", .tag = 3,
	  .offset = offsetof(struct dsec_msg_launcher_hello, edge_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(11),
	  .bytes_max = 11 },
};

const struct dsec_message dsec_msg_launcher_hello = {
	.name = "launcher-hello",
	.fields = dsec_msg_launcher_hello_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_launcher_hello),
	.bytes_max = 46,
};

static const struct dsec_field dsec_msg_launcher_welcome_fields[] = {
	{ .name = "nonce", .tag = 1,
	  .offset = offsetof(struct dsec_msg_launcher_welcome, nonce),
	  .kind = DSEC_KIND_BYTES, .optional = false, .min = INT64_C(16), .max = INT64_C(16),
	  .bytes_max = 16 },
	{ .name = "version", .tag = 2,
	  .offset = offsetof(struct dsec_msg_launcher_welcome, version),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(1), .max = INT64_C(255),
	  .bytes_max = 1 },
	{ .name = "launcherVersion", .tag = 3,
	  .offset = offsetof(struct dsec_msg_launcher_welcome, launcher_version),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(64),
	  .bytes_max = 64 },
	{ .name = "instance", .tag = 4,
	  .offset = offsetof(struct dsec_msg_launcher_welcome, instance),
	  .kind = DSEC_KIND_BYTES, .optional = false, .min = INT64_C(16), .max = INT64_C(16),
	  .bytes_max = 16 },
};

const struct dsec_message dsec_msg_launcher_welcome = {
	.name = "launcher-welcome",
	.fields = dsec_msg_launcher_welcome_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_launcher_welcome),
	.bytes_max = 121,
};

static const struct dsec_field dsec_msg_launcher_error_fields[] = {
	{ .name = "code", .tag = 1, .offset = offsetof(struct dsec_msg_launcher_error, code),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "message", .tag = 2,
	  .offset = offsetof(struct dsec_msg_launcher_error, message),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(1024), .bytes_max = 1024 },
	{ .name = "errnoValue", .tag = 3,
	  .offset = offsetof(struct dsec_msg_launcher_error, errno_value),
	  .kind = DSEC_KIND_I32, .optional = true, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4 },
	{ .name = "step", .tag = 4, .offset = offsetof(struct dsec_msg_launcher_error, step),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(128),
	  .bytes_max = 128 },
};

const struct dsec_message dsec_msg_launcher_error = {
	.name = "launcher-error",
	.fields = dsec_msg_launcher_error_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_launcher_error),
	.bytes_max = 1220,
};

static const struct dsec_field dsec_msg_id_map_fields[] = {
	{ .name = "inside", .tag = 1, .offset = offsetof(struct dsec_msg_id_map, inside),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "outside", .tag = 2, .offset = offsetof(struct dsec_msg_id_map, outside),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "count", .tag = 3, .offset = offsetof(struct dsec_msg_id_map, count),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(1), .max = INT64_C(65536),
	  .bytes_max = 4 },
};

const struct dsec_message dsec_msg_id_map = {
	.name = "id-map",
	.fields = dsec_msg_id_map_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_id_map),
	.bytes_max = 30,
};

static const struct dsec_field dsec_msg_root_layer_fields[] = {
	{ .name = "layerId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_root_layer, layer_id), .kind = DSEC_KIND_STRING,
	  .optional = false, .min = INT64_C(71), .max = INT64_C(88), .bytes_max = 88 },
};

const struct dsec_message dsec_msg_root_layer = {
	.name = "root-layer",
	.fields = dsec_msg_root_layer_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_root_layer),
	.bytes_max = 94,
};

static const struct dsec_field dsec_msg_upper_fields[] = {
	{ .name = "driver", .tag = 1, .offset = offsetof(struct dsec_msg_upper, driver),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(2),
	  .bytes_max = 1 },
	{ .name = "sizeBytes", .tag = 2,
	  .offset = offsetof(struct dsec_msg_upper, size_bytes), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(65536), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "inodesMax", .tag = 3,
	  .offset = offsetof(struct dsec_msg_upper, inodes_max), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(16), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "inodesUnlimited", .tag = 4,
	  .offset = offsetof(struct dsec_msg_upper, inodes_unlimited), .kind = DSEC_KIND_U8,
	  .optional = true, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
};

const struct dsec_message dsec_msg_upper = {
	.name = "upper",
	.fields = dsec_msg_upper_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_upper),
	.bytes_max = 42,
};

static const struct dsec_field dsec_msg_root_fields[] = {
	{ .name = "layers", .tag = 1, .offset = offsetof(struct dsec_msg_root, layers),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(1), .max = INT64_C(64),
	  .bytes_max = 8192, .message = &dsec_msg_root_layer },
	{ .name = "upper", .tag = 2, .offset = offsetof(struct dsec_msg_root, upper),
	  .kind = DSEC_KIND_STRUCT, .optional = false, .min = INT64_C(0), .max = INT64_C(42),
	  .bytes_max = 42, .message = &dsec_msg_upper },
	{ .name = "nosuid", .tag = 3, .offset = offsetof(struct dsec_msg_root, nosuid),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
};

const struct dsec_message dsec_msg_root = {
	.name = "root",
	.fields = dsec_msg_root_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_root),
	.bytes_max = 8253,
};

static const struct dsec_field dsec_msg_mount_fields[] = {
	{ .name = "kind", .tag = 1, .offset = offsetof(struct dsec_msg_mount, kind),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(9),
	  .bytes_max = 1 },
	{ .name = "target", .tag = 2, .offset = offsetof(struct dsec_msg_mount, target),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(4095),
	  .bytes_max = 4095 },
	{ .name = "source", .tag = 3, .offset = offsetof(struct dsec_msg_mount, source),
	  .kind = DSEC_KIND_PATH, .optional = true, .min = INT64_C(1), .max = INT64_C(512),
	  .bytes_max = 512 },
	{ .name = "flags", .tag = 4, .offset = offsetof(struct dsec_msg_mount, flags),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0), .max = INT64_C(31),
	  .bytes_max = 4 },
	{ .name = "sizeBytes", .tag = 5,
	  .offset = offsetof(struct dsec_msg_mount, size_bytes), .kind = DSEC_KIND_U64,
	  .optional = true, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "inodesMax", .tag = 6,
	  .offset = offsetof(struct dsec_msg_mount, inodes_max), .kind = DSEC_KIND_U64,
	  .optional = true, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "mode", .tag = 7, .offset = offsetof(struct dsec_msg_mount, mode),
	  .kind = DSEC_KIND_U16, .optional = true, .min = INT64_C(0), .max = INT64_C(4095),
	  .bytes_max = 2 },
	{ .name = "options", .tag = 8, .offset = offsetof(struct dsec_msg_mount, options),
	  .kind = DSEC_KIND_LIST, .optional = true, .min = INT64_C(0), .max = INT64_C(8),
	  .bytes_max = 1024, .item_bytes_max = 64 },
};

const struct dsec_message dsec_msg_mount = {
	.name = "mount",
	.fields = dsec_msg_mount_fields,
	.field_count = 8,
	.size = sizeof(struct dsec_msg_mount),
	.bytes_max = 5702,
};

static const struct dsec_field dsec_msg_assignment_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_assignment, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1),
	  .max = INT64_C(128), .bytes_max = 128 },
	{ .name = "value", .tag = 2, .offset = offsetof(struct dsec_msg_assignment, value),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1),
	  .max = INT64_C(256), .bytes_max = 256 },
};

const struct dsec_message dsec_msg_assignment = {
	.name = "assignment",
	.fields = dsec_msg_assignment_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_assignment),
	.bytes_max = 396,
};

static const struct dsec_field dsec_msg_cgroup_fields[] = {
	{ .name = "hierarchy", .tag = 1,
	  .offset = offsetof(struct dsec_msg_cgroup, hierarchy), .kind = DSEC_KIND_STRING,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(32), .bytes_max = 32 },
	{ .name = "directory", .tag = 2,
	  .offset = offsetof(struct dsec_msg_cgroup, directory), .kind = DSEC_KIND_PATH,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(512), .bytes_max = 512 },
	{ .name = "settings", .tag = 3, .offset = offsetof(struct dsec_msg_cgroup, settings),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(64),
	  .bytes_max = 16384, .message = &dsec_msg_assignment },
};

const struct dsec_message dsec_msg_cgroup = {
	.name = "cgroup",
	.fields = dsec_msg_cgroup_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_cgroup),
	.bytes_max = 16946,
};

static const struct dsec_field dsec_msg_rlimit_fields[] = {
	{ .name = "resource", .tag = 1, .offset = offsetof(struct dsec_msg_rlimit, resource),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(15),
	  .bytes_max = 1 },
	{ .name = "soft", .tag = 2, .offset = offsetof(struct dsec_msg_rlimit, soft),
	  .kind = DSEC_KIND_U64, .optional = true, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "hard", .tag = 3, .offset = offsetof(struct dsec_msg_rlimit, hard),
	  .kind = DSEC_KIND_U64, .optional = true, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
};

const struct dsec_message dsec_msg_rlimit = {
	.name = "rlimit",
	.fields = dsec_msg_rlimit_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_rlimit),
	.bytes_max = 35,
};

static const struct dsec_field dsec_msg_descriptor_fields[] = {
	{ .name = "number", .tag = 1, .offset = offsetof(struct dsec_msg_descriptor, number),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0), .max = INT64_C(15),
	  .bytes_max = 4 },
	{ .name = "kind", .tag = 2, .offset = offsetof(struct dsec_msg_descriptor, kind),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(2),
	  .bytes_max = 1 },
	{ .name = "name", .tag = 3, .offset = offsetof(struct dsec_msg_descriptor, name),
	  .kind = DSEC_KIND_PATH, .optional = true, .min = INT64_C(1), .max = INT64_C(512),
	  .bytes_max = 512 },
};

const struct dsec_message dsec_msg_descriptor = {
	.name = "descriptor",
	.fields = dsec_msg_descriptor_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_descriptor),
	.bytes_max = 535,
};

static const struct dsec_field dsec_msg_link_fields[] = {
	{ .name = "address", .tag = 1, .offset = offsetof(struct dsec_msg_link, address),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "gateway", .tag = 2, .offset = offsetof(struct dsec_msg_link, gateway),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
};

const struct dsec_message dsec_msg_link = {
	.name = "link",
	.fields = dsec_msg_link_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_link),
	.bytes_max = 20,
};

static const struct dsec_field dsec_msg_spawn_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_spawn, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_spawn, generation), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "kind", .tag = 3, .offset = offsetof(struct dsec_msg_spawn, kind),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
	{ .name = "namespaces", .tag = 4,
	  .offset = offsetof(struct dsec_msg_spawn, namespaces), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(127), .bytes_max = 4 },
	{ .name = "idMaps", .tag = 5, .offset = offsetof(struct dsec_msg_spawn, id_maps),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(4),
	  .bytes_max = 1024, .message = &dsec_msg_id_map },
	{ .name = "sessionIdMaps", .tag = 6,
	  .offset = offsetof(struct dsec_msg_spawn, session_id_maps), .kind = DSEC_KIND_LIST,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(4), .bytes_max = 1024,
	  .message = &dsec_msg_id_map },
	{ .name = "hostname", .tag = 7, .offset = offsetof(struct dsec_msg_spawn, hostname),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(63),
	  .bytes_max = 63 },
	{ .name = "root", .tag = 8, .offset = offsetof(struct dsec_msg_spawn, root),
	  .kind = DSEC_KIND_STRUCT, .optional = true, .min = INT64_C(0),
	  .max = INT64_C(8253), .bytes_max = 8253, .message = &dsec_msg_root },
	{ .name = "mounts", .tag = 9, .offset = offsetof(struct dsec_msg_spawn, mounts),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(128),
	  .bytes_max = 65536, .message = &dsec_msg_mount },
	{ .name = "sysctls", .tag = 11, .offset = offsetof(struct dsec_msg_spawn, sysctls),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(64),
	  .bytes_max = 16384, .message = &dsec_msg_assignment },
	{ .name = "cgroups", .tag = 12, .offset = offsetof(struct dsec_msg_spawn, cgroups),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(1), .max = INT64_C(8),
	  .bytes_max = 32768, .message = &dsec_msg_cgroup },
	{ .name = "rlimits", .tag = 13, .offset = offsetof(struct dsec_msg_spawn, rlimits),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(16),
	  .bytes_max = 1024, .message = &dsec_msg_rlimit },
	{ .name = "capabilities", .tag = 14,
	  .offset = offsetof(struct dsec_msg_spawn, capabilities), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "noNewPrivileges", .tag = 15,
	  .offset = offsetof(struct dsec_msg_spawn, no_new_privileges), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
	{ .name = "seccomp", .tag = 16, .offset = offsetof(struct dsec_msg_spawn, seccomp),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(8),
	  .max = INT64_C(32768), .bytes_max = 32768 },
	{ .name = "uid", .tag = 17, .offset = offsetof(struct dsec_msg_spawn, uid),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "gid", .tag = 18, .offset = offsetof(struct dsec_msg_spawn, gid),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "program", .tag = 19, .offset = offsetof(struct dsec_msg_spawn, program),
	  .kind = DSEC_KIND_PATH, .optional = true, .min = INT64_C(1), .max = INT64_C(512),
	  .bytes_max = 512 },
	{ .name = "argv", .tag = 20, .offset = offsetof(struct dsec_msg_spawn, argv),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(1), .max = INT64_C(256),
	  .bytes_max = 32768, .item_bytes_max = 4096 },
	{ .name = "env", .tag = 21, .offset = offsetof(struct dsec_msg_spawn, env),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(64),
	  .bytes_max = 16384, .item_bytes_max = 4096 },
	{ .name = "descriptors", .tag = 22,
	  .offset = offsetof(struct dsec_msg_spawn, descriptors), .kind = DSEC_KIND_LIST,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(16), .bytes_max = 10240,
	  .message = &dsec_msg_descriptor },
	{ .name = "oomScoreAdj", .tag = 23,
	  .offset = offsetof(struct dsec_msg_spawn, oom_score_adj), .kind = DSEC_KIND_I32,
	  .optional = false, .min = INT64_C(-1000), .max = INT64_C(1000), .bytes_max = 4 },
	{ .name = "cpus", .tag = 24, .offset = offsetof(struct dsec_msg_spawn, cpus),
	  .kind = DSEC_KIND_BYTES, .optional = true, .min = INT64_C(1), .max = INT64_C(1024),
	  .bytes_max = 1024 },
	{ .name = "link", .tag = 25, .offset = offsetof(struct dsec_msg_spawn, link),
	  .kind = DSEC_KIND_STRUCT, .optional = true, .min = INT64_C(0), .max = INT64_C(20),
	  .bytes_max = 20, .message = &dsec_msg_link },
};

const struct dsec_message dsec_msg_spawn = {
	.name = "spawn",
	.fields = dsec_msg_spawn_fields,
	.field_count = 24,
	.size = sizeof(struct dsec_msg_spawn),
	.bytes_max = 220006,
};

static const struct dsec_field dsec_msg_spawned_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_spawned, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_spawned, generation), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "pid", .tag = 3, .offset = offsetof(struct dsec_msg_spawned, pid),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(1),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "startTicks", .tag = 4,
	  .offset = offsetof(struct dsec_msg_spawned, start_ticks), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
};

const struct dsec_message dsec_msg_spawned = {
	.name = "spawned",
	.fields = dsec_msg_spawned_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_spawned),
	.bytes_max = 80,
};

static const struct dsec_field dsec_msg_adopt_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_adopt, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_adopt, generation), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "pid", .tag = 3, .offset = offsetof(struct dsec_msg_adopt, pid),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(1),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "startTicks", .tag = 4,
	  .offset = offsetof(struct dsec_msg_adopt, start_ticks), .kind = DSEC_KIND_U64,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(9007199254740991),
	  .bytes_max = 8 },
	{ .name = "cgroups", .tag = 5, .offset = offsetof(struct dsec_msg_adopt, cgroups),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(1), .max = INT64_C(8),
	  .bytes_max = 32768, .message = &dsec_msg_cgroup },
};

const struct dsec_message dsec_msg_adopt = {
	.name = "adopt",
	.fields = dsec_msg_adopt_fields,
	.field_count = 5,
	.size = sizeof(struct dsec_msg_adopt),
	.bytes_max = 32854,
};

static const struct dsec_field dsec_msg_kill_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_kill, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_kill, generation), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(4294967295), .bytes_max = 4 },
};

const struct dsec_message dsec_msg_kill = {
	.name = "kill",
	.fields = dsec_msg_kill_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_kill),
	.bytes_max = 56,
};

static const struct dsec_field dsec_msg_release_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_release, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_release, generation), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(4294967295), .bytes_max = 4 },
};

const struct dsec_message dsec_msg_release = {
	.name = "release",
	.fields = dsec_msg_release_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_release),
	.bytes_max = 56,
};

static const struct dsec_field dsec_msg_list_fields[] = {
	{ .name = "after", .tag = 1, .offset = offsetof(struct dsec_msg_list, after),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
};

const struct dsec_message dsec_msg_list = {
	.name = "list",
	.fields = dsec_msg_list_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_list),
	.bytes_max = 46,
};

static const struct dsec_field dsec_msg_listed_object_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_listed_object, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_listed_object, generation),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(1),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "pid", .tag = 3, .offset = offsetof(struct dsec_msg_listed_object, pid),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(1),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "startTicks", .tag = 4,
	  .offset = offsetof(struct dsec_msg_listed_object, start_ticks),
	  .kind = DSEC_KIND_U64, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(9007199254740991), .bytes_max = 8 },
	{ .name = "exitCode", .tag = 5,
	  .offset = offsetof(struct dsec_msg_listed_object, exit_code), .kind = DSEC_KIND_U8,
	  .optional = true, .min = INT64_C(0), .max = INT64_C(255), .bytes_max = 1 },
	{ .name = "signal", .tag = 6,
	  .offset = offsetof(struct dsec_msg_listed_object, signal), .kind = DSEC_KIND_U8,
	  .optional = true, .min = INT64_C(1), .max = INT64_C(64), .bytes_max = 1 },
	{ .name = "oomKilled", .tag = 7,
	  .offset = offsetof(struct dsec_msg_listed_object, oom_killed),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
	{ .name = "running", .tag = 8,
	  .offset = offsetof(struct dsec_msg_listed_object, running), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
};

const struct dsec_message dsec_msg_listed_object = {
	.name = "listed-object",
	.fields = dsec_msg_listed_object_fields,
	.field_count = 8,
	.size = sizeof(struct dsec_msg_listed_object),
	.bytes_max = 108,
};

static const struct dsec_field dsec_msg_listed_fields[] = {
	{ .name = "objects", .tag = 1, .offset = offsetof(struct dsec_msg_listed, objects),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(512),
	  .bytes_max = 61440, .message = &dsec_msg_listed_object },
	{ .name = "more", .tag = 2, .offset = offsetof(struct dsec_msg_listed, more),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
};

const struct dsec_message dsec_msg_listed = {
	.name = "listed",
	.fields = dsec_msg_listed_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_listed),
	.bytes_max = 61453,
};

static const struct dsec_field dsec_msg_exited_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_exited, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_exited, generation), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "exitCode", .tag = 5,
	  .offset = offsetof(struct dsec_msg_exited, exit_code), .kind = DSEC_KIND_U8,
	  .optional = true, .min = INT64_C(0), .max = INT64_C(255), .bytes_max = 1 },
	{ .name = "signal", .tag = 6, .offset = offsetof(struct dsec_msg_exited, signal),
	  .kind = DSEC_KIND_U8, .optional = true, .min = INT64_C(1), .max = INT64_C(64),
	  .bytes_max = 1 },
	{ .name = "oomKilled", .tag = 7,
	  .offset = offsetof(struct dsec_msg_exited, oom_killed), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
};

const struct dsec_message dsec_msg_exited = {
	.name = "exited",
	.fields = dsec_msg_exited_fields,
	.field_count = 5,
	.size = sizeof(struct dsec_msg_exited),
	.bytes_max = 77,
};

static const struct dsec_field dsec_msg_remount_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_remount, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_remount, generation), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(1), .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "mounts", .tag = 3, .offset = offsetof(struct dsec_msg_remount, mounts),
	  .kind = DSEC_KIND_LIST, .optional = false, .min = INT64_C(0), .max = INT64_C(64),
	  .bytes_max = 61440, .message = &dsec_msg_mount },
};

const struct dsec_message dsec_msg_remount = {
	.name = "remount",
	.fields = dsec_msg_remount_fields,
	.field_count = 3,
	.size = sizeof(struct dsec_msg_remount),
	.bytes_max = 61502,
};

static const struct dsec_field dsec_msg_layer_device_fields[] = {
	{ .name = "file", .tag = 1, .offset = offsetof(struct dsec_msg_layer_device, file),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(512),
	  .bytes_max = 512 },
};

const struct dsec_message dsec_msg_layer_device = {
	.name = "layer-device",
	.fields = dsec_msg_layer_device_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_layer_device),
	.bytes_max = 518,
};

static const struct dsec_field dsec_msg_layer_mount_fields[] = {
	{ .name = "layerId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_layer_mount, layer_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(71),
	  .max = INT64_C(88), .bytes_max = 88 },
	{ .name = "meta", .tag = 2, .offset = offsetof(struct dsec_msg_layer_mount, meta),
	  .kind = DSEC_KIND_PATH, .optional = false, .min = INT64_C(1), .max = INT64_C(512),
	  .bytes_max = 512 },
	{ .name = "devices", .tag = 3,
	  .offset = offsetof(struct dsec_msg_layer_mount, devices), .kind = DSEC_KIND_LIST,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(64), .bytes_max = 40960,
	  .message = &dsec_msg_layer_device },
	{ .name = "directIo", .tag = 4,
	  .offset = offsetof(struct dsec_msg_layer_mount, direct_io), .kind = DSEC_KIND_U8,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(1), .bytes_max = 1 },
};

const struct dsec_message dsec_msg_layer_mount = {
	.name = "layer-mount",
	.fields = dsec_msg_layer_mount_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_layer_mount),
	.bytes_max = 41585,
};

static const struct dsec_field dsec_msg_layer_unmount_fields[] = {
	{ .name = "layerId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_layer_unmount, layer_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(71),
	  .max = INT64_C(88), .bytes_max = 88 },
};

const struct dsec_message dsec_msg_layer_unmount = {
	.name = "layer-unmount",
	.fields = dsec_msg_layer_unmount_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_layer_unmount),
	.bytes_max = 94,
};

static const struct dsec_field dsec_msg_layer_list_fields[] = {
	{ .name = "after", .tag = 1, .offset = offsetof(struct dsec_msg_layer_list, after),
	  .kind = DSEC_KIND_STRING, .optional = true, .min = INT64_C(71), .max = INT64_C(88),
	  .bytes_max = 88 },
};

const struct dsec_message dsec_msg_layer_list = {
	.name = "layer-list",
	.fields = dsec_msg_layer_list_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_layer_list),
	.bytes_max = 94,
};

static const struct dsec_field dsec_msg_mounted_layer_fields[] = {
	{ .name = "layerId", .tag = 1,
	  .offset = offsetof(struct dsec_msg_mounted_layer, layer_id),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(71),
	  .max = INT64_C(88), .bytes_max = 88 },
	{ .name = "users", .tag = 2,
	  .offset = offsetof(struct dsec_msg_mounted_layer, users), .kind = DSEC_KIND_U32,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(4294967295), .bytes_max = 4 },
};

const struct dsec_message dsec_msg_mounted_layer = {
	.name = "mounted-layer",
	.fields = dsec_msg_mounted_layer_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_mounted_layer),
	.bytes_max = 104,
};

static const struct dsec_field dsec_msg_layers_listed_fields[] = {
	{ .name = "layers", .tag = 1,
	  .offset = offsetof(struct dsec_msg_layers_listed, layers), .kind = DSEC_KIND_LIST,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(512), .bytes_max = 61440,
	  .message = &dsec_msg_mounted_layer },
	{ .name = "more", .tag = 2, .offset = offsetof(struct dsec_msg_layers_listed, more),
	  .kind = DSEC_KIND_U8, .optional = false, .min = INT64_C(0), .max = INT64_C(1),
	  .bytes_max = 1 },
};

const struct dsec_message dsec_msg_layers_listed = {
	.name = "layers-listed",
	.fields = dsec_msg_layers_listed_fields,
	.field_count = 2,
	.size = sizeof(struct dsec_msg_layers_listed),
	.bytes_max = 61453,
};

static const struct dsec_field dsec_msg_router_fields[] = {
	{ .name = "gateway", .tag = 1, .offset = offsetof(struct dsec_msg_router, gateway),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(0),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
};

const struct dsec_message dsec_msg_router = {
	.name = "router",
	.fields = dsec_msg_router_fields,
	.field_count = 1,
	.size = sizeof(struct dsec_msg_router),
	.bytes_max = 10,
};

static const struct dsec_field dsec_msg_cgroup_write_fields[] = {
	{ .name = "name", .tag = 1, .offset = offsetof(struct dsec_msg_cgroup_write, name),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(40),
	  .bytes_max = 40 },
	{ .name = "generation", .tag = 2,
	  .offset = offsetof(struct dsec_msg_cgroup_write, generation),
	  .kind = DSEC_KIND_U32, .optional = false, .min = INT64_C(1),
	  .max = INT64_C(4294967295), .bytes_max = 4 },
	{ .name = "hierarchy", .tag = 3,
	  .offset = offsetof(struct dsec_msg_cgroup_write, hierarchy),
	  .kind = DSEC_KIND_STRING, .optional = false, .min = INT64_C(1), .max = INT64_C(32),
	  .bytes_max = 32 },
	{ .name = "settings", .tag = 4,
	  .offset = offsetof(struct dsec_msg_cgroup_write, settings), .kind = DSEC_KIND_LIST,
	  .optional = false, .min = INT64_C(0), .max = INT64_C(64), .bytes_max = 16384,
	  .message = &dsec_msg_assignment },
};

const struct dsec_message dsec_msg_cgroup_write = {
	.name = "cgroup-write",
	.fields = dsec_msg_cgroup_write_fields,
	.field_count = 4,
	.size = sizeof(struct dsec_msg_cgroup_write),
	.bytes_max = 16484,
};


const struct dsec_message dsec_msg_launcher_empty = {
	.name = "launcher-empty",
	.fields = NULL,
	.field_count = 0,
	.size = sizeof(struct dsec_msg_launcher_empty),
	.bytes_max = 0,
};

static const struct dsec_frame_type aether_types[] = {
	{ .name = "hello", .code = DSEC_AETHER_HELLO, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 75,
	  .message = &dsec_msg_hello },
	{ .name = "welcome", .code = DSEC_AETHER_WELCOME, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 121,
	  .message = &dsec_msg_welcome },
	{ .name = "ping", .code = DSEC_AETHER_PING, .from = DSEC_FROM_BOTH,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 0, .message = &dsec_msg_empty },
	{ .name = "pong", .code = DSEC_AETHER_PONG, .from = DSEC_FROM_BOTH,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 0, .message = &dsec_msg_empty },
	{ .name = "error", .code = DSEC_AETHER_ERROR, .from = DSEC_FROM_BOTH,
	  .scope = DSEC_SCOPE_ANY, .payload_bytes_max = 1086, .message = &dsec_msg_error },
	{ .name = "reseed", .code = DSEC_AETHER_RESEED, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 623,
	  .message = &dsec_msg_reseed },
	{ .name = "reseeded", .code = DSEC_AETHER_RESEEDED, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 0, .message = &dsec_msg_empty },
	{ .name = "exec-start", .code = DSEC_AETHER_EXEC_START, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 262144,
	  .message = &dsec_msg_exec_start },
	{ .name = "exec-attach", .code = DSEC_AETHER_EXEC_ATTACH, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 74,
	  .message = &dsec_msg_exec_attach },
	{ .name = "exec-started", .code = DSEC_AETHER_EXEC_STARTED, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 35,
	  .message = &dsec_msg_exec_started },
	{ .name = "exec-exit", .code = DSEC_AETHER_EXEC_EXIT, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 172,
	  .message = &dsec_msg_exec_exit },
	{ .name = "exec-exit-ack", .code = DSEC_AETHER_EXEC_EXIT_ACK,
	  .from = DSEC_FROM_CLIENT, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 46,
	  .message = &dsec_msg_exec_exit_ack },
	{ .name = "resize", .code = DSEC_AETHER_RESIZE, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 16, .message = &dsec_msg_pty_size },
	{ .name = "signal", .code = DSEC_AETHER_SIGNAL, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 14, .message = &dsec_msg_signal },
	{ .name = "timeout", .code = DSEC_AETHER_TIMEOUT, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 14, .message = &dsec_msg_timeout },
	{ .name = "cancel", .code = DSEC_AETHER_CANCEL, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 0, .message = &dsec_msg_empty },
	{ .name = "session-open", .code = DSEC_AETHER_SESSION_OPEN, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 233628,
	  .message = &dsec_msg_session_open },
	{ .name = "session-close", .code = DSEC_AETHER_SESSION_CLOSE,
	  .from = DSEC_FROM_CLIENT, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 46,
	  .message = &dsec_msg_session_close },
	{ .name = "session-watch", .code = DSEC_AETHER_SESSION_WATCH,
	  .from = DSEC_FROM_CLIENT, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 46,
	  .message = &dsec_msg_session_watch },
	{ .name = "session-rules", .code = DSEC_AETHER_SESSION_RULES,
	  .from = DSEC_FROM_CLIENT, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 57384,
	  .message = &dsec_msg_session_rules },
	{ .name = "quiesce", .code = DSEC_AETHER_QUIESCE, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 0, .message = &dsec_msg_empty },
	{ .name = "stdin", .code = DSEC_AETHER_STDIN, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 65536 },
	{ .name = "stdout", .code = DSEC_AETHER_STDOUT, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 65536 },
	{ .name = "stderr", .code = DSEC_AETHER_STDERR, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 65536 },
	{ .name = "ack", .code = DSEC_AETHER_ACK, .from = DSEC_FROM_BOTH,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 7, .message = &dsec_msg_channel },
	{ .name = "credit", .code = DSEC_AETHER_CREDIT, .from = DSEC_FROM_BOTH,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 7, .message = &dsec_msg_channel },
	{ .name = "file-read", .code = DSEC_AETHER_FILE_READ, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 4253,
	  .message = &dsec_msg_file_read },
	{ .name = "file-write", .code = DSEC_AETHER_FILE_WRITE, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 4247,
	  .message = &dsec_msg_file_write },
	{ .name = "file-stat", .code = DSEC_AETHER_FILE_STAT, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 4210,
	  .message = &dsec_msg_file_stat },
	{ .name = "file-list", .code = DSEC_AETHER_FILE_LIST, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 4481,
	  .message = &dsec_msg_file_list },
	{ .name = "file-mkdir", .code = DSEC_AETHER_FILE_MKDIR, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 4218,
	  .message = &dsec_msg_file_mkdir },
	{ .name = "file-move", .code = DSEC_AETHER_FILE_MOVE, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 8311,
	  .message = &dsec_msg_file_move },
	{ .name = "file-remove", .code = DSEC_AETHER_FILE_REMOVE, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 4210,
	  .message = &dsec_msg_file_remove },
	{ .name = "file-attributes", .code = DSEC_AETHER_FILE_ATTRIBUTES,
	  .from = DSEC_FROM_SERVER, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 4459,
	  .message = &dsec_msg_file_attributes },
	{ .name = "file-entries", .code = DSEC_AETHER_FILE_ENTRIES, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 64788,
	  .message = &dsec_msg_file_entries },
	{ .name = "port-open", .code = DSEC_AETHER_PORT_OPEN, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 61,
	  .message = &dsec_msg_port_open },
	{ .name = "done", .code = DSEC_AETHER_DONE, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 14, .message = &dsec_msg_done },
};

const struct dsec_protocol dsec_aether_protocol = {
	.name = "aether",
	.types = aether_types,
	.type_count = 37,
};

static const struct dsec_frame_type launcher_types[] = {
	{ .name = "hello", .code = DSEC_LAUNCHER_HELLO, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 46,
	  .message = &dsec_msg_launcher_hello },
	{ .name = "welcome", .code = DSEC_LAUNCHER_WELCOME, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 121,
	  .message = &dsec_msg_launcher_welcome },
	{ .name = "error", .code = DSEC_LAUNCHER_ERROR, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_ANY, .payload_bytes_max = 1220,
	  .message = &dsec_msg_launcher_error },
	{ .name = "spawn", .code = DSEC_LAUNCHER_SPAWN, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 220006,
	  .message = &dsec_msg_spawn },
	{ .name = "spawned", .code = DSEC_LAUNCHER_SPAWNED, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 80, .message = &dsec_msg_spawned },
	{ .name = "adopt", .code = DSEC_LAUNCHER_ADOPT, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 32854, .message = &dsec_msg_adopt },
	{ .name = "kill", .code = DSEC_LAUNCHER_KILL, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 56, .message = &dsec_msg_kill },
	{ .name = "release", .code = DSEC_LAUNCHER_RELEASE, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 56, .message = &dsec_msg_release },
	{ .name = "list", .code = DSEC_LAUNCHER_LIST, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 46, .message = &dsec_msg_list },
	{ .name = "listed", .code = DSEC_LAUNCHER_LISTED, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 61453,
	  .message = &dsec_msg_listed },
	{ .name = "exited", .code = DSEC_LAUNCHER_EXITED, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_CONNECTION, .payload_bytes_max = 77,
	  .message = &dsec_msg_exited },
	{ .name = "remount", .code = DSEC_LAUNCHER_REMOUNT, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 61502,
	  .message = &dsec_msg_remount },
	{ .name = "layer-mount", .code = DSEC_LAUNCHER_LAYER_MOUNT, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 41585,
	  .message = &dsec_msg_layer_mount },
	{ .name = "layer-unmount", .code = DSEC_LAUNCHER_LAYER_UNMOUNT,
	  .from = DSEC_FROM_CLIENT, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 94,
	  .message = &dsec_msg_layer_unmount },
	{ .name = "layer-list", .code = DSEC_LAUNCHER_LAYER_LIST, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 94,
	  .message = &dsec_msg_layer_list },
	{ .name = "layers-listed", .code = DSEC_LAUNCHER_LAYERS_LISTED,
	  .from = DSEC_FROM_SERVER, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 61453,
	  .message = &dsec_msg_layers_listed },
	{ .name = "router", .code = DSEC_LAUNCHER_ROUTER, .from = DSEC_FROM_CLIENT,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 10, .message = &dsec_msg_router },
	{ .name = "cgroup-write", .code = DSEC_LAUNCHER_CGROUP_WRITE,
	  .from = DSEC_FROM_CLIENT, .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 16484,
	  .message = &dsec_msg_cgroup_write },
	{ .name = "done", .code = DSEC_LAUNCHER_DONE, .from = DSEC_FROM_SERVER,
	  .scope = DSEC_SCOPE_STREAM, .payload_bytes_max = 0,
	  .message = &dsec_msg_launcher_empty },
};

const struct dsec_protocol dsec_launcher_protocol = {
	.name = "launcher",
	.types = launcher_types,
	.type_count = 19,
};
