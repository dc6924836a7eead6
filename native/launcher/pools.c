#include "pools.h"

#include <dirent.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "kernel.h"

enum {
	MOUNT_BYTES_MAX = 512,
};

/* What is in use stays: the kernel refuses to remove it. */
static void remove_pools(int edge)
{
	DIR *entries = fdopendir(fcntl(edge, F_DUPFD_CLOEXEC, 0));
	struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		if (!strncmp(entry->d_name, "pool-", 5))
			unlinkat(edge, entry->d_name, AT_REMOVEDIR);
	}
	if (entries)
		closedir(entries);
}

/* The launcher may be in one of its own, which it has to leave first. */
static void remove_own(const char *hierarchy)
{
	char own[MOUNT_BYTES_MAX + 64], top[MOUNT_BYTES_MAX + 64];
	AUTO_CLOSE procs = -1;

	snprintf(own, sizeof(own), "%s/dsec-%s-launcher", hierarchy, host.edge_id);
	if (!rmdir(own) || errno != EBUSY)
		return;
	snprintf(top, sizeof(top), "%s/cgroup.procs", hierarchy);
	procs = open(top, O_WRONLY | O_CLOEXEC);
	if (procs >= 0 && write(procs, "0", 1) == 1)
		rmdir(own);
}

static void clean(const char *hierarchy)
{
	char path[MOUNT_BYTES_MAX + 64];
	AUTO_CLOSE edge = -1;

	remove_own(hierarchy);
	snprintf(path, sizeof(path), "%s/dsec-%s", hierarchy, host.edge_id);
	edge = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (edge < 0)
		return;
	remove_pools(edge);
	rmdir(path);
}

void pools_remove(void)
{
	struct mntent *entry;
	FILE *mounts;

	/* Where all hierarchies are, also those that hold the launcher alone. */
	if (setns(host.start, CLONE_NEWNS))
		return;
	mounts = setmntent("/proc/self/mounts", "re");
	while (mounts && (entry = getmntent(mounts))) {
		if (!strncmp(entry->mnt_type, "cgroup", 6) &&
		    strlen(entry->mnt_dir) < MOUNT_BYTES_MAX)
			clean(entry->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
}
