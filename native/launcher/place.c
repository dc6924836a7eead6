#include "place.h"

#include "kernel.h"

int place_new(const char *type, const struct mount_option *options, int count,
	      unsigned int attributes)
{
	AUTO_CLOSE fs = kernel_fsopen(type);
	int err;

	if (fs < 0)
		return fs;
	for (int i = 0; i < count; i++) {
		enum kernel_fsconfig command =
			options[i].value ? KERNEL_FSCONFIG_STRING : KERNEL_FSCONFIG_FLAG;

		err = kernel_fsconfig(fs, command, options[i].key, options[i].value);
		if (err)
			return err;
	}
	err = kernel_fsconfig(fs, KERNEL_FSCONFIG_CREATE, NULL, NULL);
	return err ? err : kernel_fsmount(fs, attributes);
}

int place_copy(int directory, const char *path, unsigned int attributes, int user_namespace)
{
	struct kernel_mount_attr attr = { .set = attributes };
	int fd = kernel_open_tree(directory, path,
				  KERNEL_OPEN_TREE_CLONE | (*path ? 0 : KERNEL_AT_EMPTY_PATH));
	int err;

	if (fd < 0)
		return fd;
	if (user_namespace >= 0) {
		attr.set |= KERNEL_MOUNT_IDMAP;
		attr.userns_fd = (uint64_t)user_namespace;
	}
	err = attr.set ? kernel_mount_setattr(fd, 0, &attr) : 0;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}
