/* New namespaces, those of others, and every call that mounts or tells of mounts. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct space {
	const char *name;
	uint64_t flag;
};

static const struct space spaces[] = {
	{ "mnt", 0x00020000 }, { "cgroup", 0x02000000 }, { "uts", 0x04000000 },
	{ "ipc", 0x08000000 }, { "user", 0x10000000 },	 { "pid", 0x20000000 },
	{ "net", 0x40000000 }, { "time", 0x00000080 },
};

static long unshare_one(const void *argument)
{
	return unshare((int)((const struct space *)argument)->flag);
}

/* Into the first process's, and into its own, which only the privileged may enter again. */
static long enter_one(const void *argument)
{
	const struct space *space = argument;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/1/ns/%s", space->name);
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s", space->name);
		fd = open(path, O_RDONLY);
	}
	return setns(fd, 0);
}

static long enter_process(const void *argument)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

	return setns(pidfd, (int)((const struct space *)argument)->flag);
}

static long clone_one(const struct space *space)
{
	long child = syscall(SYS_clone, space->flag | SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid((pid_t)child, NULL, 0);
	return child;
}

static long clone3_one(const struct space *space)
{
	uint64_t arguments[11] = { space->flag };
	long child;

	arguments[4] = SIGCHLD;
	child = syscall(435, arguments, sizeof(arguments));
	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid((pid_t)child, NULL, 0);
	return child;
}

int run_namespaces(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		const struct space *space = &spaces[i];

		report(in_child(unshare_one, space), "unshare-%s", space->name);
		/* clone(2) has no room for the bit of time: it is part of the exit signal. */
		if (space->flag > 0xff)
			report(clone_one(space), "clone-%s", space->name);
		report(clone3_one(space), "clone3-%s", space->name);
		report(in_child(enter_one, space), "setns-%s", space->name);
		report(in_child(enter_process, space), "setns-pidfd-%s", space->name);
	}
	return 0;
}

static long mount_tmpfs(const void *argument)
{
	return mount("none", argument, "tmpfs", 0, NULL);
}

static long open_by_handle(const void *argument)
{
	struct {
		unsigned int bytes;
		int type;
		unsigned char data[128];
	} handle = { .bytes = 128 };
	int id, root = open("/", O_RDONLY);

	if (syscall(SYS_name_to_handle_at, AT_FDCWD, argument, &handle, &id, 0) < 0) {
		/* Made up: whoever may use handles is told that it is stale. */
		handle.bytes = 8;
		handle.type = 1;
	}
	return syscall(SYS_open_by_handle_at, root, &handle, O_RDONLY);
}

static void try_new_mounts(void)
{
	int context = (int)syscall(430, "tmpfs", 0), mount_fd = -1, tree;
	uint64_t attributes[4] = { 1 };

	report(context, "fsopen");
	report(syscall(431, context, 6, NULL, NULL, 0), "fsconfig");
	mount_fd = (int)syscall(432, context, 0, 0);
	report(mount_fd, "fsmount");
	report(syscall(429, mount_fd, "", AT_FDCWD, "/tmp", 4), "move-mount");
	tree = (int)syscall(428, AT_FDCWD, "/", 1);
	report(tree, "open-tree");
	report(syscall(467, AT_FDCWD, "/", 1, attributes, sizeof(attributes)), "open-tree-attr");
	report(syscall(442, tree, "", 0x1000, attributes, sizeof(attributes)), "mount-setattr");
	report(syscall(433, AT_FDCWD, "/tmp", 0), "fspick");
}

static void try_telling(void)
{
	/* Size, mount id of the root of all, what is asked for. */
	uint64_t request[4] = { 24, UINT64_MAX, 1 }, list[4];
	char answer[4096];

	report(syscall(458, request, list, 4, 0), "listmount");
	request[1] = 0;
	report(syscall(457, request, answer, sizeof(answer), 0), "statmount");
}

int run_mounts(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	mkdir("/tmp/probe-mount", 0700);
	report(mount_tmpfs("/tmp/probe-mount"), "mount-tmpfs");
	report(mount("/proc", "/tmp/probe-mount", NULL, MS_BIND, NULL), "mount-bind");
	report(mount(NULL, "/tmp/probe-mount", NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC, NULL),
	       "remount");
	report(mount("none", "/tmp/probe-mount", "proc", 0, NULL), "mount-proc");
	report(umount2("/tmp/probe-mount", MNT_DETACH), "umount");
	report(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL), "remount-root");
	try_new_mounts();
	try_telling();
	report(syscall(SYS_pivot_root, ".", "."), "pivot-root");
	report(chroot("/tmp"), "chroot");
	report(open_by_handle("/"), "open-by-handle");
	return 0;
}
