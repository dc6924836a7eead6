#include "router.h"

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "crash.h"
#include "host.h"
#include "kernel.h"
#include "netlink.h"

#define NSFS_MAGIC 0x6e736673
#define LOOPBACK   "lo"

enum {
	LOOPBACK_DEVICE = 1,
};

/* The one that the router had last; 0: not known. */
static uint32_t known_gateway;

int router_find(void)
{
	int fd = host_open("run/" ROUTER_PIN, O_RDONLY);
	struct statfs fs;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstatfs(fd, &fs)) {
		int err = -errno;

		close(fd);
		return err;
	}
	/* A launcher died before it was there. */
	if (fs.f_type != NSFS_MAGIC) {
		close(fd);
		return 0;
	}
	host.links = host_open("run/" ROUTER_LINKS, O_PATH | O_DIRECTORY);
	host.router = fd;
	return host.links < 0 ? host.links : 0;
}

static int write_sysctl(const char *path, const char *value)
{
	AUTO_CLOSE fd = openat(host.proc, path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

/* A new namespace starts with what the host's has. Devices that come later start with `default`. */
static int set_sysctls(void)
{
	static const char *const places[] = { "all", "default" };
	static const struct {
		const char *name, *value;
	} settings[] = {
		{ "forwarding", "0" },	     { "rp_filter", "1" },
		{ "accept_local", "0" },     { "route_localnet", "0" },
		{ "accept_redirects", "0" }, { "send_redirects", "0" },
		{ "proxy_arp", "0" },	     { "accept_source_route", "0" },
	};
	char path[96];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int err = 0;

		for (size_t j = 0; j < sizeof(settings) / sizeof(settings[0]) && !err; j++) {
			snprintf(path, sizeof(path), "sys/net/ipv4/conf/%s/%s", places[i],
				 settings[j].name);
			err = write_sysctl(path, settings[j].value);
		}
		if (err)
			return err;
		snprintf(path, sizeof(path), "sys/net/ipv6/conf/%s/disable_ipv6", places[i]);
		err = write_sysctl(path, "1");
		/* A kernel without IPv6 has none of it to turn off. */
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

static int pin(int run)
{
	AUTO_CLOSE file = -1;

	if (fchdir(run))
		return -errno;
	file = open(ROUTER_PIN, O_CREAT | O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0400);
	if (file < 0 || (mkdir(ROUTER_LINKS, 0700) && errno != EEXIST))
		return -errno;
	crash_point(CRASH_ROUTER_MADE);
	return mount("/proc/self/ns/net", ROUTER_PIN, NULL, MS_BIND, NULL) ? -errno : 0;
}

/* The gateway is on the loopback device, as no device needs to be there for an address to be ours.
 */
static int configure(uint32_t gateway)
{
	struct netlink_link up = {
		.index = LOOPBACK_DEVICE,
		.flags = IFF_UP,
		.changed = IFF_UP,
	};
	AUTO_NETLINK netlink = { .fd = -1 };
	int err = netlink_open(&netlink);

	if (err)
		return err;
	netlink_begin(&netlink, NETLINK_SET_LINK, 0, &up, sizeof(up));
	netlink_address(&netlink, LOOPBACK_DEVICE, gateway);
	return netlink_send(&netlink);
}

/* In a child, who may change its namespaces as it likes. It is whole before it can be found. */
static int make(uint32_t gateway)
{
	AUTO_CLOSE run = host_open("run", O_PATH | O_DIRECTORY);
	int err;

	if (run < 0)
		return run;
	if (host.router >= 0)
		return setns(host.router, CLONE_NEWNET) ? -errno : configure(gateway);
	if (setns(host.start, CLONE_NEWNS) || unshare(CLONE_NEWNET))
		return -errno;
	err = set_sysctls();
	if (!err)
		err = configure(gateway);
	return err ? err : pin(run);
}

int router_need(uint32_t gateway)
{
	int status = 0, err;
	pid_t child;

	if (host.router >= 0 && gateway == known_gateway)
		return 0;
	child = fork();
	if (child == 0)
		_exit(-make(gateway));
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -errno;
	err = WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
	if (!err && host.router < 0)
		err = router_find();
	if (!err)
		known_gateway = gateway;
	return err;
}
