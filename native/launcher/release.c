/*
 * Removing what bears the name of a dead object. Its socket goes at once. Its upper is a file
 * system of its own, so that it goes as a whole and no tree of an agent's is ever walked; but
 * giving its memory back takes as long as it is large, an unmount waits for every processor, and a
 * cgroup for all who change one. So a reaper does that for all objects that have come up meanwhile:
 * one at a time, unless it takes long.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "crash.h"
#include "host.h"
#include "kernel.h"
#include "layers.h"
#include "lifecycle.h"
#include "settings.h"
#include "upper-pool.h"
#include "upper.h"
#include "veth.h"
#include "worker.h"

enum {
	BATCH_MAX = 4096,
	/* Beside one that is busy for so long, others serve the small ones behind a large one. */
	REAPERS_MAX = 4,
	REAPER_BUSY_MS = 100,
};

struct batch {
	struct object *objects[BATCH_MAX];
	int count;
};

static struct batch *waiting;
static int reapers;
static uint64_t last_reaper_ms;
/* Looks again whether one is busy for long. */
static struct watch clock_watch = { .fd = -1 };

static void start_reaper(void);

static int remove_upper(const struct object *object)
{
	const char *key = object->key;
	char path[96];
	int err;

	snprintf(path, sizeof(path), "/uppers/%s", key);
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) && errno != EINVAL && errno != ENOENT)
		return -errno;
	if (rmdir(path) && errno != ENOENT)
		return -errno;
	crash_point(CRASH_RELEASE_MOUNT);
	err = *object->ready ? upper_pool_drop(object->ready) : 0;
	return err ? err : upper_remove(key);
}

/* The layers of an object that an earlier launcher started are not known: each is looked at. */
static void forget_users(const struct batch *batch)
{
	DIR *layers = opendir("/layers");
	struct dirent *entry;

	while (layers && (entry = readdir(layers))) {
		char path[LAYER_PATH_BYTES];
		int users;

		snprintf(path, sizeof(path), "/layers/%.81s/users", entry->d_name);
		users = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		for (int i = 0; i < batch->count && users >= 0; i++)
			unlinkat(users, batch->objects[i]->key, 0);
		close_fd(&users);
	}
	if (layers)
		closedir(layers);
}

/* Before the cgroups: without those, nobody would look for what is left of an object. */
static int remove_links(const struct batch *batch)
{
	struct veth_removal removal = { .netlink.fd = -1 };
	int err = 0;

	for (int i = 0; i < batch->count && !err; i++)
		err = veth_mark(&removal, batch->objects[i]->key);
	if (!err)
		err = veth_remove_marked(&removal);
	crash_point(CRASH_RELEASE_LINK);
	for (int i = 0; i < batch->count && !err; i++)
		err = veth_forget(batch->objects[i]->key);
	netlink_close(&removal.netlink);
	return err;
}

static _Noreturn void reap(const struct batch *batch, int report)
{
	const char *first = "link";
	int err = remove_links(batch);

	if (!err) {
		first = "cgroup";
		err = host_visit();
	}
	for (int i = 0; i < batch->count; i++) {
		const char *step = err ? first : "cgroup";
		int failed = err ? err : cgroup_remove(batch->objects[i]->key);

		crash_point(CRASH_RELEASE_CGROUP);
		if (!failed) {
			step = "upper";
			failed = remove_upper(batch->objects[i]);
		}
		if (failed)
			worker_fail(report, i, step, -failed);
		crash_point(CRASH_RELEASE_UPPER);
	}
	if (!err)
		forget_users(batch);
	worker_succeed(report);
	_exit(0);
}

static void reaper_done(struct worker *worker)
{
	struct batch *batch = worker->context;

	reapers--;
	for (int i = 0; i < batch->count; i++) {
		struct failure failure = worker->failures[i];

		if (!worker->succeeded && !failure.code)
			failure = failure_of(DSEC_ERROR_INTERNAL, "the reaper died");
		lifecycle_removed(batch->objects[i], &failure);
	}
	free(batch);
	start_reaper();
}

static void fail_all(struct batch *batch, struct failure failure)
{
	for (int i = 0; i < batch->count; i++)
		lifecycle_removed(batch->objects[i], &failure);
	free(batch);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void clock_ready(struct watch *watch, uint32_t events)
{
	uint64_t ticks;

	(void)events;
	(void)!read(watch->fd, &ticks, sizeof(ticks));
	start_reaper();
}

int release_init(void)
{
	clock_watch.ready = clock_ready;
	clock_watch.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return clock_watch.fd < 0 ? -errno : watch_add(&clock_watch, EPOLLIN);
}

/* Whether another reaper may start now; else one will be asked for when the time has come. */
static bool may_start(void)
{
	struct itimerspec later = { .it_value.tv_nsec = REAPER_BUSY_MS * 1000000L };

	if (reapers == 0)
		return true;
	if (reapers == REAPERS_MAX)
		return false;
	if (now_ms() - last_reaper_ms >= REAPER_BUSY_MS)
		return true;
	timerfd_settime(clock_watch.fd, 0, &later, NULL);
	return false;
}

static void start_reaper(void)
{
	struct batch *batch = waiting;
	struct worker *worker;
	int report;
	pid_t pid;

	if (!batch || !may_start())
		return;
	waiting = NULL;
	worker = worker_new(reaper_done, batch, batch->count, &report);
	if (!worker) {
		fail_all(batch, failure_at("reaper", ENOMEM));
		return;
	}
	pid = fork();
	if (pid == 0)
		reap(batch, report);
	if (pid < 0) {
		worker_drop(worker, report);
		fail_all(batch, failure_at("reaper", errno));
		return;
	}
	reapers++;
	last_reaper_ms = now_ms();
	worker_start(worker, pid, report);
}

static int enqueue(struct object *object)
{
	if (!waiting)
		waiting = calloc(1, sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	if (waiting->count == BATCH_MAX)
		return -EAGAIN;
	waiting->objects[waiting->count++] = object;
	return 0;
}

void lifecycle_written(struct object *object)
{
	char socket[KEY_BYTES_MAX + 8];
	struct failure failure;
	int err = 0;

	snprintf(socket, sizeof(socket), "%s.sock", object->key);
	if (unlinkat(host.sockets, socket, 0) && errno != ENOENT)
		err = -errno;
	crash_point(CRASH_RELEASE_SOCKET);
	if (!err)
		err = enqueue(object);
	if (err) {
		failure = failure_at("release", -err);
		lifecycle_removed(object, &failure);
		return;
	}
	start_reaper();
}

void lifecycle_remove(struct object *object)
{
	if (object->releasing)
		return;
	object->releasing = true;
	if (!settings_cancel(object))
		lifecycle_written(object);
}
