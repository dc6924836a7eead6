/*
 * A solution as records: a kind, a path with its length before it, and what the kind has. Numbers
 * are little endian. The host has checked every record; here no path is followed through a link, so
 * that nothing lands elsewhere than it says.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "runner.h"

enum {
	PATH_BYTES_MAX = 4095,
	MODE_BITS = 0777, /* no set-user-id, no sticky bit */
	CHUNK_BYTES = 64 * 1024,
};

struct place {
	int parent;
	const char *name;
};

static bool read_exactly(void *to, size_t length)
{
	return fread_unlocked(to, 1, length, stdin) == length;
}

static bool read_u32(uint32_t *value)
{
	uint8_t bytes[4];

	if (!read_exactly(bytes, sizeof(bytes)))
		return false;
	*value = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
		 (uint32_t)bytes[3] << 24;
	return true;
}

static bool read_text(char text[PATH_BYTES_MAX + 1])
{
	uint32_t length;

	if (!read_u32(&length) || length == 0 || length > PATH_BYTES_MAX ||
	    !read_exactly(text, length))
		return false;
	text[length] = '\0';
	return strlen(text) == length;
}

/* The directory that holds `path`, which is cut; the caller closes it. */
static int open_place(char *path, struct place *place)
{
	struct kernel_open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = KERNEL_RESOLVE_NO_SYMLINKS | KERNEL_RESOLVE_NO_MAGICLINKS,
	};
	char *slash = strrchr(path, '/');

	if (path[0] != '/' || !slash || !slash[1])
		return -1;
	*slash = '\0';
	place->name = slash + 1;
	place->parent = (int)syscall(SYS_openat2, -1, *path ? path : "/", &how, sizeof(how));
	return place->parent < 0 ? -1 : 0;
}

static int own_as_parent(const struct place *place)
{
	struct stat parent;

	return fstat(place->parent, &parent) || fchownat(place->parent, place->name, parent.st_uid,
							 parent.st_gid, AT_SYMLINK_NOFOLLOW)
		       ? -1
		       : 0;
}

static int make_directory(const struct place *place, uint32_t mode)
{
	struct stat there;

	if (!fstatat(place->parent, place->name, &there, AT_SYMLINK_NOFOLLOW)) {
		if (S_ISDIR(there.st_mode))
			return 0;
		if (unlinkat(place->parent, place->name, 0))
			return -1;
	}
	if (mkdirat(place->parent, place->name, 0700) || own_as_parent(place))
		return -1;
	return fchmodat(place->parent, place->name, mode & MODE_BITS, 0);
}

static int copy_bytes(int file, uint64_t size)
{
	static uint8_t chunk[CHUNK_BYTES];

	while (size > 0) {
		size_t wanted = size < sizeof(chunk) ? (size_t)size : sizeof(chunk);

		if (!read_exactly(chunk, wanted)) {
			errno = EPIPE;
			return -1;
		}
		for (size_t done = 0; done < wanted;) {
			ssize_t written = write(file, chunk + done, wanted - done);

			if (written <= 0)
				return -1;
			done += (size_t)written;
		}
		size -= wanted;
	}
	return 0;
}

static int make_file(const struct place *place, uint32_t mode, uint64_t size)
{
	int file, err;

	if (unlinkat(place->parent, place->name, 0) && errno != ENOENT)
		return -1;
	file = openat(place->parent, place->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return -1;
	err = copy_bytes(file, size);
	if (!err)
		err = own_as_parent(place);
	if (!err)
		err = fchmod(file, mode & MODE_BITS);
	close(file);
	return err;
}

static int make_link(const struct place *place, const char *target)
{
	if (unlinkat(place->parent, place->name, 0) && errno != ENOENT)
		return -1;
	return symlinkat(target, place->parent, place->name) || own_as_parent(place) ? -1 : 0;
}

static int make_entry(int kind, const struct place *place, const char *path)
{
	char target[PATH_BYTES_MAX + 1];
	uint32_t mode, low, high;

	errno = EPROTO;
	switch (kind) {
	case 'C':
		return clear_tree(place->parent, place->name, path);
	case 'D':
		return read_u32(&mode) ? make_directory(place, mode) : -1;
	case 'F':
		return read_u32(&mode) && read_u32(&low) && read_u32(&high)
			       ? make_file(place, mode, (uint64_t)high << 32 | low)
			       : -1;
	case 'L':
		return read_text(target) ? make_link(place, target) : -1;
	default:
		return -1;
	}
}

static int apply_record(int kind, const char *path)
{
	char cut[PATH_BYTES_MAX + 1];
	struct place place;
	int err;

	if (kind == 'K')
		return keep_path(path);
	if (kind == 'N')
		return keep_name(path);
	strcpy(cut, path);
	errno = EINVAL;
	if (open_place(cut, &place))
		return -1;
	err = make_entry(kind, &place, path);
	close(place.parent);
	return err;
}

int apply_solution(void)
{
	char path[PATH_BYTES_MAX + 1];
	int kind;

	umask(0);
	while ((kind = getc_unlocked(stdin)) != 'E') {
		errno = EPROTO;
		if (kind == EOF || !read_text(path))
			return complain("record", "");
		if (apply_record(kind, path))
			return complain("solution", path);
	}
	/* Said last: without it the host believes nothing. */
	puts("applied");
	return fflush(stdout) ? 1 : 0;
}
