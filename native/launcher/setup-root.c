/*
 * The root of a sandbox: its layers, shifted to its ids, below an upper of its own. Layers and
 * upper are attached by short paths in the launcher's own root, of which this process has a copy:
 * every kernel takes such paths, and /proc/PID/mountinfo tells nothing of the host.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kernel.h"
#include "layers.h"
#include "place.h"
#include "setup.h"
#include "upper.h"

enum {
	CAPABILITY_VERSION_3 = 0x20080522,
};

/* Notes the sandbox as a user of the layer, and takes a copy of its mount. */
static int take_layer(const struct setup *setup, struct dsec_bytes id)
{
	char name[LAYER_NAME_BYTES_MAX + 1];
	char path[LAYER_PATH_BYTES];

	if (!layer_name(id, name))
		return -EINVAL;
	snprintf(path, sizeof(path), "/layers/%s/users/%s", name, setup->object->key);
	/* A link, as it costs less than a file. */
	if (link("/token", path) && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "/layers/%s/mount", name);
	return place_copy(AT_FDCWD, path, 0, -1);
}

static int take_root_layers(struct setup *setup)
{
	struct dsec_list layers = setup->spec->root.layers;
	struct dsec_bytes item;

	while (dsec_list_next(&layers, &item)) {
		struct dsec_msg_root_layer layer;
		int fd;

		dsec_message_decode(&dsec_msg_root_layer, item, &layer);
		setup_step(setup, "layer", layer.layer_id);
		fd = take_layer(setup, layer.layer_id);
		if (fd < 0)
			return fd;
		setup->layers[setup->layer_count++] = fd;
	}
	return 0;
}

static int take_mount_layers(struct setup *setup)
{
	struct dsec_list mounts = setup->spec->mounts;
	struct dsec_bytes item;

	while (dsec_list_next(&mounts, &item)) {
		struct dsec_msg_mount mount;
		int fd;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		if (mount.kind != DSEC_MOUNT_KIND_LAYER)
			continue;
		setup_step(setup, "layer", mount.source);
		fd = take_layer(setup, mount.source);
		if (fd < 0)
			return fd;
		setup->layer_mounts[setup->layer_mount_count++] = fd;
	}
	return 0;
}

/* Attaches the upper where it outlives the sandbox, so that what changed can be packed. */
static int pin_upper(struct setup *setup)
{
	char path[96];
	int err;

	strcpy(setup->step, "upper");
	snprintf(path, sizeof(path), "/uppers/%s", setup->object->key);
	if (mkdir(path, 0700))
		return -errno;
	err = kernel_move_mount(setup->upper, AT_FDCWD, path);
	if (err)
		return err;
	close(setup->upper);
	if (*setup->object->ready) {
		char before[READY_BYTES_MAX + 16];

		snprintf(before, sizeof(before), "/uppers/%s", setup->object->ready);
		if (rmdir(before))
			return -errno;
	}
	setup->upper = place_copy(AT_FDCWD, path, 0, -1);
	return setup->upper < 0 ? setup->upper : 0;
}

/* Never writable: what is below the state root is the node's. */
static int copy_below_state(const struct dsec_msg_mount *mount)
{
	AUTO_CLOSE source = -1;
	char path[513];

	snprintf(path, sizeof(path), "%.*s", (int)mount->source.length,
		 (const char *)mount->source.data);
	source = host_open(path, O_PATH);
	return source < 0
		       ? source
		       : place_copy(source, "",
				    KERNEL_MOUNT_RDONLY | KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NODEV |
					    (mount->flags & KERNEL_MOUNT_NOEXEC),
				    -1);
}

/* A mount is copied only by who lives where it is. */
static int take_binds(struct setup *setup)
{
	struct dsec_list mounts = setup->spec->mounts;
	struct dsec_bytes item;

	if (setns(host.start, CLONE_NEWNS))
		return -errno;
	while (dsec_list_next(&mounts, &item)) {
		struct dsec_msg_mount mount;
		int fd;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		if (mount.kind != DSEC_MOUNT_KIND_BIND)
			continue;
		setup_step(setup, "mount", mount.target);
		fd = copy_below_state(&mount);
		if (fd < 0)
			return fd;
		setup->binds[setup->bind_count++] = fd;
	}
	return 0;
}

static int visit(struct setup *setup)
{
	int err = host_visit();

	if (!err)
		err = pin_upper(setup);
	if (!err)
		err = take_root_layers(setup);
	if (!err)
		err = take_mount_layers(setup);
	if (!err)
		err = take_binds(setup);
	if (err)
		return err;
	strcpy(setup->step, "layers");
	return setns(setup->home, CLONE_NEWNS) ? -errno : 0;
}

static int attach_layers(struct setup *setup)
{
	struct kernel_mount_attr attr = {
		.set = KERNEL_MOUNT_IDMAP,
		.userns_fd = (uint64_t)setup->session_namespace,
	};
	char path[16];
	int err = 0;

	for (int i = 0; i < setup->layer_mount_count && !err; i++)
		err = kernel_mount_setattr(setup->layer_mounts[i], 0, &attr);
	for (int i = 0; i < setup->layer_count && !err; i++) {
		snprintf(path, sizeof(path), HOST_LAYERS "/%d", i);
		err = kernel_mount_setattr(setup->layers[i], 0, &attr);
		if (!err)
			err = kernel_move_mount(setup->layers[i], AT_FDCWD, path);
		close(setup->layers[i]);
	}
	return err ? err : kernel_move_mount(setup->upper, AT_FDCWD, HOST_UPPER);
}

int setup_layers(struct setup *setup)
{
	int err;

	strcpy(setup->step, "upper");
	setup->upper = upper_make(setup);
	if (setup->upper < 0)
		return setup->upper;
	err = visit(setup);
	if (err)
		return err;
	strcpy(setup->step, "layers");
	return attach_layers(setup);
}

/* Effective capabilities become those of `wanted` that are permitted. */
static int set_effective(uint64_t wanted)
{
	struct {
		uint32_t version;
		int pid;
	} header = { CAPABILITY_VERSION_3, 0 };
	struct {
		uint32_t effective, permitted, inheritable;
	} sets[2];

	if (syscall(SYS_capget, &header, sets))
		return -errno;
	for (int half = 0; half < 2; half++)
		sets[half].effective = sets[half].permitted & (uint32_t)(wanted >> (32 * half));
	return syscall(SYS_capset, &header, sets) ? -errno : 0;
}

static int configure_overlay(const struct setup *setup, int fs)
{
	/* `nofollow`, as with `off` a redirect that a layer brings would still be followed. */
	static const struct mount_option fixed[] = {
		{ "redirect_dir", "nofollow" },
		{ "metacopy", "off" },
		{ "index", "off" },
		{ "upperdir", HOST_UPPER "/upper" },
		{ "workdir", HOST_UPPER "/work" },
	};
	char path[16];
	int err = 0;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]) && !err; i++)
		err = kernel_fsconfig(fs, KERNEL_FSCONFIG_STRING, fixed[i].key, fixed[i].value);
	for (int i = 0; i < setup->layer_count && !err; i++) {
		snprintf(path, sizeof(path), HOST_LAYERS "/%d", i);
		err = kernel_fsconfig(fs, KERNEL_FSCONFIG_STRING, "lowerdir+", path);
	}
	return err;
}

/*
 * An overlay acts on its upper with the credentials of whoever mounted it: here with no more than
 * copying a file up takes (SETFCAP for one that has capabilities).
 */
int setup_overlay(struct setup *setup)
{
	const uint64_t few = UINT64_C(1) << 0 /* CHOWN */ | UINT64_C(1) << 1 /* DAC_OVERRIDE */ |
			     UINT64_C(1) << 3 /* FOWNER */ | UINT64_C(1) << 4 /* FSETID */ |
			     UINT64_C(1) << 21 /* SYS_ADMIN */ | UINT64_C(1) << 27 /* MKNOD */ |
			     UINT64_C(1) << 31 /* SETFCAP */;
	AUTO_CLOSE fs = kernel_fsopen("overlay");
	AUTO_CLOSE mount = -1;
	int err;

	if (fs < 0)
		return fs;
	err = configure_overlay(setup, fs);
	if (!err)
		err = set_effective(few);
	if (err)
		return err;
	err = kernel_fsconfig(fs, KERNEL_FSCONFIG_CREATE, NULL, NULL);
	if (set_effective(~UINT64_C(0)))
		return -errno;
	if (err)
		return err;
	mount = kernel_fsmount(fs, KERNEL_MOUNT_NODEV |
					   (setup->spec->root.nosuid ? KERNEL_MOUNT_NOSUID : 0));
	if (mount < 0)
		return mount;
	err = kernel_move_mount(mount, AT_FDCWD, HOST_ROOT);
	if (err)
		return err;
	setup->root = open(HOST_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return setup->root < 0 ? -errno : 0;
}
