#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner.h"

enum {
	KEPT_MAX = 512,
	KEPT_BYTES_MAX = 4096,
	DEPTH_MAX = 128,
};

static char names[KEPT_MAX][256];
static int name_count;
static char paths[KEPT_MAX][KEPT_BYTES_MAX];
static int path_count;

int keep_name(const char *pattern)
{
	if (name_count == KEPT_MAX || strlen(pattern) >= sizeof(names[0])) {
		errno = E2BIG;
		return -1;
	}
	strcpy(names[name_count++], pattern);
	return 0;
}

int keep_path(const char *path)
{
	if (path_count == KEPT_MAX || strlen(path) >= sizeof(paths[0])) {
		errno = E2BIG;
		return -1;
	}
	strcpy(paths[path_count++], path);
	return 0;
}

static bool fits(const char *pattern, const char *name)
{
	size_t rest = strlen(pattern) - 1, length = strlen(name);

	if (*pattern != '*')
		return !strcmp(pattern, name);
	return length >= rest && !strcmp(name + length - rest, pattern + 1);
}

bool is_kept(const char *path, const char *name)
{
	for (int i = 0; i < name_count; i++) {
		if (fits(names[i], name))
			return true;
	}
	for (int i = 0; i < path_count; i++) {
		if (!strcmp(paths[i], path))
			return true;
	}
	return false;
}

static int clear_below(int directory, const char *path, int depth);

static int clear_entry(int parent, const char *name, const char *path, int depth)
{
	char below[KEPT_BYTES_MAX];
	struct stat status;
	int fd, err;

	if (snprintf(below, sizeof(below), "%s/%s", path, name) >= (int)sizeof(below)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (is_kept(below, name))
		return 0;
	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (!S_ISDIR(status.st_mode))
		return unlinkat(parent, name, 0);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	err = clear_below(fd, below, depth + 1);
	/* One that holds what is kept stays. */
	if (!err && unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOTEMPTY)
		err = -1;
	return err;
}

/* Takes the descriptor. */
static int clear_below(int directory, const char *path, int depth)
{
	DIR *entries = fdopendir(directory);
	struct dirent *entry;
	int err = 0;

	if (!entries) {
		close(directory);
		return -1;
	}
	if (depth > DEPTH_MAX) {
		errno = ELOOP;
		err = -1;
	}
	while (!err && (entry = readdir(entries))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			err = clear_entry(dirfd(entries), entry->d_name, path, depth);
	}
	closedir(entries);
	return err;
}

int clear_tree(int parent, const char *name, const char *path)
{
	struct stat status;
	int fd;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -1;
	if (!S_ISDIR(status.st_mode))
		return is_kept(path, name) ? 0 : unlinkat(parent, name, 0);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -1 : clear_below(fd, path, 0);
}
