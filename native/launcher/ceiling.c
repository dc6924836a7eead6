#include "ceiling.h"

#include <stdio.h>
#include <stdlib.h>

#include "host.h"
#include "kernel.h"

enum {
	/* Of the processes and threads that the host can have. */
	SHARE_PERCENT = 80,
	DIGITS = 20,
};

/* Returns 0 when the kernel does not say, or says that there is no limit. */
static uint64_t number_in(int directory, const char *path)
{
	AUTO_CLOSE fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	char text[DIGITS + 1] = "";

	if (fd < 0 || read(fd, text, DIGITS) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* In the hierarchy that counts processes. */
static int open_limit(void)
{
	static const char *const names[] = { "unified", "pids" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct hierarchy *hierarchy = host_hierarchy(names[i]);
		int fd = hierarchy ? openat(hierarchy->directory, "pids.max", O_WRONLY | O_CLOEXEC)
				   : -1;

		if (fd >= 0 || (hierarchy && errno != ENOENT))
			return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

int ceiling_set(void)
{
	uint64_t ids = number_in(host.proc, "sys/kernel/pid_max");
	uint64_t threads = number_in(host.proc, "sys/kernel/threads-max");
	AUTO_CLOSE limit = open_limit();
	char text[DIGITS + 1];
	int length;

	if (limit == -ENOENT)
		return 0;
	if (limit < 0)
		return limit;
	if (!ids || !threads)
		return -ENODATA;
	length =
		snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)(ids < threads ? ids : threads) * SHARE_PERCENT / 100);
	return write(limit, text, (size_t)length) == length ? 0 : -errno;
}

int ceiling_check(void)
{
	const struct hierarchy *pids = host_hierarchy("pids");
	uint64_t max = pids ? number_in(pids->directory, "pids.max") : 0;

	return max > 0 && number_in(pids->directory, "pids.current") > max ? -EAGAIN : 0;
}
