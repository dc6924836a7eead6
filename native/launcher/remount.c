#include "remount.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crash.h"
#include "host.h"
#include "kernel.h"
#include "lifecycle.h"
#include "object.h"
#include "setup.h"
#include "spec.h"
#include "worker.h"

enum {
	/* Of the mount table of a sandbox: its mounts are bounded, and so are their names. */
	TABLE_BYTES_MAX = 512 * 1024,
	/* More than there can be, should somebody have made more than we know of. */
	REMOVED_MAX = 256,
};

static char table[TABLE_BYTES_MAX + 1];

/* The descriptor of the mount namespace of an object that runs, or a negative errno. */
static int open_namespace(const struct object *object)
{
	uint64_t ticks;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "%d/ns/mnt", object->pid);
	fd = openat(host.proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Looked at after it was opened: then it is its own. */
	if (!lifecycle_start_ticks(object->pid, &ticks) && ticks == object->start_ticks)
		return fd;
	close(fd);
	return -ESRCH;
}

static int read_table(void)
{
	AUTO_CLOSE fd = openat(host.proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t bytes;

	if (fd < 0)
		return -errno;
	while ((bytes = read(fd, table + length, TABLE_BYTES_MAX - length)) > 0)
		length += (size_t)bytes;
	if (bytes < 0)
		return -errno;
	table[length] = '\0';
	return length == TABLE_BYTES_MAX ? -E2BIG : 0;
}

static bool is_octal(const char *at)
{
	return at[0] >= '0' && at[0] <= '3' && at[1] >= '0' && at[1] <= '7' && at[2] >= '0' &&
	       at[2] <= '7';
}

/* Blanks, tabs, line ends and backslashes are written as three octal digits. */
static void unescape(char *text)
{
	char *to = text;

	for (char *from = text; *from; from++) {
		if (*from == '\\' && is_octal(from + 1)) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/*
 * Where one for a policy is mounted, by a line of the table: ID PARENT DEVICE ROOT PLACE OPTIONS
 * ...
 * - TYPE SOURCE OPTIONS. NULL for one of the platform's.
 */
static char *policy_place(char *line)
{
	char *type = strstr(line, " - ");
	char *rest = NULL;
	char *fields[5];

	if (!type)
		return NULL;
	type += 3;
	for (int i = 0; i < 5; i++) {
		fields[i] = strtok_r(i ? NULL : line, " ", &rest);
		if (!fields[i])
			return NULL;
	}
	if (strcmp(fields[3], HOST_COVER) && strcmp(fields[3], HOST_COVER_NULL) &&
	    (strncmp(type, "overlay ", 8) || !strcmp(fields[3], "/")))
		return NULL;
	unescape(fields[4]);
	return fields[4];
}

/* Returns 1 when one was removed, 0 when there is none. What is mounted below it goes with it. */
static int remove_one(void)
{
	char *rest = NULL;
	int err = read_table();

	if (err)
		return err;
	for (char *line = strtok_r(table, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *place = policy_place(line);

		if (place)
			return umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) ? -errno : 1;
	}
	return 0;
}

static int remove_all(void)
{
	int removed = 1;

	for (int i = 0; i < REMOVED_MAX && removed > 0; i++)
		removed = remove_one();
	return removed > 0 ? -E2BIG : removed;
}

static int cover(struct setup *setup, const struct dsec_msg_mount *mount)
{
	AUTO_CLOSE target = setup_target(setup, mount->target);
	AUTO_CLOSE made = -1;

	if (target < 0)
		return target;
	if (mount->kind == DSEC_MOUNT_KIND_READONLY) {
		made = setup_readonly(target, mount);
	} else {
		/* A mount is copied only by who lives where it is. */
		if (setns(host.home, CLONE_NEWNS))
			return -errno;
		made = setup_mask(target, mount);
		if (setns(setup->home, CLONE_NEWNS))
			return -errno;
	}
	return made < 0 ? made : kernel_move_mount(made, target, "");
}

static int enter(struct setup *setup)
{
	struct stat status;

	if (setns(setup->home, CLONE_NEWNS))
		return -errno;
	setup->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (setup->root < 0 || fstat(setup->root, &status))
		return -errno;
	/* Whoever its root belongs to is one of the sandbox, whatever was done inside. */
	if (status.st_uid < DSEC_SANDBOX_ID_FIRST || status.st_gid < DSEC_SANDBOX_ID_FIRST)
		return -EPERM;
	setup->root_uid = status.st_uid;
	setup->root_gid = status.st_gid;
	return 0;
}

static int replace(struct setup *setup)
{
	struct dsec_list mounts = setup->spec->mounts;
	struct dsec_bytes item;
	int err;

	strcpy(setup->step, "namespace");
	err = enter(setup);
	if (err)
		return err;
	strcpy(setup->step, "unmount");
	err = remove_all();
	if (!err)
		crash_point(CRASH_REMOUNT_BARE);
	while (!err && dsec_list_next(&mounts, &item)) {
		struct dsec_msg_mount mount;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		setup_step(setup, "mount", mount.target);
		err = cover(setup, &mount);
	}
	return err;
}

/* It goes with the launcher: the next one must not find the mounts change behind its back. */
static _Noreturn void run(struct setup *setup, pid_t launcher)
{
	int err = prctl(PR_SET_PDEATHSIG, SIGKILL) ? -errno : 0;

	if (getppid() != launcher)
		_exit(1);
	umask(022);
	if (!err)
		err = replace(setup);
	if (err)
		worker_fail(setup->report, 0, setup->step, -err);
	else
		worker_succeed(setup->report);
	_exit(0);
}

static void done(struct worker *worker)
{
	struct origin *origin = worker->context;
	struct failure failure = worker->failures[0];

	crash_point(CRASH_REMOUNT_DONE);
	if (!worker->succeeded && !failure.code)
		failure = failure_of(DSEC_ERROR_INTERNAL, "who changes the mounts died");
	if (failure.code)
		link_fail(*origin, &failure);
	else
		link_done(*origin);
	free(origin);
}

static int start(struct origin origin, struct setup *setup)
{
	struct origin *kept = malloc(sizeof(*kept));
	struct worker *worker = kept ? worker_new(done, kept, 1, &setup->report) : NULL;
	pid_t launcher = getpid();
	pid_t pid;

	if (!worker) {
		free(kept);
		return -ENOMEM;
	}
	*kept = origin;
	pid = fork();
	if (pid == 0)
		run(setup, launcher);
	if (pid < 0) {
		int err = -errno;

		worker_drop(worker, setup->report);
		free(kept);
		return err;
	}
	worker_start(worker, pid, setup->report);
	return 0;
}

void remount(struct origin origin, const struct dsec_msg_remount *request)
{
	struct failure failure = failure_of(DSEC_ERROR_NOT_FOUND, "no such object");
	struct dsec_msg_spawn spec = { .mounts = request->mounts };
	struct setup setup = { .spec = &spec };
	char key[KEY_BYTES_MAX + 1];
	struct object *object =
		object_key(request->name, request->generation, key) ? NULL : object_find(key);
	const char *problem = spec_check_covers(request->mounts);
	int err;

	if (problem)
		failure = failure_of(DSEC_ERROR_INVALID_ARGUMENT, problem);
	else if (object && (object->releasing || object->state != OBJECT_RUNNING || !object->pid))
		failure = failure_of(DSEC_ERROR_STATE_CONFLICT, "it does not run");
	if (problem || !object || object->releasing || object->state != OBJECT_RUNNING ||
	    !object->pid) {
		link_fail(origin, &failure);
		return;
	}
	setup.home = open_namespace(object);
	err = setup.home < 0 ? setup.home : start(origin, &setup);
	close_fd(&setup.home);
	if (!err)
		return;
	failure = failure_at("remount", -err);
	link_fail(origin, &failure);
}
