#include "claim.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "host.h"
#include "kernel.h"

#define CLAIM_NAME "trusted.dsec.state"

enum {
	CLAIM_BYTES_MAX = 64,
	EVENTS_BYTES_MAX = 256,
};

/* Whether anything runs in a cgroup, by its path from the edge's own. */
static bool is_populated(const char *path)
{
	char events[64], text[EVENTS_BYTES_MAX] = "";
	AUTO_CLOSE fd = -1;

	snprintf(events, sizeof(events), "%s/cgroup.events", path);
	fd = openat(host.hierarchies[0].directory, events, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "populated 1");
}

/* Of this state root, wherever it is mounted. */
static int own_claim(char claim[CLAIM_BYTES_MAX])
{
	struct stat status;

	if (fstat(host.state, &status))
		return -errno;
	return snprintf(claim, CLAIM_BYTES_MAX, "%llx:%llx", (unsigned long long)status.st_dev,
			(unsigned long long)status.st_ino);
}

bool claim_is_populated(void)
{
	return is_populated(".");
}

int claim_edge_id(void)
{
	char path[64], launcher[64], own[CLAIM_BYTES_MAX], found[CLAIM_BYTES_MAX];
	int length = own_claim(own);
	ssize_t known;

	if (length < 0)
		return length;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", host.hierarchies[0].directory);
	snprintf(launcher, sizeof(launcher), "../dsec-%s-launcher", host.edge_id);
	known = getxattr(path, CLAIM_NAME, found, sizeof(found));
	if (known == length && !memcmp(found, own, (size_t)length))
		return 0;
	if (known >= 0 && (is_populated(".") || is_populated(launcher)))
		return -EADDRINUSE;
	return setxattr(path, CLAIM_NAME, own, (size_t)length, known < 0 ? XATTR_CREATE : 0)
		       ? (errno == EEXIST ? -EADDRINUSE : -errno)
		       : 0;
}
