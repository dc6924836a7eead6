#include "epoch.h"

#include <stdio.h>
#include <stdlib.h>

#include "host.h"
#include "kernel.h"

#define EPOCH_FILE "run/epoch"

enum {
	DIGITS = 10,
};

int epoch_load(uint32_t *epoch)
{
	AUTO_CLOSE fd = host_open(EPOCH_FILE, O_RDONLY);
	char text[DIGITS + 1] = "";

	*epoch = 0;
	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || read(fd, text, DIGITS) < 0)
		return fd < 0 ? fd : -errno;
	*epoch = (uint32_t)strtoul(text, NULL, 10);
	return 0;
}

int epoch_store(uint32_t epoch)
{
	AUTO_CLOSE fd =
		kernel_openat2(host.state, EPOCH_FILE, O_CREAT | O_WRONLY, 0600, HOST_RESOLVE);
	char text[DIGITS + 1];

	if (fd < 0)
		return fd;
	/* Always as long, so that one write replaces all. */
	snprintf(text, sizeof(text), "%010u", epoch);
	return pwrite(fd, text, DIGITS, 0) == DIGITS ? 0 : -EIO;
}
