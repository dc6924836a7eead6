/*
 * Uppers in images: an ext4 file system in a sparse file, through a loop device. It is a copy of an
 * empty one that is made once for each size, which costs a tenth of a millisecond where making one
 * anew costs twenty. Attaching and mounting it takes some more, which is done ahead (upper-pool.c).
 * Without a journal and without barriers: what is in it need not outlive the host. What is written
 * is page cache of the sandbox until the kernel writes it back, so disk limits may be larger than
 * memory. The file is deleted, never used again.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "kernel.h"
#include "place.h"
#include "upper.h"

enum {
	BLOCK_BYTES = 4096,
	INODE_BYTES = 256,
	MIB = 1 << 20,
	IMAGE_BYTES_MIN = 4 * MIB,
	/* Those that ext4 keeps for itself. */
	RESERVED_INODES = 16,
	LOOP_MAJOR = 7,
	LOOP_DEVICES_MAX = 4096,
	/* Others take the same device between the question for a free one and its use. */
	LOOP_TRIES = 256,
};

/* The tables of ext4 come on top of what a sandbox may use; each file takes a block at least. */
struct image_size upper_image_size(const struct dsec_msg_upper *upper)
{
	struct image_size size = { .inodes =
					   upper->inodes_max + UPPER_OWN_INODES + RESERVED_INODES };
	uint64_t most = upper->size_bytes / BLOCK_BYTES + RESERVED_INODES;

	if (size.inodes > most)
		size.inodes = most;
	size.bytes = upper->size_bytes + size.inodes * INODE_BYTES + upper->size_bytes / 256 + MIB;
	size.bytes = (size.bytes + MIB - 1) / MIB * MIB;
	if (size.bytes < IMAGE_BYTES_MIN)
		size.bytes = IMAGE_BYTES_MIN;
	return size;
}

static _Noreturn void run_mke2fs(int image, uint64_t inodes)
{
	char path[32], count[24];
	char *const arguments[] = {
		"mke2fs", "-q", "-F", "-b", "4096", "-I", "256", "-m", "0", "-N", count, "-O",
		"none,extent,flex_bg,uninit_bg,dir_nlink,extra_isize,filetype,sparse_super,"
		"large_file,huge_file,dir_index,64bit",
		/* A new sparse file is all zeros. */
		"-E", "nodiscard,lazy_itable_init=1", path, NULL
	};
	char *const environment[] = { "MKE2FS_CONFIG=/dev/null", NULL };
	int quiet = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(count, sizeof(count), "%llu", (unsigned long long)inodes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", image);
	if (quiet < 0 || dup2(quiet, 1) < 0 || dup2(quiet, 2) < 0 || fcntl(image, F_SETFD, 0))
		_exit(1);
	execve("/usr/sbin/mke2fs", arguments, environment);
	execve("/sbin/mke2fs", arguments, environment);
	_exit(1);
}

static int format(int image, uint64_t inodes)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		run_mke2fs(image, inodes);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	/* It runs within the sandbox's limits. */
	if (WIFSIGNALED(status))
		return -ENOMEM;
	return WEXITSTATUS(status) == 0 ? 0 : -EOPNOTSUPP;
}

/* Makes the empty image of a size under `name`. Whoever makes the same meanwhile makes the same. */
static int make_empty(int directory, const char *name, const struct image_size *size,
		      const char *owner)
{
	char own[KEY_BYTES_MAX + 16];
	AUTO_CLOSE image = -1;
	int err;

	snprintf(own, sizeof(own), ".new-%s", owner);
	image = openat(directory, own, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	if (image < 0 || ftruncate(image, (off_t)size->bytes))
		return -errno;
	err = format(image, size->inodes);
	if (!err && renameat(directory, own, directory, name))
		err = -errno;
	if (err)
		unlinkat(directory, own, 0);
	return err;
}

static int open_empty(int directory, const struct image_size *size, const char *owner)
{
	char name[64];
	int fd, err;

	snprintf(name, sizeof(name), ".empty-%llu-%llu", (unsigned long long)size->bytes,
		 (unsigned long long)size->inodes);
	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	err = make_empty(directory, name, size, owner);
	if (err)
		return err;
	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Copies what is not a hole. */
static int copy_sparse(int from, int to)
{
	off_t at = 0;

	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(from, at, SEEK_HOLE);
		off_t there = at;

		while (at < end) {
			ssize_t copied =
				copy_file_range(from, &at, to, &there, (size_t)(end - at), 0);

			if (copied <= 0)
				return copied < 0 ? -errno : -EIO;
		}
	}
	return errno == ENXIO ? 0 : -errno;
}

static void image_name(char name[KEY_BYTES_MAX + 8], const char *owner)
{
	snprintf(name, KEY_BYTES_MAX + 8, "%s.img", owner);
}

static int make_image(int directory, const struct image_size *size, const char *owner)
{
	AUTO_CLOSE empty = open_empty(directory, size, owner);
	char name[KEY_BYTES_MAX + 8];
	int image, err;

	if (empty < 0)
		return empty;
	image_name(name, owner);
	image = openat(directory, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (image < 0)
		return -errno;
	err = ftruncate(image, (off_t)size->bytes) ? -errno : copy_sparse(empty, image);
	if (!err)
		return image;
	close(image);
	return err;
}

static int open_loop(int number, char path[HOST_LOOP_BYTES_MAX])
{
	int fd;

	snprintf(path, HOST_LOOP_BYTES_MAX, HOST_LOOPS "/%d", number);
	if (mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned int)number)) &&
	    errno != EEXIST)
		return -errno;
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A device that lets go of the image with its last user, which will be the mount. */
static int attach(int control, int image, char path[HOST_LOOP_BYTES_MAX])
{
	struct kernel_loop_config config = {
		.fd = (uint32_t)image,
		.block_size = BLOCK_BYTES,
		.info.flags = KERNEL_LOOP_AUTOCLEAR,
	};

	for (int tries = 0; tries < LOOP_TRIES; tries++) {
		int number = ioctl(control, KERNEL_LOOP_CTL_GET_FREE);
		int fd;

		if (number < 0 || number >= LOOP_DEVICES_MAX)
			return number < 0 ? -errno : -EUSERS;
		fd = open_loop(number, path);
		if (fd < 0 || !ioctl(fd, KERNEL_LOOP_CONFIGURE, &config))
			return fd;
		close(fd);
		if (errno != EBUSY)
			return -errno;
	}
	return -EAGAIN;
}

int upper_image_mount(int directory, const struct image_size *size, const char *owner, int home)
{
	struct mount_option options[] = {
		{ "source", NULL },	   { "errors", "remount-ro" },	{ "nobarrier", NULL },
		{ "noinit_itable", NULL }, { "noauto_da_alloc", NULL },
	};
	AUTO_CLOSE control = -1;
	AUTO_CLOSE image = -1;
	AUTO_CLOSE loop = -1;
	char path[HOST_LOOP_BYTES_MAX];

	/* Programs and devices of the host are in sight only where the launcher was started. */
	if (setns(host.start, CLONE_NEWNS))
		return -errno;
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	image = make_image(directory, size, owner);
	if (setns(home, CLONE_NEWNS))
		return -errno;
	if (image < 0)
		return image;
	loop = attach(control, image, path);
	if (loop < 0)
		return loop;
	options[0].value = path;
	return place_new("ext4", options, sizeof(options) / sizeof(options[0]),
			 KERNEL_MOUNT_NODEV | KERNEL_MOUNT_NOSUID);
}

/* The mount that was made ahead, where it still lies; pin_upper() moves it. */
static int take_ready(const struct setup *setup, int directory)
{
	char own[KEY_BYTES_MAX + 8], image[KEY_BYTES_MAX + 8], path[READY_BYTES_MAX + 16];
	int mount;

	snprintf(path, sizeof(path), "/uppers/%s", setup->object->ready);
	image_name(image, setup->object->ready);
	image_name(own, setup->object->key);
	if (renameat(directory, image, directory, own) || host_visit())
		return -errno;
	mount = kernel_open_tree(AT_FDCWD, path, 0);
	return setns(setup->home, CLONE_NEWNS) ? -errno : mount;
}

int upper_image_make(struct setup *setup)
{
	struct image_size size = upper_image_size(&setup->spec->root.upper);
	AUTO_CLOSE directory = upper_directory();

	if (directory < 0)
		return directory;
	if (*setup->object->ready)
		return take_ready(setup, directory);
	return upper_image_mount(directory, &size, setup->object->key, setup->home);
}

int upper_image_remove(int directory, const char *key)
{
	char name[KEY_BYTES_MAX + 8];

	image_name(name, key);
	if (unlinkat(directory, name, 0) && errno != ENOENT)
		return -errno;
	snprintf(name, sizeof(name), ".new-%s", key);
	return unlinkat(directory, name, 0) && errno != ENOENT ? -errno : 0;
}
