#include "upper-pool.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash.h"
#include "host.h"
#include "kernel.h"
#include "upper.h"
#include "worker.h"

#define READY	  ".ready-"
#define NEW_READY ".new-" READY

enum {
	SIZES_MAX = 2,
	READY_MAX = 8, /* of each size */
};

struct pool {
	struct image_size size;
	uint64_t asked; /* when, in takes */
	char ready[READY_MAX][READY_BYTES_MAX];
	int count;
};

/* What a worker does: first it removes, then it makes. */
struct refill {
	struct pool *pool;
	struct image_size size;
	char old[READY_MAX][READY_BYTES_MAX];
	int old_count;
	char made[READY_MAX][READY_BYTES_MAX];
	int made_count;
};

static struct pool pools[SIZES_MAX];
static uint64_t takes;
static uint64_t names;
static struct refill refill;
static pid_t refiller; /* 0: none at work */

static bool is_size(const struct pool *pool, const struct image_size *size)
{
	return pool->size.bytes == size->bytes && pool->size.inodes == size->inodes;
}

/* The pool of a size, or the one whose size was asked for the longest ago. */
static struct pool *pool_of(const struct image_size *size)
{
	struct pool *oldest = pools;

	for (struct pool *pool = pools; pool < pools + SIZES_MAX; pool++) {
		if (is_size(pool, size))
			return pool;
		if (pool->asked < oldest->asked)
			oldest = pool;
	}
	return oldest;
}

int upper_pool_drop(const char *ready)
{
	char path[READY_BYTES_MAX + 16];
	AUTO_CLOSE directory = host_open("uppers", O_RDONLY | O_DIRECTORY);

	snprintf(path, sizeof(path), "/uppers/%s", ready);
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) && errno != EINVAL && errno != ENOENT)
		return -errno;
	if (rmdir(path) && errno != ENOENT)
		return -errno;
	if (directory < 0)
		return directory == -ENOENT ? 0 : directory;
	return upper_image_remove(directory, ready);
}

static int make_ready(int directory, const char *ready)
{
	AUTO_CLOSE mount = upper_image_mount(directory, &refill.size, ready, host.home);
	char path[READY_BYTES_MAX + 16];
	int err;

	if (mount < 0)
		return mount;
	crash_point(CRASH_UPPER_READY);
	snprintf(path, sizeof(path), "/uppers/%s", ready);
	err = host_visit();
	if (!err)
		err = mkdir(path, 0700) ? -errno : kernel_move_mount(mount, AT_FDCWD, path);
	return err ? err : host_return();
}

/* It goes with the launcher: the next one must not find more after it has swept. */
static _Noreturn void run(pid_t launcher, int report)
{
	AUTO_CLOSE directory = upper_directory();
	int err = prctl(PR_SET_PDEATHSIG, SIGKILL) ? -errno : 0;

	if (getppid() != launcher)
		_exit(1);
	if (directory < 0)
		err = directory;
	if (!err)
		err = host_visit();
	for (int i = 0; i < refill.old_count && !err; i++)
		err = upper_pool_drop(refill.old[i]);
	if (!err)
		err = host_return();
	for (int i = 0; i < refill.made_count; i++) {
		if (err) {
			worker_fail(report, i, "upper", -err);
			continue;
		}
		err = make_ready(directory, refill.made[i]);
		if (!err)
			continue;
		worker_fail(report, i, "upper", -err);
		upper_image_remove(directory, refill.made[i]);
	}
	worker_succeed(report);
	_exit(0);
}

static void refilled(struct worker *worker)
{
	struct pool *pool = refill.pool;

	refiller = 0;
	for (int i = 0; i < refill.made_count; i++) {
		if (worker->succeeded && !worker->failures[i].code)
			strcpy(pool->ready[pool->count++], refill.made[i]);
	}
}

/* Without memory or processes the next spawn makes its upper itself, and tries again. */
static void start(struct pool *pool)
{
	pid_t launcher = getpid();
	struct worker *worker;
	int report;

	refill.pool = pool;
	refill.size = pool->size;
	refill.made_count = READY_MAX - pool->count;
	for (int i = 0; i < refill.made_count; i++)
		snprintf(refill.made[i], READY_BYTES_MAX, READY "%d-%llu", launcher,
			 (unsigned long long)++names);
	worker = worker_new(refilled, NULL, refill.made_count, &report);
	if (!worker)
		return;
	refiller = fork();
	if (refiller == 0)
		run(launcher, report);
	if (refiller < 0) {
		refiller = 0;
		worker_drop(worker, report);
		return;
	}
	refill.old_count = 0;
	worker_start(worker, refiller, report);
}

void upper_pool_take(struct object *object, const struct dsec_msg_upper *upper)
{
	struct image_size size = upper_image_size(upper);
	struct pool *pool = pool_of(&size);

	/* One that is being filled keeps its size. */
	if (!is_size(pool, &size) && refiller)
		return;
	if (!is_size(pool, &size)) {
		memcpy(refill.old, pool->ready, sizeof(refill.old));
		refill.old_count = pool->count;
		*pool = (struct pool){ .size = size };
	}
	pool->asked = ++takes;
	if (pool->count > 0)
		strcpy(object->ready, pool->ready[--pool->count]);
	if (!refiller && pool->count <= READY_MAX / 2)
		start(pool);
}

static bool is_ready(const char *name)
{
	return !strncmp(name, READY, sizeof(READY) - 1) ||
	       !strncmp(name, NEW_READY, sizeof(NEW_READY) - 1);
}

static void sweep_mounts(void)
{
	DIR *uppers = opendir("/uppers");
	struct dirent *entry;

	while (uppers && (entry = readdir(uppers))) {
		char path[sizeof("/uppers/") + sizeof(entry->d_name)];

		if (!is_ready(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "/uppers/%s", entry->d_name);
		umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
		rmdir(path);
	}
	if (uppers)
		closedir(uppers);
}

static void sweep_images(void)
{
	int fd = host_open("uppers", O_RDONLY | O_DIRECTORY);
	DIR *images = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (images && (entry = readdir(images))) {
		if (is_ready(entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	}
	if (images)
		closedir(images);
}

void upper_pool_sweep(void)
{
	if (refiller) {
		kill(refiller, SIGKILL);
		waitpid(refiller, NULL, 0);
	}
	if (host_visit())
		return;
	sweep_mounts();
	if (host_return())
		abort();
	sweep_images();
}
