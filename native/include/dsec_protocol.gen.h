/* Generated from packages/protocol by `npm run generate`. Do not edit. */
#ifndef DSEC_PROTOCOL_GEN_H
#define DSEC_PROTOCOL_GEN_H

#include "message.h"

enum {
	DSEC_FRAME_VERSION = 1,
	DSEC_FRAME_HEADER_BYTES = 24,
	DSEC_FRAME_PAYLOAD_BYTES_MAX = 262144,
	DSEC_FRAME_DATA_BYTES_MAX = 65536,
	DSEC_FRAME_FLAG_END = 1,
	DSEC_NONCE_BYTES = 16,
	DSEC_WINDOW_BYTES_MIN = 65536,
	DSEC_WINDOW_BYTES_MAX = 1048576,
	DSEC_STREAMS_MAX = 4096,
	DSEC_SANDBOX_ID_FIRST = 1073741824,
	DSEC_SANDBOX_ID_COUNT = 65536,
	DSEC_NAMESPACE_MOUNT = 1,
	DSEC_NAMESPACE_PID = 2,
	DSEC_NAMESPACE_UTS = 4,
	DSEC_NAMESPACE_IPC = 8,
	DSEC_NAMESPACE_NET = 16,
	DSEC_NAMESPACE_CGROUP = 32,
	DSEC_NAMESPACE_USER = 64,
	DSEC_MOUNT_READONLY = 1,
	DSEC_MOUNT_NOSUID = 2,
	DSEC_MOUNT_NODEV = 4,
	DSEC_MOUNT_NOEXEC = 8,
	DSEC_MOUNT_POLICY = 16,
};

enum {
	DSEC_AETHER_HELLO = 1,
	DSEC_AETHER_WELCOME = 2,
	DSEC_AETHER_PING = 3,
	DSEC_AETHER_PONG = 4,
	DSEC_AETHER_ERROR = 5,
	DSEC_AETHER_RESEED = 6,
	DSEC_AETHER_RESEEDED = 7,
	DSEC_AETHER_EXEC_START = 16,
	DSEC_AETHER_EXEC_ATTACH = 17,
	DSEC_AETHER_EXEC_STARTED = 18,
	DSEC_AETHER_EXEC_EXIT = 19,
	DSEC_AETHER_EXEC_EXIT_ACK = 20,
	DSEC_AETHER_RESIZE = 21,
	DSEC_AETHER_SIGNAL = 22,
	DSEC_AETHER_TIMEOUT = 23,
	DSEC_AETHER_CANCEL = 24,
	DSEC_AETHER_SESSION_OPEN = 25,
	DSEC_AETHER_SESSION_CLOSE = 26,
	DSEC_AETHER_SESSION_WATCH = 27,
	DSEC_AETHER_SESSION_RULES = 28,
	DSEC_AETHER_QUIESCE = 29,
	DSEC_AETHER_STDIN = 32,
	DSEC_AETHER_STDOUT = 33,
	DSEC_AETHER_STDERR = 34,
	DSEC_AETHER_ACK = 35,
	DSEC_AETHER_CREDIT = 36,
	DSEC_AETHER_FILE_READ = 48,
	DSEC_AETHER_FILE_WRITE = 49,
	DSEC_AETHER_FILE_STAT = 50,
	DSEC_AETHER_FILE_LIST = 51,
	DSEC_AETHER_FILE_MKDIR = 52,
	DSEC_AETHER_FILE_MOVE = 53,
	DSEC_AETHER_FILE_REMOVE = 54,
	DSEC_AETHER_FILE_ATTRIBUTES = 56,
	DSEC_AETHER_FILE_ENTRIES = 57,
	DSEC_AETHER_PORT_OPEN = 64,
	DSEC_AETHER_DONE = 79,
};

enum {
	DSEC_LAUNCHER_HELLO = 1,
	DSEC_LAUNCHER_WELCOME = 2,
	DSEC_LAUNCHER_ERROR = 5,
	DSEC_LAUNCHER_SPAWN = 16,
	DSEC_LAUNCHER_SPAWNED = 17,
	DSEC_LAUNCHER_ADOPT = 18,
	DSEC_LAUNCHER_KILL = 19,
	DSEC_LAUNCHER_RELEASE = 20,
	DSEC_LAUNCHER_LIST = 21,
	DSEC_LAUNCHER_LISTED = 22,
	DSEC_LAUNCHER_EXITED = 23,
	DSEC_LAUNCHER_REMOUNT = 24,
	DSEC_LAUNCHER_LAYER_MOUNT = 32,
	DSEC_LAUNCHER_LAYER_UNMOUNT = 33,
	DSEC_LAUNCHER_LAYER_LIST = 34,
	DSEC_LAUNCHER_LAYERS_LISTED = 35,
	DSEC_LAUNCHER_ROUTER = 40,
	DSEC_LAUNCHER_CGROUP_WRITE = 48,
	DSEC_LAUNCHER_DONE = 79,
};

#define DSEC_ERROR_INVALID_ARGUMENT "invalid-argument"
#define DSEC_ERROR_UNAUTHENTICATED "unauthenticated"
#define DSEC_ERROR_PERMISSION_DENIED "permission-denied"
#define DSEC_ERROR_NOT_FOUND "not-found"
#define DSEC_ERROR_ALREADY_EXISTS "already-exists"
#define DSEC_ERROR_CONFLICT "conflict"
#define DSEC_ERROR_IDEMPOTENCY_CONFLICT "idempotency-conflict"
#define DSEC_ERROR_STATE_CONFLICT "state-conflict"
#define DSEC_ERROR_TOO_LARGE "too-large"
#define DSEC_ERROR_RATE_LIMITED "rate-limited"
#define DSEC_ERROR_QUOTA_EXCEEDED "quota-exceeded"
#define DSEC_ERROR_OVERLOADED "overloaded"
#define DSEC_ERROR_UNAVAILABLE "unavailable"
#define DSEC_ERROR_DEADLINE_EXCEEDED "deadline-exceeded"
#define DSEC_ERROR_CANCELLED "cancelled"
#define DSEC_ERROR_UNSUPPORTED "unsupported"
#define DSEC_ERROR_INTERNAL "internal"
#define DSEC_ERROR_DATA_LOSS "data-loss"
#define DSEC_ERROR_STORAGE_FULL "storage-full"
#define DSEC_ERROR_IMPORT_LIMIT "import-limit"
#define DSEC_ERROR_IMPORT_INVALID "import-invalid"
#define DSEC_ERROR_LAYER_INVALID "layer-invalid"
#define DSEC_ERROR_PROTOCOL "protocol"
#define DSEC_ERROR_FREEZE_TIMEOUT "freeze-timeout"
#define DSEC_ERROR_AGENT_LOST "agent-lost"
#define DSEC_ERROR_COMMAND_NOT_FOUND "command-not-found"
#define DSEC_ERROR_OUTPUT_LOST "output-lost"
#define DSEC_ERROR_SECRET_LOST "secret-lost"
#define DSEC_ERROR_GRADE_INVALID "grade-invalid"

struct dsec_msg_hello {
	uint32_t present;
	struct dsec_bytes nonce;
	uint8_t version_max;
	struct dsec_bytes sandbox_id;
};

struct dsec_msg_welcome {
	uint32_t present;
	struct dsec_bytes nonce;
	uint8_t version;
	struct dsec_bytes agent_version;
	struct dsec_bytes instance;
};

struct dsec_msg_empty {
	uint32_t present;

};

enum {
	DSEC_ERROR_HAS_ERRNO_VALUE = 1u << 2,
};

struct dsec_msg_error {
	uint32_t present;
	struct dsec_bytes code;
	struct dsec_bytes message;
	int32_t errno_value;
};

enum {
	DSEC_RESEED_HAS_WALL_MS = 1u << 1,
	DSEC_RESEED_HAS_HOSTNAME = 1u << 2,
	DSEC_RESEED_HAS_MACHINE_ID = 1u << 3,
};

struct dsec_msg_reseed {
	uint32_t present;
	struct dsec_bytes entropy;
	uint64_t wall_ms;
	struct dsec_bytes hostname;
	struct dsec_bytes machine_id;
};

struct dsec_msg_pty_size {
	uint32_t present;
	uint16_t rows;
	uint16_t columns;
};

enum {
	DSEC_EXEC_START_HAS_ARGV = 1u << 1,
	DSEC_EXEC_START_HAS_SHELL = 1u << 2,
	DSEC_EXEC_START_HAS_SESSION_ID = 1u << 3,
	DSEC_EXEC_START_HAS_CWD = 1u << 4,
	DSEC_EXEC_START_HAS_USER = 1u << 6,
	DSEC_EXEC_START_HAS_PTY = 1u << 7,
	DSEC_EXEC_START_HAS_TIMEOUT_MS = 1u << 8,
	DSEC_EXEC_START_HAS_TRACE = 1u << 11,
};

struct dsec_msg_exec_start {
	uint32_t present;
	struct dsec_bytes exec_id;
	struct dsec_list argv;
	struct dsec_bytes shell;
	struct dsec_bytes session_id;
	struct dsec_bytes cwd;
	struct dsec_list env;
	struct dsec_bytes user;
	struct dsec_msg_pty_size pty;
	uint64_t timeout_ms;
	bool stdin_open;
	uint32_t window_bytes;
	struct dsec_bytes trace;
};

struct dsec_msg_exec_attach {
	uint32_t present;
	struct dsec_bytes exec_id;
	uint64_t stdout_offset;
	uint64_t stderr_offset;
};

struct dsec_msg_exec_started {
	uint32_t present;
	bool attached;
	uint64_t stdin_offset;
	uint64_t stdin_credit;
};

enum {
	DSEC_EXEC_EXIT_HAS_EXIT_CODE = 1u << 1,
	DSEC_EXEC_EXIT_HAS_SIGNAL = 1u << 2,
	DSEC_EXEC_EXIT_HAS_ENDED_BY_POLICY = 1u << 12,
};

struct dsec_msg_exec_exit {
	uint32_t present;
	struct dsec_bytes exec_id;
	uint8_t exit_code;
	uint8_t signal;
	bool core_dumped;
	bool timed_out;
	bool trusted;
	uint64_t stdout_bytes;
	uint64_t stderr_bytes;
	uint64_t running_ms;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t memory_peak_bytes;
	bool ended_by_policy;
};

struct dsec_msg_exec_exit_ack {
	uint32_t present;
	struct dsec_bytes exec_id;
};

enum {
	DSEC_SIGNAL_SCOPE_LEADER = 0,
	DSEC_SIGNAL_SCOPE_TREE = 1,
};

struct dsec_msg_signal {
	uint32_t present;
	uint8_t signal;
	uint8_t scope;
};

enum {
	DSEC_TIMEOUT_HAS_TIMEOUT_MS = 1u << 0,
};

struct dsec_msg_timeout {
	uint32_t present;
	uint64_t timeout_ms;
};

enum {
	DSEC_SESSION_OPEN_HAS_ARGV = 1u << 1,
	DSEC_SESSION_OPEN_HAS_CWD = 1u << 2,
	DSEC_SESSION_OPEN_HAS_USER = 1u << 4,
	DSEC_SESSION_OPEN_HAS_PTY = 1u << 5,
};

struct dsec_msg_session_open {
	uint32_t present;
	struct dsec_bytes session_id;
	struct dsec_list argv;
	struct dsec_bytes cwd;
	struct dsec_list env;
	struct dsec_bytes user;
	struct dsec_msg_pty_size pty;
};

struct dsec_msg_session_close {
	uint32_t present;
	struct dsec_bytes session_id;
};

struct dsec_msg_session_watch {
	uint32_t present;
	struct dsec_bytes session_id;
};

struct dsec_msg_granted_tree {
	uint32_t present;
	struct dsec_bytes path;
	uint64_t access;
};

enum {
	DSEC_SESSION_RULES_HAS_SECCOMP = 1u << 3,
};

struct dsec_msg_session_rules {
	uint32_t present;
	uint64_t capabilities;
	uint64_t handled_access;
	struct dsec_list trees;
	struct dsec_bytes seccomp;
};

enum {
	DSEC_CHANNEL_CHANNEL_STDIN = 0,
	DSEC_CHANNEL_CHANNEL_STDOUT = 1,
	DSEC_CHANNEL_CHANNEL_STDERR = 2,
};

struct dsec_msg_channel {
	uint32_t present;
	uint8_t channel;
};

enum {
	DSEC_FILE_READ_HAS_USER = 1u << 1,
	DSEC_FILE_READ_HAS_LENGTH_BYTES = 1u << 3,
	DSEC_FILE_READ_HAS_RAW_TOKEN = 1u << 4,
	DSEC_FILE_READ_HAS_TRACE = 1u << 5,
};

struct dsec_msg_file_read {
	uint32_t present;
	struct dsec_bytes path;
	struct dsec_bytes user;
	uint64_t offset;
	uint64_t length_bytes;
	struct dsec_bytes raw_token;
	struct dsec_bytes trace;
};

enum {
	DSEC_FILE_WRITE_HAS_USER = 1u << 1,
	DSEC_FILE_WRITE_HAS_MODE = 1u << 2,
	DSEC_FILE_WRITE_HAS_RAW_TOKEN = 1u << 5,
	DSEC_FILE_WRITE_HAS_TRACE = 1u << 6,
};

struct dsec_msg_file_write {
	uint32_t present;
	struct dsec_bytes path;
	struct dsec_bytes user;
	uint16_t mode;
	bool create_parents;
	bool exclusive;
	struct dsec_bytes raw_token;
	struct dsec_bytes trace;
};

enum {
	DSEC_FILE_STAT_HAS_USER = 1u << 1,
	DSEC_FILE_STAT_HAS_TRACE = 1u << 3,
};

struct dsec_msg_file_stat {
	uint32_t present;
	struct dsec_bytes path;
	struct dsec_bytes user;
	bool follow_symlinks;
	struct dsec_bytes trace;
};

enum {
	DSEC_FILE_LIST_HAS_USER = 1u << 1,
	DSEC_FILE_LIST_HAS_CURSOR = 1u << 2,
	DSEC_FILE_LIST_HAS_TRACE = 1u << 4,
};

struct dsec_msg_file_list {
	uint32_t present;
	struct dsec_bytes path;
	struct dsec_bytes user;
	struct dsec_bytes cursor;
	uint16_t entries_max;
	struct dsec_bytes trace;
};

enum {
	DSEC_FILE_MKDIR_HAS_USER = 1u << 1,
	DSEC_FILE_MKDIR_HAS_MODE = 1u << 2,
	DSEC_FILE_MKDIR_HAS_TRACE = 1u << 4,
};

struct dsec_msg_file_mkdir {
	uint32_t present;
	struct dsec_bytes path;
	struct dsec_bytes user;
	uint16_t mode;
	bool create_parents;
	struct dsec_bytes trace;
};

enum {
	DSEC_FILE_MOVE_HAS_USER = 1u << 2,
	DSEC_FILE_MOVE_HAS_TRACE = 1u << 4,
};

struct dsec_msg_file_move {
	uint32_t present;
	struct dsec_bytes source;
	struct dsec_bytes target;
	struct dsec_bytes user;
	bool replace;
	struct dsec_bytes trace;
};

enum {
	DSEC_FILE_REMOVE_HAS_USER = 1u << 1,
	DSEC_FILE_REMOVE_HAS_TRACE = 1u << 3,
};

struct dsec_msg_file_remove {
	uint32_t present;
	struct dsec_bytes path;
	struct dsec_bytes user;
	bool recursive;
	struct dsec_bytes trace;
};

enum {
	DSEC_FILE_ATTRIBUTES_KIND_FILE = 0,
	DSEC_FILE_ATTRIBUTES_KIND_DIRECTORY = 1,
	DSEC_FILE_ATTRIBUTES_KIND_SYMLINK = 2,
	DSEC_FILE_ATTRIBUTES_KIND_CHAR = 3,
	DSEC_FILE_ATTRIBUTES_KIND_BLOCK = 4,
	DSEC_FILE_ATTRIBUTES_KIND_FIFO = 5,
	DSEC_FILE_ATTRIBUTES_KIND_SOCKET = 6,
};

enum {
	DSEC_FILE_ATTRIBUTES_HAS_SYMLINK_TARGET = 1u << 10,
};

struct dsec_msg_file_attributes {
	uint32_t present;
	struct dsec_bytes name;
	uint8_t kind;
	uint16_t mode;
	uint32_t uid;
	uint32_t gid;
	uint64_t size_bytes;
	uint64_t allocated_bytes;
	uint32_t links;
	int64_t mtime_seconds;
	uint32_t mtime_nanoseconds;
	struct dsec_bytes symlink_target;
};

enum {
	DSEC_FILE_ENTRIES_HAS_CURSOR = 1u << 1,
};

struct dsec_msg_file_entries {
	uint32_t present;
	struct dsec_list entries;
	struct dsec_bytes cursor;
};

enum {
	DSEC_PORT_OPEN_HAS_RAW_TOKEN = 1u << 1,
	DSEC_PORT_OPEN_HAS_TRACE = 1u << 2,
};

struct dsec_msg_port_open {
	uint32_t present;
	uint16_t port;
	struct dsec_bytes raw_token;
	struct dsec_bytes trace;
};

enum {
	DSEC_DONE_HAS_BYTES = 1u << 0,
};

struct dsec_msg_done {
	uint32_t present;
	uint64_t bytes;
};

struct dsec_msg_launcher_hello {
	uint32_t present;
	struct dsec_bytes nonce;
	uint8_t version_max;
	struct dsec_bytes edge_id;
};

struct dsec_msg_launcher_welcome {
	uint32_t present;
	struct dsec_bytes nonce;
	uint8_t version;
	struct dsec_bytes launcher_version;
	struct dsec_bytes instance;
};

enum {
	DSEC_LAUNCHER_ERROR_HAS_ERRNO_VALUE = 1u << 2,
	DSEC_LAUNCHER_ERROR_HAS_STEP = 1u << 3,
};

struct dsec_msg_launcher_error {
	uint32_t present;
	struct dsec_bytes code;
	struct dsec_bytes message;
	int32_t errno_value;
	struct dsec_bytes step;
};

struct dsec_msg_id_map {
	uint32_t present;
	uint32_t inside;
	uint32_t outside;
	uint32_t count;
};

struct dsec_msg_root_layer {
	uint32_t present;
	struct dsec_bytes layer_id;
};

enum {
	DSEC_UPPER_DRIVER_TMPFS = 0,
	DSEC_UPPER_DRIVER_IMAGE = 1,
	DSEC_UPPER_DRIVER_BTRFS = 2,
};

enum {
	DSEC_UPPER_HAS_INODES_UNLIMITED = 1u << 3,
};

struct dsec_msg_upper {
	uint32_t present;
	uint8_t driver;
	uint64_t size_bytes;
	uint64_t inodes_max;
	bool inodes_unlimited;
};

struct dsec_msg_root {
	uint32_t present;
	struct dsec_list layers;
	struct dsec_msg_upper upper;
	bool nosuid;
};

enum {
	DSEC_MOUNT_KIND_PROC = 0,
	DSEC_MOUNT_KIND_TMPFS = 1,
	DSEC_MOUNT_KIND_DEVPTS = 2,
	DSEC_MOUNT_KIND_MQUEUE = 3,
	DSEC_MOUNT_KIND_SYSFS = 4,
	DSEC_MOUNT_KIND_DEV = 5,
	DSEC_MOUNT_KIND_BIND = 6,
	DSEC_MOUNT_KIND_LAYER = 7,
	DSEC_MOUNT_KIND_MASK = 8,
	DSEC_MOUNT_KIND_READONLY = 9,
};

enum {
	DSEC_MOUNT_HAS_SOURCE = 1u << 2,
	DSEC_MOUNT_HAS_SIZE_BYTES = 1u << 4,
	DSEC_MOUNT_HAS_INODES_MAX = 1u << 5,
	DSEC_MOUNT_HAS_MODE = 1u << 6,
	DSEC_MOUNT_HAS_OPTIONS = 1u << 7,
};

struct dsec_msg_mount {
	uint32_t present;
	uint8_t kind;
	struct dsec_bytes target;
	struct dsec_bytes source;
	uint32_t flags;
	uint64_t size_bytes;
	uint64_t inodes_max;
	uint16_t mode;
	struct dsec_list options;
};

struct dsec_msg_assignment {
	uint32_t present;
	struct dsec_bytes name;
	struct dsec_bytes value;
};

struct dsec_msg_cgroup {
	uint32_t present;
	struct dsec_bytes hierarchy;
	struct dsec_bytes directory;
	struct dsec_list settings;
};

enum {
	DSEC_RLIMIT_HAS_SOFT = 1u << 1,
	DSEC_RLIMIT_HAS_HARD = 1u << 2,
};

struct dsec_msg_rlimit {
	uint32_t present;
	uint8_t resource;
	uint64_t soft;
	uint64_t hard;
};

enum {
	DSEC_DESCRIPTOR_KIND_NULL = 0,
	DSEC_DESCRIPTOR_KIND_LISTENER = 1,
	DSEC_DESCRIPTOR_KIND_LOG = 2,
};

enum {
	DSEC_DESCRIPTOR_HAS_NAME = 1u << 2,
};

struct dsec_msg_descriptor {
	uint32_t present;
	uint32_t number;
	uint8_t kind;
	struct dsec_bytes name;
};

struct dsec_msg_link {
	uint32_t present;
	uint32_t address;
	uint32_t gateway;
};

enum {
	DSEC_SPAWN_KIND_SANDBOX = 0,
	DSEC_SPAWN_KIND_SERVICE = 1,
};

enum {
	DSEC_SPAWN_HAS_HOSTNAME = 1u << 6,
	DSEC_SPAWN_HAS_ROOT = 1u << 7,
	DSEC_SPAWN_HAS_SECCOMP = 1u << 14,
	DSEC_SPAWN_HAS_PROGRAM = 1u << 17,
	DSEC_SPAWN_HAS_CPUS = 1u << 22,
	DSEC_SPAWN_HAS_LINK = 1u << 23,
};

struct dsec_msg_spawn {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
	uint8_t kind;
	uint32_t namespaces;
	struct dsec_list id_maps;
	struct dsec_list session_id_maps;
	struct dsec_bytes hostname;
	struct dsec_msg_root root;
	struct dsec_list mounts;
	struct dsec_list sysctls;
	struct dsec_list cgroups;
	struct dsec_list rlimits;
	uint64_t capabilities;
	bool no_new_privileges;
	struct dsec_bytes seccomp;
	uint32_t uid;
	uint32_t gid;
	struct dsec_bytes program;
	struct dsec_list argv;
	struct dsec_list env;
	struct dsec_list descriptors;
	int32_t oom_score_adj;
	struct dsec_bytes cpus;
	struct dsec_msg_link link;
};

struct dsec_msg_spawned {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
	uint32_t pid;
	uint64_t start_ticks;
};

struct dsec_msg_adopt {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
	uint32_t pid;
	uint64_t start_ticks;
	struct dsec_list cgroups;
};

struct dsec_msg_kill {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
};

struct dsec_msg_release {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
};

enum {
	DSEC_LIST_HAS_AFTER = 1u << 0,
};

struct dsec_msg_list {
	uint32_t present;
	struct dsec_bytes after;
};

enum {
	DSEC_LISTED_OBJECT_HAS_EXIT_CODE = 1u << 4,
	DSEC_LISTED_OBJECT_HAS_SIGNAL = 1u << 5,
};

struct dsec_msg_listed_object {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
	uint32_t pid;
	uint64_t start_ticks;
	uint8_t exit_code;
	uint8_t signal;
	bool oom_killed;
	bool running;
};

struct dsec_msg_listed {
	uint32_t present;
	struct dsec_list objects;
	bool more;
};

enum {
	DSEC_EXITED_HAS_EXIT_CODE = 1u << 2,
	DSEC_EXITED_HAS_SIGNAL = 1u << 3,
};

struct dsec_msg_exited {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
	uint8_t exit_code;
	uint8_t signal;
	bool oom_killed;
};

struct dsec_msg_remount {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
	struct dsec_list mounts;
};

struct dsec_msg_layer_device {
	uint32_t present;
	struct dsec_bytes file;
};

struct dsec_msg_layer_mount {
	uint32_t present;
	struct dsec_bytes layer_id;
	struct dsec_bytes meta;
	struct dsec_list devices;
	bool direct_io;
};

struct dsec_msg_layer_unmount {
	uint32_t present;
	struct dsec_bytes layer_id;
};

enum {
	DSEC_LAYER_LIST_HAS_AFTER = 1u << 0,
};

struct dsec_msg_layer_list {
	uint32_t present;
	struct dsec_bytes after;
};

struct dsec_msg_mounted_layer {
	uint32_t present;
	struct dsec_bytes layer_id;
	uint32_t users;
};

struct dsec_msg_layers_listed {
	uint32_t present;
	struct dsec_list layers;
	bool more;
};

struct dsec_msg_router {
	uint32_t present;
	uint32_t gateway;
};

struct dsec_msg_cgroup_write {
	uint32_t present;
	struct dsec_bytes name;
	uint32_t generation;
	struct dsec_bytes hierarchy;
	struct dsec_list settings;
};

struct dsec_msg_launcher_empty {
	uint32_t present;

};

extern const struct dsec_message dsec_msg_hello;
extern const struct dsec_message dsec_msg_welcome;
extern const struct dsec_message dsec_msg_empty;
extern const struct dsec_message dsec_msg_error;
extern const struct dsec_message dsec_msg_reseed;
extern const struct dsec_message dsec_msg_pty_size;
extern const struct dsec_message dsec_msg_exec_start;
extern const struct dsec_message dsec_msg_exec_attach;
extern const struct dsec_message dsec_msg_exec_started;
extern const struct dsec_message dsec_msg_exec_exit;
extern const struct dsec_message dsec_msg_exec_exit_ack;
extern const struct dsec_message dsec_msg_signal;
extern const struct dsec_message dsec_msg_timeout;
extern const struct dsec_message dsec_msg_session_open;
extern const struct dsec_message dsec_msg_session_close;
extern const struct dsec_message dsec_msg_session_watch;
extern const struct dsec_message dsec_msg_granted_tree;
extern const struct dsec_message dsec_msg_session_rules;
extern const struct dsec_message dsec_msg_channel;
extern const struct dsec_message dsec_msg_file_read;
extern const struct dsec_message dsec_msg_file_write;
extern const struct dsec_message dsec_msg_file_stat;
extern const struct dsec_message dsec_msg_file_list;
extern const struct dsec_message dsec_msg_file_mkdir;
extern const struct dsec_message dsec_msg_file_move;
extern const struct dsec_message dsec_msg_file_remove;
extern const struct dsec_message dsec_msg_file_attributes;
extern const struct dsec_message dsec_msg_file_entries;
extern const struct dsec_message dsec_msg_port_open;
extern const struct dsec_message dsec_msg_done;
extern const struct dsec_message dsec_msg_launcher_hello;
extern const struct dsec_message dsec_msg_launcher_welcome;
extern const struct dsec_message dsec_msg_launcher_error;
extern const struct dsec_message dsec_msg_id_map;
extern const struct dsec_message dsec_msg_root_layer;
extern const struct dsec_message dsec_msg_upper;
extern const struct dsec_message dsec_msg_root;
extern const struct dsec_message dsec_msg_mount;
extern const struct dsec_message dsec_msg_assignment;
extern const struct dsec_message dsec_msg_cgroup;
extern const struct dsec_message dsec_msg_rlimit;
extern const struct dsec_message dsec_msg_descriptor;
extern const struct dsec_message dsec_msg_link;
extern const struct dsec_message dsec_msg_spawn;
extern const struct dsec_message dsec_msg_spawned;
extern const struct dsec_message dsec_msg_adopt;
extern const struct dsec_message dsec_msg_kill;
extern const struct dsec_message dsec_msg_release;
extern const struct dsec_message dsec_msg_list;
extern const struct dsec_message dsec_msg_listed_object;
extern const struct dsec_message dsec_msg_listed;
extern const struct dsec_message dsec_msg_exited;
extern const struct dsec_message dsec_msg_remount;
extern const struct dsec_message dsec_msg_layer_device;
extern const struct dsec_message dsec_msg_layer_mount;
extern const struct dsec_message dsec_msg_layer_unmount;
extern const struct dsec_message dsec_msg_layer_list;
extern const struct dsec_message dsec_msg_mounted_layer;
extern const struct dsec_message dsec_msg_layers_listed;
extern const struct dsec_message dsec_msg_router;
extern const struct dsec_message dsec_msg_cgroup_write;
extern const struct dsec_message dsec_msg_launcher_empty;

struct dsec_protocol;
extern const struct dsec_protocol dsec_aether_protocol;
extern const struct dsec_protocol dsec_launcher_protocol;

#endif
