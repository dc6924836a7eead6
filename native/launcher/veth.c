#include "veth.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "kernel.h"
#include "object.h"

enum {
	/* Devices that are to go have this number. */
	GROUP_MARKED = 0x44534543,
};

void veth_name(uint32_t address, char name[VETH_NAME_BYTES])
{
	snprintf(name, VETH_NAME_BYTES, "v%08x", address);
}

/* What is noted at `from`, or -ENOENT. */
static int read_note(const char *from, char *to, size_t size)
{
	ssize_t length = host.links < 0 ? -1 : readlinkat(host.links, from, to, size - 1);

	if (length < 0)
		return host.links < 0 ? -ENOENT : -errno;
	to[length] = '\0';
	return 0;
}

/* The name comes last: whoever has that, has the address. */
int veth_claim(const char *key, uint32_t address)
{
	char name[VETH_NAME_BYTES];

	veth_name(address, name);
	if (symlinkat(name, host.links, key))
		return -errno;
	if (symlinkat(key, host.links, name))
		return errno == EEXIST ? -EADDRINUSE : -errno;
	return 0;
}

/* The name of the link that the object has. -ENOENT: none. */
static int find_link(const char *key, char name[VETH_NAME_BYTES])
{
	char holder[KEY_BYTES_MAX + 1];
	int err = read_note(key, name, VETH_NAME_BYTES);

	if (!err)
		err = read_note(name, holder, sizeof(holder));
	return err ? err : (strcmp(holder, key) ? -ENOENT : 0);
}

static int enter_router(struct veth_removal *removal)
{
	if (removal->netlink.fd >= 0)
		return 0;
	return setns(host.router, CLONE_NEWNET) ? -errno : netlink_open(&removal->netlink);
}

/* Many have gone before, with the namespace of their sandbox. */
static int unless_gone(int err)
{
	return err == -ENODEV ? 0 : err;
}

int veth_mark(struct veth_removal *removal, const char *key)
{
	struct netlink_link any = { .index = 0 };
	char name[VETH_NAME_BYTES];
	int err = find_link(key, name);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = enter_router(removal);
	if (err)
		return err;
	netlink_begin(&removal->netlink, NETLINK_SET_LINK, 0, &any, sizeof(any));
	netlink_put_text(&removal->netlink, LINK_NAME, name);
	netlink_put_number(&removal->netlink, LINK_GROUP, GROUP_MARKED);
	err = netlink_send(&removal->netlink);
	removal->marked += !err;
	return unless_gone(err);
}

int veth_remove_marked(struct veth_removal *removal)
{
	struct netlink_link any = { .index = 0 };

	if (!removal->marked)
		return 0;
	netlink_begin(&removal->netlink, NETLINK_DELETE_LINK, 0, &any, sizeof(any));
	netlink_put_number(&removal->netlink, LINK_GROUP, GROUP_MARKED);
	return unless_gone(netlink_send(&removal->netlink));
}

int veth_forget(const char *key)
{
	char name[VETH_NAME_BYTES];
	int err = find_link(key, name);

	if (!err && unlinkat(host.links, name, 0))
		return -errno;
	if (err && err != -ENOENT)
		return err;
	return host.links < 0 || !unlinkat(host.links, key, 0) || errno == ENOENT ? 0 : -errno;
}
