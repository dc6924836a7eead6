/*
 * Removal of a name, or of a whole tree of any depth and width with few descriptors. A directory
 * that lies too deep is first moved up to the top of the tree, where it is met again later; so the
 * walk never needs a way back by `..`, which somebody could lead elsewhere by moving directories
 * about.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker.h"
#include "worker_directory.h"

enum {
	LEVELS_MAX = 48,
	/* A directory that is filled while it is emptied is tried again so often. */
	ROUNDS_MAX = 64,
	/* Of directories, whose rounds do not count: more levels than file systems have inodes. */
	MOVES_MAX = 1 << 24,
	/* Between looks at whether the request was cancelled. */
	ENTRIES_PER_LOOK = 256,
};

struct level {
	char name[256];
	int rounds;
	struct directory directory;
};

static struct level levels[LEVELS_MAX];
static int depth;
static unsigned long moved;
static unsigned long moved_before; /* the last round of the top */
static unsigned int entries_seen;

static void look_at_cancellation(void)
{
	struct pollfd control = { .fd = worker_task.control, .events = 0 };

	if (++entries_seen % ENTRIES_PER_LOOK == 0 && poll(&control, 1, 0) > 0)
		_exit(1);
}

static int enter(int parent, const char *name)
{
	struct level *level = &levels[depth];
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	snprintf(level->name, sizeof(level->name), "%s", name);
	level->rounds = 0;
	directory_init(&level->directory, fd);
	depth++;
	return 0;
}

/* Puts a directory that is too deep under the top, by a name that nobody had. */
static int move_up(int parent, const char *name)
{
	char fresh[64];
	int top = levels[0].directory.fd;

	do {
		snprintf(fresh, sizeof(fresh), ".dsec-removed-%d-%lu", (int)getpid(), moved++);
	} while (!faccessat(top, fresh, F_OK, AT_SYMLINK_NOFOLLOW));
	return renameat(parent, name, top, fresh) ? -errno : 0;
}

static int remove_entry(int parent, const struct directory_entry *entry)
{
	look_at_cancellation();
	if (!unlinkat(parent, entry->name, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (!unlinkat(parent, entry->name, AT_REMOVEDIR) || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	return depth < LEVELS_MAX ? enter(parent, entry->name) : move_up(parent, entry->name);
}

/* The deepest directory has been read to its end: removes it, or reads it again. */
static int leave(int parent)
{
	struct level *level = &levels[depth - 1];
	bool filled_by_us = depth == 1 && moved != moved_before && moved < MOVES_MAX;

	if (!unlinkat(parent, level->name, AT_REMOVEDIR) || errno == ENOENT) {
		close(level->directory.fd);
		depth--;
		return 0;
	}
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	if (filled_by_us)
		moved_before = moved;
	else if (++level->rounds > ROUNDS_MAX)
		return -ENOTEMPTY;
	directory_rewind(&level->directory);
	return 0;
}

static int remove_tree(int parent, const char *name)
{
	int err = enter(parent, name);

	while (!err && depth > 0) {
		const struct directory_entry *entry;
		struct level *level = &levels[depth - 1];

		err = directory_next(&level->directory, &entry);
		if (err > 0)
			err = remove_entry(level->directory.fd, entry);
		else if (err == 0)
			err = leave(depth > 1 ? levels[depth - 2].directory.fd : parent);
	}
	return err;
}

void worker_remove(const struct dsec_msg_file_remove *message)
{
	char name[256];
	int parent = worker_open_parent(message->path, false, name);
	int err = 0;

	if (parent < 0)
		worker_fail(parent, "remove");
	if (unlinkat(parent, name, 0))
		err = -errno;
	/* Linux says EISDIR of a directory, other file systems EPERM. */
	if (err == -EISDIR || err == -EPERM)
		err = unlinkat(parent, name, AT_REMOVEDIR) ? -errno : 0;
	if (message->recursive && (err == -ENOTEMPTY || err == -EEXIST))
		err = remove_tree(parent, name);
	if (err)
		worker_fail(err, "remove");
	worker_answer(DSEC_AETHER_DONE, &(struct dsec_msg_done){ 0 });
}
