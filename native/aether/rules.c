#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "crash.h"
#include "kernel.h"
#include "link.h"
#include "stream.h"
#include "tree.h"

enum {
	PATH_BYTES_MAX = 4096,
	/* Older ones cannot deny that a file is truncated. */
	LANDLOCK_VERSION_MIN = 3,
	LANDLOCK_CREATE_VERSION = 1,
	LANDLOCK_PATH_BENEATH = 1,
	SECCOMP_FILTER_MODE = 1,
	INSTRUCTION_BYTES = 8,
};

/* Of a rule for what is no directory: execute, write, read, truncate, device control. */
#define LANDLOCK_FILE_ACCESS UINT64_C(0xc007)

/* As the kernel has them; the first is also all that Landlock of version 3 knows of it. */
struct landlock_ruleset {
	uint64_t handled_access;
};

struct landlock_path {
	uint64_t allowed_access;
	int32_t parent;
} __attribute__((packed));

static bool held;
static bool has_rules;
/* Of the message below, which points into it. Untouched in most sandboxes, and so without cost. */
static uint8_t kept[DSEC_FRAME_DATA_BYTES_MAX];
static struct dsec_msg_session_rules rules;
static struct stream quiet;

bool rules_held(void)
{
	return held;
}

uint64_t rules_capabilities(void)
{
	return has_rules ? rules.capabilities : ~UINT64_C(0);
}

static int landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_VERSION);
}

int rules_take(const struct dsec_frame *frame)
{
	struct dsec_msg_session_rules message;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	if (message.handled_access && landlock_version() < LANDLOCK_VERSION_MIN) {
		link_put_error(frame->stream, DSEC_ERROR_UNSUPPORTED, 0, "no Landlock here");
		return 0;
	}
	if (message.present & DSEC_SESSION_RULES_HAS_SECCOMP &&
	    message.seccomp.length % INSTRUCTION_BYTES) {
		link_put_error(frame->stream, DSEC_ERROR_INVALID_ARGUMENT, 0,
			       "half an instruction");
		return 0;
	}
	memcpy(kept, frame->payload.data, frame->payload.length);
	dsec_message_decode(frame->type->message,
			    (struct dsec_bytes){ kept, frame->payload.length }, &rules);
	has_rules = true;
	held = false;
	crash_point(CRASH_RULES_TAKEN);
	link_put(DSEC_AETHER_DONE, frame->stream, &(struct dsec_msg_done){ 0 });
	return 0;
}

static bool produce(struct stream *stream)
{
	(void)stream;
	return false;
}

/* The host gives up waiting; what was to end ends all the same. */
static int consume(struct stream *stream, const struct dsec_frame *frame)
{
	if (frame->type->code != DSEC_AETHER_CANCEL && frame->type->code != DSEC_AETHER_ERROR)
		return -EPROTO;
	stream_close(stream);
	return 0;
}

static void detached(struct stream *stream)
{
	(void)stream;
}

static const struct stream_kind quiet_stream = {
	.produce = produce,
	.consume = consume,
	.detached = detached,
	.is_silent = true,
};

/* Whatever lost its parent is a child of PID 1, and so of aether: without one it is alone. */
static bool is_alone(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/*
 * All at once where aether is the first process of a namespace: the kernel lets nobody in it fork
 * meanwhile. Elsewhere again and again, as long as something is left below aether.
 */
static void end_all(void)
{
	if (getpid() == 1)
		kill(-1, SIGKILL);
	else
		tree_signal(getpid(), SIGKILL, 0);
}

void rules_children_ended(void)
{
	uint32_t number = quiet.number;

	if (number == 0)
		return;
	if (!is_alone()) {
		if (getpid() != 1)
			end_all();
		return;
	}
	stream_close(&quiet);
	link_put(DSEC_AETHER_DONE, number, &(struct dsec_msg_done){ 0 });
}

int rules_quiesce(const struct dsec_frame *frame)
{
	held = true;
	if (quiet.number != 0) {
		link_put_error(quiet.number, DSEC_ERROR_CONFLICT, 0, "asked for on another stream");
		stream_close(&quiet);
	}
	if (stream_open(&quiet, &quiet_stream, frame->stream))
		return -EPROTO;
	command_note_policy();
	crash_point(CRASH_QUIESCE);
	end_all();
	rules_children_ended();
	return 0;
}

/* One tree of the ruleset. One that is not there, or behind a link, is left out. */
static int grant(int ruleset, const struct dsec_msg_granted_tree *tree)
{
	struct kernel_open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS_BIT | RESOLVE_NO_MAGICLINKS_BIT,
	};
	struct landlock_path rule = { .allowed_access = tree->access & rules.handled_access };
	char path[PATH_BYTES_MAX];
	struct stat status;
	int err = 0;

	memcpy(path, tree->path.data, tree->path.length);
	path[tree->path.length] = 0;
	rule.parent = kernel_openat2(AT_FDCWD, path, &how);
	if (rule.parent < 0)
		return 0;
	if (!fstat(rule.parent, &status) && !S_ISDIR(status.st_mode))
		rule.allowed_access &= LANDLOCK_FILE_ACCESS;
	if (rule.allowed_access &&
	    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_PATH_BENEATH, &rule, 0))
		err = -errno;
	close(rule.parent);
	return err;
}

static int grant_all(int ruleset)
{
	struct dsec_list trees = rules.trees;
	struct dsec_bytes item;
	int err = 0;

	while (!err && dsec_list_next(&trees, &item)) {
		struct dsec_msg_granted_tree tree;

		dsec_message_decode(&dsec_msg_granted_tree, item, &tree);
		err = grant(ruleset, &tree);
	}
	return err;
}

int rules_confine(void)
{
	struct landlock_ruleset attributes = { rules.handled_access };
	int ruleset, err;

	if (!has_rules || !rules.handled_access)
		return 0;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	if (ruleset < 0)
		return -errno;
	err = grant_all(ruleset);
	if (!err && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		     syscall(SYS_landlock_restrict_self, ruleset, 0)))
		err = -errno;
	close(ruleset);
	return err;
}

int rules_filter(void)
{
	struct {
		unsigned short length;
		const void *instructions;
	} program = { (unsigned short)(rules.seccomp.length / INSTRUCTION_BYTES),
		      rules.seccomp.data };

	if (!has_rules || !(rules.present & DSEC_SESSION_RULES_HAS_SECCOMP))
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_FILTER_MODE, 0, &program))
		return -errno;
	return 0;
}
