#include "upper.h"

#include <stdio.h>
#include <sys/stat.h>

#include "kernel.h"
#include "place.h"

int upper_directory(void)
{
	struct stat status;
	int fd;

	if (mkdirat(host.state, "uppers", 0700) && errno != EEXIST)
		return -errno;
	fd = host_open("uppers", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	/* The kernel parses what lies here, so it must be what the launcher put here. */
	if (fstat(fd, &status) || status.st_uid != 0 || (status.st_mode & 022)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

int upper_furnish(const struct setup *setup, int directory)
{
	if (mkdirat(directory, "upper", 0755) || mkdirat(directory, "work", 0700))
		return -errno;
	return fchownat(directory, "upper", setup->root_uid, setup->root_gid, AT_SYMLINK_NOFOLLOW)
		       ? -errno
		       : 0;
}

/* Charged to the sandbox, limited, and gone with its last mount. */
static int make_tmpfs(struct setup *setup)
{
	const struct dsec_msg_upper *upper = &setup->spec->root.upper;
	char size[24], inodes[24];
	struct mount_option options[] = { { "mode", "700" },
					  { "size", size },
					  { "nr_inodes", inodes } };

	snprintf(size, sizeof(size), "%llu", (unsigned long long)upper->size_bytes);
	snprintf(inodes, sizeof(inodes), "%llu",
		 (unsigned long long)(upper->inodes_max + UPPER_OWN_INODES));
	return place_new("tmpfs", options, 3, KERNEL_MOUNT_NODEV | KERNEL_MOUNT_NOSUID);
}

/* All of them return a mount that is empty, or furnished already. */
static int (*const makers[])(struct setup *setup) = {
	[DSEC_UPPER_DRIVER_TMPFS] = make_tmpfs,
	[DSEC_UPPER_DRIVER_IMAGE] = upper_image_make,
	[DSEC_UPPER_DRIVER_BTRFS] = upper_btrfs_make,
};

int upper_make(struct setup *setup)
{
	int fd = makers[setup->spec->root.upper.driver](setup);
	int err = fd < 0 ? fd : upper_furnish(setup, fd);

	if (!err)
		return fd;
	close_fd(&fd);
	return err;
}

int upper_remove(const char *key)
{
	AUTO_CLOSE directory = host_open("uppers", O_RDONLY | O_DIRECTORY);
	int err;

	if (directory < 0)
		return directory == -ENOENT ? 0 : directory;
	err = upper_image_remove(directory, key);
	return err ? err : upper_btrfs_remove(directory, key);
}
