/* What musl's headers do not declare of the Linux interface. Numbers are those of include/uapi. */
#ifndef LAUNCHER_KERNEL_H
#define LAUNCHER_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

/* The same on every architecture: these came after the tables were unified. */
enum {
	NR_OPEN_TREE = 428,
	NR_MOVE_MOUNT = 429,
	NR_FSOPEN = 430,
	NR_FSCONFIG = 431,
	NR_FSMOUNT = 432,
	NR_CLOSE_RANGE = 436,
	NR_OPENAT2 = 437,
	NR_MOUNT_SETATTR = 442,
};

enum {
	KERNEL_OPEN_TREE_CLONE = 1,
	KERNEL_AT_EMPTY_PATH = 0x1000,
	KERNEL_AT_RECURSIVE = 0x8000,
	KERNEL_MOVE_MOUNT_F_EMPTY_PATH = 0x4,
	KERNEL_MOVE_MOUNT_T_EMPTY_PATH = 0x40,
	KERNEL_FSMOUNT_CLOEXEC = 1,
	KERNEL_FSOPEN_CLOEXEC = 1,
	KERNEL_CLOSE_RANGE_CLOEXEC = 4,
};

enum kernel_fsconfig {
	KERNEL_FSCONFIG_FLAG = 0,
	KERNEL_FSCONFIG_STRING = 1,
	KERNEL_FSCONFIG_CREATE = 6,
};

enum kernel_mount_attribute {
	KERNEL_MOUNT_RDONLY = 0x1,
	KERNEL_MOUNT_NOSUID = 0x2,
	KERNEL_MOUNT_NODEV = 0x4,
	KERNEL_MOUNT_NOEXEC = 0x8,
	KERNEL_MOUNT_IDMAP = 0x100000,
};

enum kernel_resolve {
	KERNEL_RESOLVE_NO_MAGICLINKS = 0x02,
	KERNEL_RESOLVE_NO_SYMLINKS = 0x04,
	KERNEL_RESOLVE_BENEATH = 0x08,
	KERNEL_RESOLVE_IN_ROOT = 0x10,
};

#define KERNEL_CLONE_INTO_CGROUP UINT64_C(0x200000000)

struct kernel_open_how {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

struct kernel_mount_attr {
	uint64_t set;
	uint64_t clear;
	uint64_t propagation;
	uint64_t userns_fd;
};

struct kernel_clone_args {
	uint64_t flags;
	uint64_t pidfd;
	uint64_t child_tid;
	uint64_t parent_tid;
	uint64_t exit_signal;
	uint64_t stack;
	uint64_t stack_size;
	uint64_t tls;
	uint64_t set_tid;
	uint64_t set_tid_size;
	uint64_t cgroup;
};

struct kernel_loop_config {
	uint32_t fd;
	uint32_t block_size;
	struct {
		uint64_t device, inode, rdevice, offset, size_limit;
		uint32_t number, encrypt_type, encrypt_key_size, flags;
		uint8_t file_name[64], crypt_name[64], encrypt_key[32];
		uint64_t init[2];
	} info;
	uint64_t reserved[8];
};

#define KERNEL_LOOP_CTL_GET_FREE 0x4c82
#define KERNEL_LOOP_CONFIGURE	 0x4c0a
#define KERNEL_LOOP_AUTOCLEAR	 4

struct kernel_btrfs_vol_args {
	int64_t fd;
	char name[4088];
};

struct kernel_btrfs_ino_lookup {
	uint64_t tree;
	uint64_t objectid;
	char name[4080];
};

struct kernel_btrfs_quota_ctl {
	uint64_t command;
	uint64_t status;
};

struct kernel_btrfs_qgroup_create {
	uint64_t create;
	uint64_t id;
};

struct kernel_btrfs_qgroup_limit {
	uint64_t id; /* 0: that of the subvolume */
	uint64_t flags;
	uint64_t referenced_max, exclusive_max, referenced_reserved, exclusive_reserved;
};

#define KERNEL_BTRFS_MAGIC		 0x9123683eu
#define KERNEL_BTRFS_FIRST_FREE_OBJECTID 256
#define KERNEL_BTRFS_QUOTA_ENABLE	 1
#define KERNEL_BTRFS_LIMIT_REFERENCED	 1
#define KERNEL_BTRFS_SUBVOL_CREATE	 _IOW(0x94, 14, struct kernel_btrfs_vol_args)
#define KERNEL_BTRFS_SNAP_DESTROY	 _IOW(0x94, 15, struct kernel_btrfs_vol_args)
#define KERNEL_BTRFS_INO_LOOKUP		 _IOWR(0x94, 18, struct kernel_btrfs_ino_lookup)
#define KERNEL_BTRFS_QUOTA_CTL		 _IOWR(0x94, 40, struct kernel_btrfs_quota_ctl)
#define KERNEL_BTRFS_QGROUP_CREATE	 _IOW(0x94, 42, struct kernel_btrfs_qgroup_create)
#define KERNEL_BTRFS_QGROUP_LIMIT	 _IOR(0x94, 43, struct kernel_btrfs_qgroup_limit)

/* All of these return what the call returns, or a negative errno. */
static inline long kernel_result(long result)
{
	return result < 0 ? -errno : result;
}

static inline int kernel_open_tree(int directory, const char *path, unsigned int flags)
{
	return (int)kernel_result(syscall(NR_OPEN_TREE, directory, path, flags | O_CLOEXEC));
}

static inline int kernel_move_mount(int from, int to_directory, const char *to)
{
	unsigned int flags = KERNEL_MOVE_MOUNT_F_EMPTY_PATH;

	if (!*to)
		flags |= KERNEL_MOVE_MOUNT_T_EMPTY_PATH;
	return (int)kernel_result(syscall(NR_MOVE_MOUNT, from, "", to_directory, to, flags));
}

static inline int kernel_fsopen(const char *type)
{
	return (int)kernel_result(syscall(NR_FSOPEN, type, KERNEL_FSOPEN_CLOEXEC));
}

static inline int kernel_fsconfig(int fs, enum kernel_fsconfig command, const char *key,
				  const char *value)
{
	return (int)kernel_result(syscall(NR_FSCONFIG, fs, command, key, value, 0));
}

static inline int kernel_fsmount(int fs, unsigned int attributes)
{
	return (int)kernel_result(syscall(NR_FSMOUNT, fs, KERNEL_FSMOUNT_CLOEXEC, attributes));
}

static inline int kernel_mount_setattr(int mount, unsigned int flags,
				       struct kernel_mount_attr *attributes)
{
	return (int)kernel_result(syscall(NR_MOUNT_SETATTR, mount, "", KERNEL_AT_EMPTY_PATH | flags,
					  attributes, sizeof(*attributes)));
}

static inline int kernel_openat2(int directory, const char *path, uint64_t flags, uint64_t mode,
				 uint64_t resolve)
{
	struct kernel_open_how how = { flags | O_CLOEXEC, mode, resolve };

	return (int)kernel_result(syscall(NR_OPENAT2, directory, path, &how, sizeof(how)));
}

static inline int kernel_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return (int)kernel_result(syscall(NR_CLOSE_RANGE, first, last, flags));
}

static inline int kernel_pivot_root(const char *new_root, const char *put_old)
{
	return (int)kernel_result(syscall(SYS_pivot_root, new_root, put_old));
}

static inline void close_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* A descriptor that is closed when its name goes out of scope. */
#define AUTO_CLOSE __attribute__((cleanup(close_fd))) int

#endif
