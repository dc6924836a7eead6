#include "host-roots.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "host.h"
#include "kernel.h"
#include "place.h"
#include "router.h"

#define NSFS_MAGIC 0x6e736673
#define PIN	   "layers.mnt"

/*
 * Replaces the root of a new mount namespace by an empty tmpfs that `furnish` fills. The
 * state root serves as the place to stand on.
 */
static int enter_empty_root(int (*furnish)(void))
{
	int err;

	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("dsec", host.state_path, "tmpfs", MS_NOSUID, "mode=755,size=64m") ||
	    chdir(host.state_path))
		return -errno;
	err = furnish();
	if (err)
		return err;
	err = kernel_pivot_root(".", ".");
	if (err)
		return err;
	return umount2(".", MNT_DETACH) || chdir("/") ? -errno : 0;
}

static int furnish_pinned(void)
{
	/* What the users of layers are links to. */
	AUTO_CLOSE token = open("token", O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0400);

	return token < 0 || mkdir("layers", 0700) || mkdir("uppers", 0700) ? -errno : 0;
}

static int open_run(void)
{
	return kernel_openat2(host.state, "run", O_PATH | O_DIRECTORY, 0, HOST_RESOLVE);
}

/*
 * Sockets come and go with sandboxes, so they lie in memory, not in a journal on disk. The mount is
 * private because a namespace file cannot be mounted where mounts are shared with other namespaces,
 * as they are on most hosts.
 */
static int make_run(void)
{
	AUTO_CLOSE below = open_run();
	AUTO_CLOSE run = -1;
	AUTO_CLOSE pin = -1;

	if (below < 0)
		return below;
	if (fchdir(below) ||
	    mount("dsec", ".", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=711"))
		return -errno;
	run = open_run();
	if (run < 0)
		return run;
	if (fchdir(run) || mount("", ".", NULL, MS_PRIVATE, NULL))
		return -errno;
	pin = open(PIN, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0400);
	return pin < 0 || mkdir("sb", 0711) ? -errno : 0;
}

/* Mounts the namespace of `process` at the pin. */
static int pin(pid_t process)
{
	AUTO_CLOSE run = open_run();
	char source[64];

	if (run < 0)
		return run;
	snprintf(source, sizeof(source), "/proc/%d/ns/mnt", process);
	return fchdir(run) || mount(source, PIN, NULL, MS_BIND, NULL) ? -errno : 0;
}

static int run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* The child keeps the new namespace alive until the parent has pinned it. */
static int make_pinned(int cpu)
{
	int ready[2], done[2];
	char byte = 0;
	int err;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC) || pipe2(done, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		close(done[1]);
		err = run_on(cpu);
		byte = (char)-(err ? err : enter_empty_root(furnish_pinned));
		if (write(ready[1], &byte, 1) == 1 && !byte)
			(void)!read(done[0], &byte, 1);
		_exit(0);
	}
	close(ready[1]);
	close(done[0]);
	err = read(ready[0], &byte, 1) == 1 ? -byte : -ECHILD;
	if (!err)
		err = pin(child);
	close(done[1]);
	close(ready[0]);
	waitpid(child, NULL, 0);
	return err;
}

/*
 * A namespace can be pinned only in one that is older than itself. From 6.18 on Linux goes by
 * numbers that each processor takes from a supply of its own, so that a new namespace looks older
 * than ours unless it is made on the right processor; which one that is nobody tells.
 */
static int make_pinned_somewhere(void)
{
	cpu_set_t set;
	int err;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	err = make_run();
	if (err)
		return err;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		err = make_pinned(cpu);
		if (err != -EINVAL)
			break;
	}
	return chdir("/") && !err ? -errno : err;
}

/* -ENOENT when nothing is pinned. */
static int open_pinned(void)
{
	AUTO_CLOSE run = open_run();
	struct statfs fs;
	int fd;

	if (run < 0)
		return run;
	fd = openat(run, PIN, O_NOFOLLOW | O_CLOEXEC | O_RDONLY);
	if (fd < 0 || fstatfs(fd, &fs))
		return -errno;
	if (fs.f_type != NSFS_MAGIC) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

int pinned_namespace(void)
{
	int fd = open_pinned();
	int err;

	if (fd != -ENOENT)
		return fd;
	err = make_pinned_somewhere();
	return err ? err : open_pinned();
}

void remove_roots(void)
{
	AUTO_CLOSE run = -1;

	if (setns(host.start, CLONE_NEWNS))
		return;
	run = open_run();
	if (run < 0 || fchdir(run))
		return;
	umount2(ROUTER_PIN, MNT_DETACH | UMOUNT_NOFOLLOW);
	umount2(PIN, MNT_DETACH | UMOUNT_NOFOLLOW);
	if (!fchdir(host.state))
		umount2("run", MNT_DETACH | UMOUNT_NOFOLLOW);
	(void)!chdir("/");
}

/* The only devices of a sandbox. Its own pseudo-terminals are mounted at pts. */
static int furnish_dev(void)
{
	static const struct {
		const char *name;
		unsigned int major, minor;
	} nodes[] = {
		{ "null", 1, 3 },   { "zero", 1, 5 },	 { "full", 1, 7 },
		{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
	};
	static const char *const links[][2] = {
		{ "/proc/self/fd", "fd" },	 { "/proc/self/fd/0", "stdin" },
		{ "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" },
	};

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		if (mknod(nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) ||
		    chmod(nodes[i].name, 0666))
			return -errno;
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (symlink(links[i][0], links[i][1]))
			return -errno;
	}
	return mkdir("pts", 0755) || mkdir("shm", 0755) || mkdir("mqueue", 0755) ? -errno : 0;
}

static int place_dev(void)
{
	struct kernel_mount_attr readonly = { .set = KERNEL_MOUNT_RDONLY };
	struct mount_option options[] = { { "mode", "755" }, { "size", "64k" } };
	AUTO_CLOSE dev = place_new("tmpfs", options, 2, KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NOEXEC);
	int err;

	if (dev < 0)
		return dev;
	err = kernel_move_mount(dev, AT_FDCWD, "dev");
	if (err)
		return err;
	if (chdir("dev"))
		return -errno;
	err = furnish_dev();
	if (chdir(".."))
		return -errno;
	return err ? err : kernel_mount_setattr(dev, 0, &readonly);
}

/* A sysfs shows the network devices of the namespace that mounted it: here, none but a loopback. */
static int place_sysfs(void)
{
	unsigned int attributes = KERNEL_MOUNT_RDONLY | KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NODEV |
				  KERNEL_MOUNT_NOEXEC;
	AUTO_CLOSE home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int sysfs;
	int err;

	if (home < 0 || unshare(CLONE_NEWNET))
		return -errno;
	sysfs = place_new("sysfs", NULL, 0, attributes);
	if (setns(home, CLONE_NEWNET))
		return -errno;
	if (sysfs < 0)
		return sysfs;
	err = kernel_move_mount(sysfs, AT_FDCWD, "sys");
	close(sysfs);
	return err;
}

/* What hides something in a sandbox is a copy of these, with their flags. */
static int place_cover(const char *name)
{
	AUTO_CLOSE cover = place_copy(AT_FDCWD, name,
				      KERNEL_MOUNT_RDONLY | KERNEL_MOUNT_NOSUID |
					      KERNEL_MOUNT_NODEV | KERNEL_MOUNT_NOEXEC,
				      -1);

	return cover < 0 ? cover : kernel_move_mount(cover, AT_FDCWD, name);
}

static int furnish_own(void)
{
	static const char *const directories[] = { "proc", "dev",   "sys",  "l",    "u",
						   "m",	   "empty", "loop", "cover" };
	AUTO_CLOSE proc = -1;
	static const char *const covers[] = { "null", "empty", "cover-null", "cover" };
	AUTO_CLOSE null = -1;
	AUTO_CLOSE cover = -1;
	char name[16];
	int err;

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		if (mkdir(directories[i], 0755))
			return -errno;
	}
	for (int i = 0; i < LAYERS_MAX; i++) {
		snprintf(name, sizeof(name), "l/%d", i);
		if (mkdir(name, 0755))
			return -errno;
	}
	null = open("null", O_CREAT | O_EXCL | O_CLOEXEC | O_RDONLY, 0444);
	cover = open("cover-null", O_CREAT | O_EXCL | O_CLOEXEC | O_RDONLY, 0444);
	if (null < 0 || cover < 0)
		return -errno;
	err = place_sysfs();
	if (!err)
		err = place_dev();
	for (size_t i = 0; i < sizeof(covers) / sizeof(covers[0]) && !err; i++)
		err = place_cover(covers[i]);
	if (err)
		return err;
	proc = place_new("proc", NULL, 0,
			 KERNEL_MOUNT_NOSUID | KERNEL_MOUNT_NODEV | KERNEL_MOUNT_NOEXEC);
	return proc < 0 ? proc : kernel_move_mount(proc, AT_FDCWD, "proc");
}

int enter_own_root(void)
{
	return enter_empty_root(furnish_own);
}
