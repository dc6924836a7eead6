/*
 * The mounts of a sandbox, in the order of its spec. Each target is a descriptor that was reached
 * inside the root without following a symbolic link, because the image is not trusted: one in which
 * /proc is a link must not decide where procfs goes.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kernel.h"
#include "place.h"
#include "setup.h"
#include "spec.h"

enum {
	TARGET_BYTES_MAX = 4096,
	OPTIONS_MAX = 16,
	OPTION_BYTES_MAX = 80,
};

#define TARGET_RESOLVE                                                                             \
	(KERNEL_RESOLVE_IN_ROOT | KERNEL_RESOLVE_NO_SYMLINKS | KERNEL_RESOLVE_NO_MAGICLINKS)
#define HARMLESS (KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NODEV)

struct options {
	struct mount_option list[OPTIONS_MAX];
	char texts[OPTIONS_MAX][OPTION_BYTES_MAX];
	int count;
};

static int make_directory(struct setup *setup, int parent, const char *name)
{
	if (mkdirat(parent, name, 0755))
		return errno == EEXIST ? 0 : -errno;
	return fchownat(parent, name, setup->root_uid, setup->root_gid, AT_SYMLINK_NOFOLLOW)
		       ? -errno
		       : 0;
}

/* Makes each missing directory on the way. `path` is absolute, and changed. */
static int make_target(struct setup *setup, char *path)
{
	int at = fcntl(setup->root, F_DUPFD_CLOEXEC, 0);
	char *rest = NULL;

	if (at < 0)
		return -errno;
	for (char *name = strtok_r(path, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
		int err = make_directory(setup, at, name);
		int next = err ? err : kernel_openat2(at, name, O_PATH, 0, HOST_RESOLVE);

		close(at);
		if (next < 0)
			return next;
		at = next;
	}
	return at;
}

/* A descriptor of the target, made as a directory where missing, or a negative errno. */
int setup_target(struct setup *setup, struct dsec_bytes target)
{
	char path[TARGET_BYTES_MAX + 1];
	int fd;

	memcpy(path, target.data, target.length);
	path[target.length] = '\0';
	fd = kernel_openat2(setup->root, path, O_PATH, 0, TARGET_RESOLVE);
	return fd == -ENOENT ? make_target(setup, path) : fd;
}

static unsigned int attributes_of(const struct dsec_msg_mount *mount)
{
	/* The wire's bits and the kernel's are the same for these four. */
	return mount->flags & (KERNEL_MOUNT_RDONLY | KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NODEV |
			       KERNEL_MOUNT_NOEXEC);
}

static void add(struct options *options, const char *key, unsigned long long number,
		const char *format)
{
	char *text = options->texts[options->count];

	snprintf(text, OPTION_BYTES_MAX, format, number);
	options->list[options->count++] = (struct mount_option){ key, text };
}

/* Options that an edge may choose are `first` and `second`; the rest follows from the kind. */
static int add_given(struct options *options, const struct dsec_msg_mount *mount, const char *first,
		     const char *second)
{
	struct dsec_list given = mount->options;
	struct dsec_bytes item;

	while (mount->present & DSEC_MOUNT_HAS_OPTIONS && dsec_list_next(&given, &item)) {
		char *text = options->texts[options->count];
		char *value;

		if (options->count == OPTIONS_MAX || item.length >= OPTION_BYTES_MAX)
			return -EINVAL;
		memcpy(text, item.data, item.length);
		text[item.length] = '\0';
		value = strchr(text, '=');
		if (!value)
			return -EINVAL;
		*value++ = '\0';
		if (strcmp(text, first) && strcmp(text, second))
			return -EPERM;
		options->list[options->count++] = (struct mount_option){ text, value };
	}
	return 0;
}

int setup_proc(struct setup *setup)
{
	struct dsec_list mounts = setup->spec->mounts;
	struct options options = { .count = 0 };
	struct dsec_bytes item;
	int err = 0;

	while (dsec_list_next(&mounts, &item) && !err) {
		struct dsec_msg_mount mount;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		if (mount.kind == DSEC_MOUNT_KIND_PROC)
			err = add_given(&options, &mount, "subset", "hidepid");
	}
	if (err)
		return err;
	setup->proc =
		place_new("proc", options.list, options.count, HARMLESS | KERNEL_MOUNT_NOEXEC);
	return setup->proc < 0 ? setup->proc : 0;
}

static int new_tmpfs(struct setup *setup, const struct dsec_msg_mount *mount)
{
	struct options options = { .count = 0 };

	add(&options, "size", mount->size_bytes, "%llu");
	add(&options, "nr_inodes", mount->inodes_max, "%llu");
	add(&options, "mode", mount->present & DSEC_MOUNT_HAS_MODE ? mount->mode : 0755, "%llo");
	add(&options, "uid", setup->root_uid, "%llu");
	add(&options, "gid", setup->root_gid, "%llu");
	/* One that is to be read-only is sealed when the mounts below it are in place. */
	return place_new("tmpfs", options.list, options.count,
			 HARMLESS | (attributes_of(mount) & ~(unsigned int)KERNEL_MOUNT_RDONLY));
}

/* Limited, as the host has one number of terminals for all. */
static int new_devpts(struct setup *setup, const struct dsec_msg_mount *mount)
{
	struct options options = { .count = 0 };
	int err;

	(void)setup;
	add(&options, "max", SPEC_PTYS_MAX, "%llu");
	add(&options, "ptmxmode", 0666, "%llo");
	err = add_given(&options, mount, "mode", "gid");
	/* Terminals are devices. */
	return err ? err
		   : place_new("devpts", options.list, options.count,
			       KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NOEXEC |
				       (attributes_of(mount) & ~(unsigned int)KERNEL_MOUNT_NODEV));
}

static int new_mqueue(struct setup *setup, const struct dsec_msg_mount *mount)
{
	(void)setup;
	return place_new("mqueue", NULL, 0, HARMLESS | KERNEL_MOUNT_NOEXEC | attributes_of(mount));
}

/* The one through which the id maps were written. */
static int take_proc(struct setup *setup, const struct dsec_msg_mount *mount)
{
	int fd = fcntl(setup->proc, F_DUPFD_CLOEXEC, 0);

	(void)mount;
	return fd < 0 ? -errno : fd;
}

static int copy_sysfs(struct setup *setup, const struct dsec_msg_mount *mount)
{
	(void)setup;
	return place_copy(
		AT_FDCWD, HOST_SYS,
		KERNEL_MOUNT_RDONLY | HARMLESS | KERNEL_MOUNT_NOEXEC | attributes_of(mount), -1);
}

static int copy_dev(struct setup *setup, const struct dsec_msg_mount *mount)
{
	return place_copy(AT_FDCWD, HOST_DEV,
			  KERNEL_MOUNT_RDONLY | KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NOEXEC |
				  (attributes_of(mount) & ~(unsigned int)KERNEL_MOUNT_NODEV),
			  setup->session_namespace);
}

/* Both were taken in the order of the spec. */
static int take_bind(struct setup *setup, const struct dsec_msg_mount *mount)
{
	(void)mount;
	return setup->binds[setup->binds_placed++];
}

static int take_layer_mount(struct setup *setup, const struct dsec_msg_mount *mount)
{
	struct kernel_mount_attr attr = { .set = HARMLESS | KERNEL_MOUNT_RDONLY |
						 attributes_of(mount) };
	int fd = setup->layer_mounts[setup->layer_mounts_placed++];
	int err = kernel_mount_setattr(fd, 0, &attr);

	return err ? err : fd;
}

static int (*const makers[])(struct setup *setup, const struct dsec_msg_mount *mount) = {
	[DSEC_MOUNT_KIND_PROC] = take_proc,    [DSEC_MOUNT_KIND_TMPFS] = new_tmpfs,
	[DSEC_MOUNT_KIND_DEVPTS] = new_devpts, [DSEC_MOUNT_KIND_MQUEUE] = new_mqueue,
	[DSEC_MOUNT_KIND_SYSFS] = copy_sysfs,  [DSEC_MOUNT_KIND_DEV] = copy_dev,
	[DSEC_MOUNT_KIND_BIND] = take_bind,    [DSEC_MOUNT_KIND_LAYER] = take_layer_mount,
};

/* What covers a masked target: an empty directory, or an empty file that nobody can write. Both are
 * mounts that have all the flags already. */
int setup_mask(int target, const struct dsec_msg_mount *mount)
{
	bool is_policy = mount->flags & DSEC_MOUNT_POLICY;
	struct stat status;

	if (fstat(target, &status))
		return -errno;
	if (S_ISDIR(status.st_mode))
		return place_copy(AT_FDCWD, is_policy ? HOST_COVER : HOST_EMPTY, 0, -1);
	return place_copy(AT_FDCWD, is_policy ? HOST_COVER_NULL : HOST_NULL, 0, -1);
}

int setup_readonly(int target, const struct dsec_msg_mount *mount)
{
	return place_copy(target, "", KERNEL_MOUNT_RDONLY | attributes_of(mount), -1);
}

static int run_mount(struct setup *setup, const struct dsec_msg_mount *mount)
{
	bool covers =
		mount->kind == DSEC_MOUNT_KIND_MASK || mount->kind == DSEC_MOUNT_KIND_READONLY;
	AUTO_CLOSE target = -1;
	AUTO_CLOSE made = -1;

	if (!covers) {
		made = makers[mount->kind](setup, mount);
		if (made < 0)
			return made;
	}
	target = setup_target(setup, mount->target);
	if (target < 0)
		return target;
	if (mount->kind == DSEC_MOUNT_KIND_MASK)
		made = setup_mask(target, mount);
	else if (mount->kind == DSEC_MOUNT_KIND_READONLY)
		made = setup_readonly(target, mount);
	return made < 0 ? made : kernel_move_mount(made, target, "");
}

static int seal_tmpfs(struct setup *setup, const struct dsec_msg_mount *mount)
{
	struct kernel_mount_attr attr = { .set = KERNEL_MOUNT_RDONLY };
	AUTO_CLOSE target = setup_target(setup, mount->target);

	return target < 0 ? target : kernel_mount_setattr(target, 0, &attr);
}

static int seal_mounts(struct setup *setup)
{
	struct dsec_list mounts = setup->spec->mounts;
	struct dsec_bytes item;
	int err = 0;

	while (dsec_list_next(&mounts, &item) && !err) {
		struct dsec_msg_mount mount;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		if (mount.kind != DSEC_MOUNT_KIND_TMPFS || !(mount.flags & KERNEL_MOUNT_RDONLY))
			continue;
		setup_step(setup, "mount", mount.target);
		err = seal_tmpfs(setup, &mount);
	}
	return err;
}

int setup_mounts(struct setup *setup)
{
	struct dsec_list mounts = setup->spec->mounts;
	struct dsec_bytes item;

	while (dsec_list_next(&mounts, &item)) {
		struct dsec_msg_mount mount;
		int err;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		setup_step(setup, "mount", mount.target);
		err = run_mount(setup, &mount);
		if (err)
			return err;
	}
	return seal_mounts(setup);
}
