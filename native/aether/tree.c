#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform.h"

enum {
	/* More are found in the next walk: those whose parents are gone move up to the top. */
	TREE_MAX = 8192,
	TEXT_BYTES = 16 * 1024,
};

static pid_t found[TREE_MAX];
static int found_count;

static void note(pid_t pid)
{
	if (pid > 0 && found_count < TREE_MAX)
		found[found_count++] = pid;
}

/* Reads a file of numbers separated by blanks, as /proc/PID/task/TID/children is. */
static void note_children(int directory, const char *path)
{
	char text[TEXT_BYTES];
	int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	pid_t pid = 0;
	ssize_t bytes;

	if (fd < 0)
		return;
	while ((bytes = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < bytes; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
			} else {
				note(pid);
				pid = 0;
			}
		}
	}
	note(pid);
	close(fd);
}

struct kernel_dirent {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

/* Each thread has its own children. */
static void note_children_of(pid_t pid)
{
	_Alignas(8) char entries[4096];
	char path[64];
	long bytes;
	int tasks;

	snprintf(path, sizeof(path), "%d/task", (int)pid);
	tasks = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tasks < 0)
		return;
	while ((bytes = syscall(SYS_getdents64, tasks, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < bytes;) {
			struct kernel_dirent *entry = (struct kernel_dirent *)(entries + at);

			at += entry->length;
			if (entry->name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%.20s/children", entry->name);
			note_children(tasks, path);
		}
	}
	close(tasks);
}

/* Whether it ended already. One that cannot be looked at counts as gone. */
static bool is_zombie(pid_t pid)
{
	char text[512];
	char path[64];
	const char *state;
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (bytes <= 0)
		return true;
	text[bytes] = 0;
	/* The name before it may hold anything, a parenthesis included, but is short. */
	state = strrchr(text, ')');
	return !state || state[1] == 0 || state[2] == 'Z' || state[2] == 'X';
}

/*
 * A number that was read may belong to a stranger by the time that the signal is sent only if its
 * process ended, was reaped, and the kernel went once around all process numbers in between: it
 * hands them out in turn.
 */
int tree_signal(pid_t top, int signal, pid_t spared)
{
	int alive = 0;

	if (proc_fd < 0)
		return -ENOSYS;
	found_count = 0;
	note_children_of(top);
	for (int i = 0; i < found_count; i++) {
		if (found[i] != spared && !kill(found[i], signal) && !is_zombie(found[i]))
			alive++;
		note_children_of(found[i]);
	}
	return alive;
}
