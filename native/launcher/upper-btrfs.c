/*
 * Uppers in subvolumes, where uppers/ lies on btrfs: each has a quota group of its own, which
 * limits bytes. There is no limit on inodes but that on the metadata that they take, which counts
 * too.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "kernel.h"
#include "place.h"
#include "upper.h"

static int is_btrfs(int directory)
{
	struct statfs fs;

	if (fstatfs(directory, &fs))
		return -errno;
	return (uint32_t)fs.f_type == KERNEL_BTRFS_MAGIC ? 1 : 0;
}

static void name_subvolume(struct kernel_btrfs_vol_args *arguments, const char *key)
{
	memset(arguments, 0, sizeof(*arguments));
	snprintf(arguments->name, sizeof(arguments->name), "%s", key);
}

static int limit(int directory, int subvolume, uint64_t bytes)
{
	struct kernel_btrfs_quota_ctl on = { .command = KERNEL_BTRFS_QUOTA_ENABLE };
	/* Of the subvolume's own group. */
	struct kernel_btrfs_qgroup_limit most = { .flags = KERNEL_BTRFS_LIMIT_REFERENCED,
						  .referenced_max = bytes };

	if (ioctl(directory, KERNEL_BTRFS_QUOTA_CTL, &on) && errno != EEXIST)
		return -errno;
	return ioctl(subvolume, KERNEL_BTRFS_QGROUP_LIMIT, &most) ? -errno : 0;
}

static int make_subvolume(const struct setup *setup, int directory)
{
	struct kernel_btrfs_vol_args arguments;
	int subvolume, err;

	name_subvolume(&arguments, setup->object->key);
	if (ioctl(directory, KERNEL_BTRFS_SUBVOL_CREATE, &arguments))
		return -errno;
	subvolume = openat(directory, setup->object->key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (subvolume < 0)
		return -errno;
	err = limit(directory, subvolume, setup->spec->root.upper.size_bytes);
	if (!err)
		return subvolume;
	close(subvolume);
	return err;
}

int upper_btrfs_make(struct setup *setup)
{
	const struct dsec_msg_upper *upper = &setup->spec->root.upper;
	AUTO_CLOSE directory = upper_directory();
	AUTO_CLOSE subvolume = -1;
	int here = directory < 0 ? directory : is_btrfs(directory);
	int mount;

	if (here < 0)
		return here;
	if (!here || !(upper->present & DSEC_UPPER_HAS_INODES_UNLIMITED) ||
	    !upper->inodes_unlimited)
		return -EOPNOTSUPP;
	subvolume = make_subvolume(setup, directory);
	if (subvolume < 0)
		return subvolume;
	/* A mount is copied only by who lives where it is. */
	if (setns(host.start, CLONE_NEWNS))
		return -errno;
	mount = place_copy(subvolume, "", KERNEL_MOUNT_NODEV | KERNEL_MOUNT_NOSUID, -1);
	return setns(setup->home, CLONE_NEWNS) ? -errno : mount;
}

/* The kernel gives the space back by and by. */
int upper_btrfs_remove(int directory, const char *key)
{
	struct kernel_btrfs_vol_args arguments;
	struct kernel_btrfs_ino_lookup tree = { .objectid = KERNEL_BTRFS_FIRST_FREE_OBJECTID };
	struct kernel_btrfs_qgroup_create group = { .create = 0 };
	int here = is_btrfs(directory);
	int subvolume;

	if (here <= 0)
		return here;
	subvolume = openat(directory, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (subvolume < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!ioctl(subvolume, KERNEL_BTRFS_INO_LOOKUP, &tree))
		group.id = tree.tree;
	close(subvolume);
	name_subvolume(&arguments, key);
	if (ioctl(directory, KERNEL_BTRFS_SNAP_DESTROY, &arguments))
		return -errno;
	/* A kernel that still counts in the group removes it itself when it is done. */
	(void)ioctl(directory, KERNEL_BTRFS_QGROUP_CREATE, &group);
	return 0;
}
