/* What can be opened: devices, all of /proc and /sys, the operator's terminal; and trees that have
 * no end. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum {
	MAJORS = 512,
	MINORS = 4,
	WALK_SECONDS = 10,
	DEPTH_MAX = 24,
};

static const char *const devices[] = {
	"kmsg",	     "mem",	     "port",	  "kvm",     "fuse",	       "userfaultfd",
	"loop0",     "loop-control", "vda",	  "sda",     "nvme0n1",	       "net/tun",
	"vhost-net", "vsock",	     "rtc0",	  "hpet",    "mapper/control", "btrfs-control",
	"uinput",    "snapshot",     "autofs",	  "console", "tty0",	       "vcs",
	"rfkill",    "vfio/vfio",    "dri/card0", "nvram",   "cpu/0/msr",      "watchdog",
	"ppp",
};

/* Null, zero, full, random, urandom, tty, ptmx: what every container has. */
static bool is_harmless(int major, int minor)
{
	return (major == 1 &&
		(minor == 3 || minor == 5 || minor == 7 || minor == 8 || minor == 9)) ||
	       (major == 5 && (minor == 0 || minor == 2));
}

static void try_device(mode_t type, int major, int minor)
{
	const char *kind = type == S_IFCHR ? "char" : "block";
	int fd;

	unlink("/tmp/probe-device");
	if (mknod("/tmp/probe-device", type | 0600, makedev(major, minor)) < 0) {
		report(-1, "mknod-%s-%d-%d", kind, major, minor);
		return;
	}
	report(0, "mknod-%s-%d-%d", kind, major, minor);
	/* The kind of the host's disks can be opened by name elsewhere; nothing is read. */
	fd = open("/tmp/probe-device", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 || errno == EACCES || errno == EPERM)
		report(fd, "open-%s-%d-%d", kind, major, minor);
	close(fd);
}

/* With `nodes`, only a few that every kernel has. */
int run_devices(int argc, char **argv)
{
	bool few = argc > 0 && strcmp(argv[0], "few") == 0;
	char path[64];

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]) && !few; i++) {
		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		report(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY), "named-%s", devices[i]);
	}
	for (int major = 1; major < (few ? 8 : MAJORS); major++) {
		for (int minor = 0; minor < MINORS; minor++) {
			if (!is_harmless(major, minor))
				try_device(S_IFCHR, major, minor);
			try_device(S_IFBLK, major, minor);
		}
	}
	unlink("/tmp/probe-device");
	return 0;
}

struct walk {
	time_t end;
	bool writes;
	long read_bytes;
};

static bool is_of_process(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0 &&
	       ((path[6] >= '0' && path[6] <= '9') || strncmp(path + 6, "self", 4) == 0 ||
		strncmp(path + 6, "thread-self", 11) == 0);
}

static void try_file(struct walk *walk, const char *path)
{
	char buffer[4096];
	ssize_t length;
	int fd;

	if (walk->writes && !is_of_process(path)) {
		/* Written, not only opened: many files refuse only then. Nothing sensible is
		 * written. */
		fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
		if (fd >= 0)
			report(write(fd, "\n", 1), "write:%s", path);
		close(fd);
	}
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	length = read(fd, buffer, sizeof(buffer));
	if (length > 0)
		walk->read_bytes += length;
	close(fd);
}

static void walk_below(struct walk *walk, const char *path, int depth)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char inner[4096];

	while (directory != NULL && (entry = readdir(directory)) != NULL &&
	       time(NULL) < walk->end) {
		struct stat stat;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >=
		    (int)sizeof(inner))
			continue;
		if (lstat(inner, &stat) < 0)
			continue;
		if (S_ISDIR(stat.st_mode) && depth < DEPTH_MAX)
			walk_below(walk, inner, depth + 1);
		else if (S_ISREG(stat.st_mode))
			try_file(walk, inner);
	}
	if (directory != NULL)
		closedir(directory);
}

/* `walk <directory> [write]`. Never with `write` on a host. */
int run_walk(int argc, char **argv)
{
	struct walk walk = { .end = time(NULL) + WALK_SECONDS };

	if (argc < 1)
		return 2;
	walk.writes = argc > 1 && strcmp(argv[1], "write") == 0;
	walk_below(&walk, argv[0], 0);
	dprintf(STDOUT_FILENO, "read-bytes %ld\n", walk.read_bytes);
	return 0;
}

int run_terminal(int argc, char **argv)
{
	int fd = open("/dev/tty", O_RDWR), discipline = 2;
	char byte = 'l', order[2] = { 10, 0 };

	(void)argv;
	report(fd, "open-tty");
	report(ioctl(fd, 0x5412, &byte), "push-input");
	/* Where it would work, the rest of the machine would notice. */
	if (argc > 0)
		return 0;
	report(ioctl(fd, 0x541c, order), "console-order");
	report(ioctl(fd, 0x541d, NULL), "console-redirect");
	report(ioctl(fd, 0x5423, &discipline), "line-discipline");
	return 0;
}

/* So many directories, each in the one before; then it says how deep it came. */
int run_dive(int argc, char **argv)
{
	int levels = argc > 1 ? atoi(argv[1]) : 0, level = 0;

	if (argc < 2 || chdir(argv[0]) < 0)
		return 2;
	while (level < levels && mkdir("d", 0700) == 0 && chdir("d") == 0)
		level++;
	dprintf(STDOUT_FILENO, "levels %d\n", level);
	return 0;
}

/* What overlays and programs believe, written into files by hand; and owners beyond a range of ids.
 */
int run_attributes(int argc, char **argv)
{
	static const char *const names[] = {
		"trusted.overlay.redirect", "trusted.overlay.metacopy", "trusted.overlay.opaque",
		"trusted.overlay.origin",   "trusted.overlay.whiteout", "trusted.anything",
		"security.apparmor",	    "security.anything",	"system.posix_acl_none",
	};
	static const unsigned int owners[] = { 65535, 65536, 70000, 1u << 30, 4294967294u };
	const char *path = "/tmp/probe-attributes";

	(void)argc;
	(void)argv;
	close(open(path, O_CREAT | O_WRONLY, 0600));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		report(setxattr(path, names[i], "/etc", 4, 0), "%s", names[i]);
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		report(chown(path, owners[i], owners[i]), "owner-%u", owners[i]);
		report(fchownat(AT_FDCWD, path, 0, owners[i], 0), "group-%u", owners[i]);
	}
	unlink(path);
	return 0;
}
