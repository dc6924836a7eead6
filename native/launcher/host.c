#include "host.h"

#include <getopt.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "claim.h"
#include "crash.h"
#include "host-roots.h"
#include "kernel.h"
#include "router.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

enum {
	LISTEN_BACKLOG = 16,
	EDGE_ID_BYTES_MAX = 11,
};

struct host host = { .state = -1,
		     .sockets = -1,
		     .listener = -1,
		     .home = -1,
		     .pinned = -1,
		     .aether = -1,
		     .router = -1,
		     .links = -1 };

const struct hierarchy *host_hierarchy(const char *name)
{
	for (int i = 0; i < host.hierarchy_count; i++) {
		if (!strcmp(host.hierarchies[i].name, name))
			return &host.hierarchies[i];
	}
	return NULL;
}

int host_visit(void)
{
	return setns(host.pinned, CLONE_NEWNS) ? -errno : 0;
}

int host_return(void)
{
	return setns(host.home, CLONE_NEWNS) ? -errno : 0;
}

int host_open(const char *path, uint64_t flags)
{
	return kernel_openat2(host.state, path, flags, 0, HOST_RESOLVE);
}

/* The edge owns the state root and nobody else may look in: that keeps strangers off every socket
 * below. */
static int open_state(void)
{
	struct stat status;

	host.state = open(host.state_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (host.state < 0 || fstat(host.state, &status))
		return -errno;
	if ((status.st_uid != host.edge_uid && status.st_uid != 0) || (status.st_mode & 077))
		return -EPERM;
	return mkdirat(host.state, "run", 0711) && errno != EEXIST ? -errno : 0;
}

/* One launcher for each state root. Such a lock is not inherited, so that no sandbox can hold it.
 */
static int lock_state(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = kernel_openat2(host.state, "launcher.lock", O_CREAT | O_RDWR, 0600, HOST_RESOLVE);

	if (fd < 0)
		return fd;
	return fcntl(fd, F_SETLK, &lock) ? -errno : 0;
}

/* The agent runs from a copy that nobody can change, whatever happens to the file or to
 * /proc/PID/exe. */
static int seal_aether(void)
{
	AUTO_CLOSE file = open(host.aether_path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	off_t at = 0;

	if (file < 0 || fstat(file, &status))
		return -errno;
	host.aether = memfd_create("aether", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (host.aether < 0 && errno == EINVAL)
		host.aether = memfd_create("aether", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (host.aether < 0)
		return -errno;
	while (at < status.st_size) {
		if (sendfile(host.aether, file, &at, (size_t)(status.st_size - at)) <= 0)
			return errno ? -errno : -EIO;
	}
	return fchmod(host.aether, 0555) ||
			       fcntl(host.aether, F_ADD_SEALS,
				     F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
		       ? -errno
		       : 0;
}

static int bind_listener(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "launcher.sock" };
	AUTO_CLOSE run = host_open("run", O_PATH | O_DIRECTORY);
	mode_t mask;
	int err;

	if (run < 0)
		return run;
	host.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (host.listener < 0 || fchdir(run))
		return -errno;
	if (unlink(address.sun_path) && errno != ENOENT)
		return -errno;
	mask = umask(0177);
	err = bind(host.listener, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (err || lchown(address.sun_path, host.edge_uid, (gid_t)-1) ||
	    listen(host.listener, LISTEN_BACKLOG))
		return -errno;
	return chdir("/") ? -errno : 0;
}

/* Where the edge puts files that are bound into sandboxes. It may have no rights over the rest. */
static int make_views(void)
{
	AUTO_CLOSE run = host_open("run", O_PATH | O_DIRECTORY);

	if (run < 0)
		return run;
	if (mkdirat(run, "views", 0700) && errno != EEXIST)
		return -errno;
	return fchownat(run, "views", host.edge_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

static int add_hierarchy(const char *name, size_t length, const char *mount_point)
{
	struct hierarchy *hierarchy = &host.hierarchies[host.hierarchy_count];
	char path[PATH_TEXT_MAX];

	if (host.hierarchy_count == HIERARCHIES_MAX || length >= sizeof(hierarchy->name))
		return -ENOSPC;
	snprintf(path, sizeof(path), "%s/dsec-%s", mount_point, host.edge_id);
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	hierarchy->directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (hierarchy->directory < 0)
		return -errno;
	memcpy(hierarchy->name, name, length);
	hierarchy->name[length] = '\0';
	host.hierarchy_count++;
	return 0;
}

/* Version 2 hands controllers down only when asked; one that it does not have is no fault of ours.
 */
static void delegate(const char *mount_point, const char *below)
{
	static const char *const controllers[] = { "+cpu", "+memory", "+pids", "+io", "+cpuset" };
	char path[PATH_TEXT_MAX];

	snprintf(path, sizeof(path), "%s%s/cgroup.subtree_control", mount_point, below);
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			return;
		(void)!write(fd, controllers[i], strlen(controllers[i]));
		close(fd);
	}
}

static int add_unified(const char *mount_point)
{
	char own[32];
	int err;

	delegate(mount_point, "");
	err = add_hierarchy("unified", strlen("unified"), mount_point);
	snprintf(own, sizeof(own), "/dsec-%s", host.edge_id);
	if (!err)
		delegate(mount_point, own);
	return err;
}

/* The options of a version 1 mount name its controllers, among others. */
static int add_version_1(const struct mntent *entry)
{
	static const char *const known[] = { "cpu",   "cpuacct", "cpuset",  "memory", "pids",
					     "blkio", "freezer", "devices", "hugetlb" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int err = hasmntopt(entry, known[i])
				  ? add_hierarchy(known[i], strlen(known[i]), entry->mnt_dir)
				  : 0;

		if (err)
			return err;
	}
	return 0;
}

static int open_cgroups(void)
{
	static const char *const types[] = { "cgroup2", "cgroup" };
	struct mntent *entry;
	int err = 0;

	for (int pass = 0; pass < 2 && !err; pass++) {
		FILE *mounts = setmntent("/proc/self/mounts", "re");

		if (!mounts)
			return -errno;
		while (!err && (entry = getmntent(mounts))) {
			if (strcmp(entry->mnt_type, types[pass]))
				continue;
			if (pass == 1)
				err = add_version_1(entry);
			else if (!host.hierarchy_count)
				err = add_unified(entry->mnt_dir);
		}
		endmntent(mounts);
		if (!host.hierarchy_count)
			return -ENODEV;
	}
	return err;
}

static int open_pinned_namespace(void)
{
	host.pinned = pinned_namespace();
	return host.pinned < 0 ? host.pinned : 0;
}

static int settle(void)
{
	int err;

	host.sockets = host_open("run/sb", O_PATH | O_DIRECTORY);
	host.start = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (host.sockets < 0 || host.start < 0)
		return -errno;
	err = enter_own_root();
	if (err)
		return err;
	host.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	host.home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return host.proc < 0 || host.home < 0 ? -errno : 0;
}

static int raise_limits(void)
{
	struct rlimit files;

	umask(022);
	if (getrlimit(RLIMIT_NOFILE, &files))
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) ? -errno : 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} steps[] = {
	{ "limits", raise_limits },
	{ "state root", open_state },
	{ "another launcher", lock_state },
	{ "aether", seal_aether },
	{ "cgroups", open_cgroups },
	{ "edge id of another state root, choose another", claim_edge_id },
	{ "pinned namespace", open_pinned_namespace },
	{ "own root", settle },
	{ "views", make_views },
	{ "router", router_find },
	{ "socket", bind_listener },
};

static bool is_edge_id(const char *text)
{
	size_t length = strlen(text);

	return length > 0 && length <= EDGE_ID_BYTES_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == length;
}

static int read_arguments(int argc, char **argv)
{
	static const struct option options[] = {
		{ "state-root", required_argument, NULL, 's' },
		{ "edge-id", required_argument, NULL, 'e' },
		{ "edge-uid", required_argument, NULL, 'u' },
		{ "aether", required_argument, NULL, 'a' },
		{ NULL, 0, NULL, 0 },
	};
	char *rest = "x";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			host.state_path = optarg;
		else if (option == 'e')
			host.edge_id = optarg;
		else if (option == 'u')
			host.edge_uid = (uid_t)strtoul(optarg, &rest, 10);
		else if (option == 'a')
			host.aether_path = optarg;
		else
			return -EINVAL;
	}
	if (optind != argc || *rest || !host.aether_path || !host.edge_id ||
	    !is_edge_id(host.edge_id) || !host.state_path || host.state_path[0] != '/')
		return -EINVAL;
	return 0;
}

int host_init(int argc, char **argv)
{
	int err = read_arguments(argc, argv);

	if (err) {
		fprintf(stderr,
			"usage: dsec-launcher --state-root DIRECTORY --edge-id ID --edge-uid UID "
			"--aether FILE | --crash-points\n");
		return err;
	}
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		err = steps[i].run();
		if (err) {
			fprintf(stderr, "launcher: %s: %s\n", steps[i].name, strerror(-err));
			return err;
		}
	}
	return 0;
}
