#include "layer-mount.h"

#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "crash.h"
#include "host.h"
#include "kernel.h"
#include "layers.h"
#include "place.h"
#include "sha256.h"

enum {
	COPY_BYTES = 128 * 1024,
	/* More metadata than any image has; the copy must not fill a disk. */
	META_GIB_MAX = 4,
};

static void layer_path(char path[LAYER_PATH_BYTES], const char *digest, const char *below)
{
	snprintf(path, LAYER_PATH_BYTES, "/layers/%s%s", digest, below);
}

bool layer_is_mounted(const char *digest)
{
	char path[LAYER_PATH_BYTES];
	struct stat above, mount;

	layer_path(path, digest, "");
	if (stat(path, &above))
		return false;
	layer_path(path, digest, "/mount");
	return !stat(path, &mount) && mount.st_dev != above.st_dev;
}

/*
 * Keeps two workers off one layer. The directory may have been removed by the one before, so the
 * lock counts only if it is still the one at the path.
 */
static int lock_layer(const char *digest, bool make)
{
	char path[LAYER_PATH_BYTES];

	layer_path(path, digest, "");
	for (;;) {
		struct stat held, there;
		int fd;

		if (make && mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX) || fstat(fd, &held)) {
			close(fd);
			return -errno;
		}
		if (!stat(path, &there) && there.st_ino == held.st_ino)
			return fd;
		close(fd);
	}
}

static int copy_and_hash(int from, int to, char digest[SHA256_HEX_BYTES + 1])
{
	static uint8_t buffer[COPY_BYTES];
	uint64_t total = 0;
	struct sha256 hash;
	ssize_t length;

	sha256_init(&hash);
	while ((length = read(from, buffer, sizeof(buffer))) > 0) {
		total += (uint64_t)length;
		if (total > (uint64_t)META_GIB_MAX << 30)
			return -EFBIG;
		if (write(to, buffer, (size_t)length) != length)
			return errno ? -errno : -ENOSPC;
		sha256_update(&hash, buffer, (size_t)length);
	}
	if (length < 0)
		return -errno;
	sha256_hex(&hash, digest);
	return 0;
}

/*
 * A copy of the metadata that has no name and that nobody else can write: what was checked is what
 * the kernel reads, whoever owns the original. Returns a descriptor to read it, or a negative
 * errno.
 */
static int checked_copy(struct dsec_bytes meta, const char *digest)
{
	char path[513], found[SHA256_HEX_BYTES + 1], own[32];
	AUTO_CLOSE source = -1;
	AUTO_CLOSE copy = -1;
	int fd;
	int err;

	snprintf(path, sizeof(path), "%.*s", (int)meta.length, (const char *)meta.data);
	source = host_open(path, O_RDONLY | O_NONBLOCK);
	if (source < 0)
		return source;
	copy = kernel_openat2(host.state, ".", O_TMPFILE | O_RDWR, 0400, HOST_RESOLVE);
	if (copy < 0)
		return copy;
	err = copy_and_hash(source, copy, found);
	if (err)
		return err;
	if (memcmp(found, digest, SHA256_HEX_BYTES))
		return -EBADMSG;
	snprintf(own, sizeof(own), "/proc/self/fd/%d", copy);
	fd = open(own, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int add_devices(int fs, struct dsec_list devices)
{
	struct dsec_bytes item;

	while (dsec_list_next(&devices, &item)) {
		struct dsec_msg_layer_device device;
		char path[513];
		AUTO_CLOSE fd = -1;
		int err;

		dsec_message_decode(&dsec_msg_layer_device, item, &device);
		snprintf(path, sizeof(path), "%.*s", (int)device.file.length,
			 (const char *)device.file.data);
		fd = host_open(path, O_RDONLY | O_NONBLOCK);
		if (fd < 0)
			return fd;
		/* Kept open until the mount is made: the kernel opens it once more by this name. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		err = kernel_fsconfig(fs, KERNEL_FSCONFIG_STRING, "device", path);
		if (err)
			return err;
		fd = -1;
	}
	return 0;
}

/* Detached, read-only. */
static int make_mount(const struct dsec_msg_layer_mount *message, int meta, const char **step)
{
	AUTO_CLOSE fs = kernel_fsopen("erofs");
	char source[32];
	int err;

	*step = "erofs";
	if (fs < 0)
		return fs;
	snprintf(source, sizeof(source), "/proc/self/fd/%d", meta);
	err = kernel_fsconfig(fs, KERNEL_FSCONFIG_STRING, "source", source);
	if (!err && message->direct_io)
		err = kernel_fsconfig(fs, KERNEL_FSCONFIG_FLAG, "directio", NULL);
	if (err)
		return err;
	*step = "device";
	err = add_devices(fs, message->devices);
	if (err)
		return err;
	*step = "erofs";
	err = kernel_fsconfig(fs, KERNEL_FSCONFIG_CREATE, NULL, NULL);
	return err ? err : kernel_fsmount(fs, KERNEL_MOUNT_RDONLY | KERNEL_MOUNT_NODEV);
}

static int place_layer(int mount, const char *digest)
{
	char path[LAYER_PATH_BYTES];

	layer_path(path, digest, "/users");
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (mount < 0)
		return 0;
	layer_path(path, digest, "/mount");
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	crash_point(CRASH_LAYER_PLACED);
	return kernel_move_mount(mount, AT_FDCWD, path);
}

int layer_mount(const struct dsec_msg_layer_mount *message, const char *digest, const char **step)
{
	AUTO_CLOSE lock = -1;
	AUTO_CLOSE meta = -1;
	AUTO_CLOSE mount = -1;
	bool mounted;
	int err;

	*step = "layer";
	err = host_visit();
	if (err)
		return err;
	lock = lock_layer(digest, true);
	if (lock < 0)
		return lock;
	mounted = layer_is_mounted(digest);
	if (mounted)
		return place_layer(-1, digest);
	err = host_return();
	if (err)
		return err;
	*step = "meta";
	meta = checked_copy(message->meta, digest);
	if (meta < 0)
		return meta;
	crash_point(CRASH_LAYER_COPIED);
	mount = make_mount(message, meta, step);
	if (mount < 0)
		return mount;
	*step = "layer";
	err = host_visit();
	if (!err)
		err = place_layer(mount, digest);
	crash_point(CRASH_LAYER_MOUNTED);
	return err;
}

int layer_unmount(const char *digest, const char **step)
{
	char path[LAYER_PATH_BYTES];
	AUTO_CLOSE lock = -1;
	int err;

	*step = "layer";
	err = host_visit();
	if (err)
		return err;
	lock = lock_layer(digest, false);
	if (lock < 0)
		return lock == -ENOENT ? 0 : lock;
	/* Only an empty directory goes; without it no sandbox can become a user. */
	layer_path(path, digest, "/users");
	if (rmdir(path) && errno != ENOENT)
		return -errno;
	crash_point(CRASH_LAYER_UNUSED);
	layer_path(path, digest, "/mount");
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) && errno != EINVAL && errno != ENOENT)
		return -errno;
	if (rmdir(path) && errno != ENOENT)
		return -errno;
	layer_path(path, digest, "");
	return rmdir(path) && errno != ENOENT ? -errno : 0;
}
