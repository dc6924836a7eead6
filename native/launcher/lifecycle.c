#include "lifecycle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "crash.h"
#include "host.h"
#include "kernel.h"
#include "loop.h"
#include "worker.h"

/* Nothing of these runs any more, but the kernel does not tell yet how their first process ended.
 */
static struct object *dying;

int lifecycle_start_ticks(pid_t pid, uint64_t *ticks)
{
	enum {
		FIELD_START = 22,
		FIELD_STATE = 3
	};
	char path[32], text[1024];
	AUTO_CLOSE fd = -1;
	ssize_t length;
	char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return -ESRCH;
	text[length] = '\0';
	/* The name in the second field may hold anything, but no field behind it holds a
	 * parenthesis. */
	at = strrchr(text, ')');
	for (int field = FIELD_STATE; at && field <= FIELD_START; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -ESRCH;
	*ticks = strtoull(at, NULL, 10);
	return 0;
}

static void tell_done(const struct object *object, struct origin origin)
{
	(void)object;
	link_done(origin);
}

static void tell_failure(const struct object *object, struct origin origin)
{
	link_fail(origin, &object->failure);
}

static void tell_exited(const struct object *object)
{
	struct dsec_msg_exited message = {
		OBJECT_KEY_FIELDS(object),
		.exit_code = object->exit.code,
		.signal = object->exit.signal,
		.oom_killed = object->exit.oom_killed,
	};

	if (object->exit.has_code)
		message.present |= DSEC_EXITED_HAS_EXIT_CODE;
	if (object->exit.has_signal)
		message.present |= DSEC_EXITED_HAS_SIGNAL;
	link_tell_all(DSEC_LAUNCHER_EXITED, &message);
}

/* Returns false while the first process cannot be collected. */
static bool collect(struct object *object)
{
	int status;
	pid_t pid;

	if (!object->own_child)
		return true;
	pid = waitpid(object->pid, &status, WNOHANG);
	if (pid == 0)
		return false;
	object->own_child = false;
	if (pid < 0)
		return true;
	if (WIFEXITED(status)) {
		object->exit.has_code = true;
		object->exit.code = (uint8_t)WEXITSTATUS(status);
	} else {
		object->exit.has_signal = true;
		object->exit.signal = (uint8_t)WTERMSIG(status);
	}
	return true;
}

static void ended(struct object *object)
{
	crash_point(CRASH_EXIT_SEEN);
	object->exit.oom_killed = cgroup_oom_kills(object) > object->oom_kills_before;
	object->state = OBJECT_ENDED;
	cgroup_unwatch(object);
	object_tell(object, WAITS_KILL, tell_done);
	if (!object->failure.code)
		tell_exited(object);
	if (object->failure.code || object_is_awaited(object, WAITS_RELEASE))
		lifecycle_remove(object);
}

void lifecycle_check(struct object *object)
{
	int populated = object->state == OBJECT_RUNNING ? cgroup_populated(object->key) : 1;
	bool unknown = populated < 0 && populated != -ENOENT;

	if (populated > 0 && object->state == OBJECT_RUNNING)
		cgroup_keep_frozen(object);
	/* What cannot be read says nothing; a child of ours tells of its end itself. */
	if (populated > 0 || (unknown && !object->own_child))
		return;
	for (struct object *other = dying; other; other = other->next_dying) {
		if (other == object)
			return;
	}
	if (collect(object)) {
		ended(object);
		return;
	}
	object->next_dying = dying;
	dying = object;
}

static void child_ended(void)
{
	struct object **link = &dying;

	worker_reap();
	while (*link) {
		struct object *object = *link;

		if (!collect(object)) {
			link = &object->next_dying;
			continue;
		}
		*link = object->next_dying;
		ended(object);
	}
}

/* An object by its name, taken into the table when only its cgroup tells of it. NULL: nothing does.
 */
static struct object *find_or_take(const char *key)
{
	struct object *object = object_find(key);

	if (object || cgroup_populated(key) < 0)
		return object;
	object = object_new(key);
	if (!object)
		return NULL;
	object->places[object->place_count++].hierarchy = host.hierarchies;
	strcpy(object->places[0].directory, key);
	object->state = OBJECT_RUNNING;
	cgroup_find_frozen(object);
	if (cgroup_watch(object)) {
		object_free(object);
		return NULL;
	}
	return object;
}

void lifecycle_kill(struct origin origin, const struct dsec_msg_kill *message)
{
	char key[KEY_BYTES_MAX + 1];
	struct failure failure;
	struct object *object;
	int err = object_key(message->name, message->generation, key);

	object = err ? NULL : find_or_take(key);
	if (!object || object->state == OBJECT_ENDED) {
		link_done(origin);
		return;
	}
	/* Not before the kernel has taken it: what waits is answered by the end. */
	err = cgroup_kill(key);
	crash_point(CRASH_KILL_WRITTEN);
	if (!err)
		err = object_await(object, WAITS_KILL, origin);
	if (err) {
		failure = failure_at("cgroup:kill", -err);
		link_fail(origin, &failure);
		return;
	}
	lifecycle_check(object);
}

/* True when the process is in the object's life directory, by what the kernel says of the process.
 */
static bool lives_in(pid_t pid, const char *key)
{
	char path[32], text[4096], line[KEY_BYTES_MAX + 64];
	AUTO_CLOSE fd = -1;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return false;
	text[length] = '\0';
	snprintf(line, sizeof(line), "/dsec-%s/%s\n", host.edge_id, key);
	for (char *at = text; at && *at; at = strchr(at, '\n'), at += !!at) {
		if (!strncmp(at, "0::", 3))
			return strstr(at, line) == strchr(at, '\n') + 1 - strlen(line);
	}
	return false;
}

void lifecycle_adopt(struct origin origin, const struct dsec_msg_adopt *message)
{
	char key[KEY_BYTES_MAX + 1];
	struct failure failure =
		failure_of(DSEC_ERROR_NOT_FOUND, "the process is not the one that is meant");
	pid_t pid = (pid_t)message->pid;
	struct object *object;
	uint64_t ticks;

	if (object_key(message->name, message->generation, key) ||
	    lifecycle_start_ticks(pid, &ticks) || ticks != message->start_ticks ||
	    !lives_in(pid, key)) {
		link_fail(origin, &failure);
		return;
	}
	object = find_or_take(key);
	if (!object || object->state != OBJECT_RUNNING) {
		link_fail(origin, &failure);
		return;
	}
	if (!object->pid) {
		object->pid = pid;
		object->start_ticks = ticks;
		if (cgroup_note(object, message->cgroups)) {
			failure = failure_at("cgroup", EINVAL);
			link_fail(origin, &failure);
			return;
		}
		object->oom_kills_before = cgroup_oom_kills(object);
	}
	link_done(origin);
	lifecycle_check(object);
}

/* Whatever bears the name is removed, known or not: a dead launcher may have made any part of it.
 */
void lifecycle_release(struct origin origin, const struct dsec_msg_release *message)
{
	char key[KEY_BYTES_MAX + 1];
	struct failure failure = failure_of(DSEC_ERROR_STATE_CONFLICT, "it runs: kill it first");
	struct object *object;

	if (object_key(message->name, message->generation, key)) {
		failure = failure_of(DSEC_ERROR_INVALID_ARGUMENT, "not a name");
		link_fail(origin, &failure);
		return;
	}
	object = find_or_take(key);
	if (!object)
		object = object_new(key);
	if (object)
		lifecycle_check(object);
	if (object && !object->pid && object->place_count == 0)
		object->state = OBJECT_ENDED;
	if (!object || (object->state != OBJECT_ENDED && !object_is_awaited(object, WAITS_KILL))) {
		link_fail(origin, &failure);
		return;
	}
	if (object_await(object, WAITS_RELEASE, origin)) {
		failure = failure_of(DSEC_ERROR_OVERLOADED, "it is being released");
		link_fail(origin, &failure);
		return;
	}
	if (object->state == OBJECT_ENDED)
		lifecycle_remove(object);
}

void lifecycle_removed(struct object *object, const struct failure *failure)
{
	object->releasing = false;
	if (failure->code) {
		struct failure reason = object->failure;

		object_tell(object, WAITS_SPAWN, tell_failure);
		object->failure = *failure;
		object_tell(object, WAITS_RELEASE, tell_failure);
		object->failure = reason;
		return;
	}
	object_tell(object, WAITS_SPAWN, tell_failure);
	object_tell(object, WAITS_KILL, tell_done);
	object_tell(object, WAITS_RELEASE, tell_done);
	object_free(object);
}

int lifecycle_init(void)
{
	int err = release_init();

	loop_child_ended = child_ended;
	return err ? err : cgroup_watch_init(lifecycle_check);
}
