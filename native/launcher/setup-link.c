/*
 * The link of a sandbox to the router: its one address, and the gateway as its one neighbour. Both
 * ends know the other's MAC from the start, so that nobody ever asks for one.
 */
#include <net/if.h>
#include <sched.h>
#include <string.h>

#include "crash.h"
#include "kernel.h"
#include "netlink.h"
#include "setup.h"
#include "veth.h"

#define INSIDE "eth0"

/* Of the host end of every link. */
static const uint8_t gateway_mac[MAC_BYTES] = { 0x02, 0xd5, 0xec, 0x00, 0x00, 0x01 };

static void own_mac(uint32_t address, uint8_t mac[MAC_BYTES])
{
	mac[0] = 0x02;
	mac[1] = 0xd5;
	for (int i = 0; i < 4; i++)
		mac[2 + i] = (uint8_t)(address >> (24 - 8 * i));
}

/* Requests to the router's namespace, from where this process comes back. */
static int open_router(struct netlink *router)
{
	AUTO_CLOSE own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int err;

	if (own < 0 || setns(host.router, CLONE_NEWNET))
		return -errno;
	err = netlink_open(router);
	return setns(own, CLONE_NEWNET) ? -errno : err;
}

static void put_end(struct netlink *netlink, const char *name, const uint8_t mac[MAC_BYTES])
{
	netlink_put_text(netlink, LINK_NAME, name);
	netlink_put(netlink, LINK_ADDRESS, mac, MAC_BYTES);
	/* Not one for each processor of the host. */
	netlink_put_number(netlink, LINK_SEND_QUEUES, 1);
	netlink_put_number(netlink, LINK_RECEIVE_QUEUES, 1);
}

static int make_pair(struct netlink *inside, const char *name, const uint8_t mac[MAC_BYTES])
{
	struct netlink_link end = {
		.flags = IFF_UP | IFF_NOARP,
		.changed = IFF_UP | IFF_NOARP,
	};
	/* The kernel takes it up only once it has its other end. */
	struct netlink_link down = {
		.flags = IFF_NOARP,
		.changed = IFF_NOARP,
	};
	size_t info, data, peer;

	netlink_begin(inside, NETLINK_NEW_LINK, NETLINK_CREATE | NETLINK_EXCLUSIVE, &end,
		      sizeof(end));
	put_end(inside, INSIDE, mac);
	info = netlink_enter(inside, LINK_INFO, NULL, 0);
	netlink_put_text(inside, LINK_INFO_KIND, "veth");
	data = netlink_enter(inside, LINK_INFO_DATA, NULL, 0);
	peer = netlink_enter(inside, LINK_VETH_PEER, &down, sizeof(down));
	put_end(inside, name, gateway_mac);
	netlink_put_number(inside, LINK_NAMESPACE, (uint32_t)host.router);
	netlink_leave(inside, peer);
	netlink_leave(inside, data);
	netlink_leave(inside, info);
	return netlink_send(inside);
}

static int configure_inside(struct netlink *inside, const struct dsec_msg_link *link)
{
	struct netlink_route to_gateway = { .to = link->gateway };
	struct netlink_route rest = { .gateway = link->gateway };
	int device = netlink_device(inside, INSIDE);

	if (device < 0)
		return device;
	netlink_address(inside, device, link->address);
	netlink_neighbour(inside, device, link->gateway, gateway_mac);
	netlink_route(inside, device, &to_gateway);
	netlink_route(inside, device, &rest);
	return netlink_send(inside);
}

static int configure_router(struct netlink *router, const char *name,
			    const struct dsec_msg_link *link, const uint8_t mac[MAC_BYTES])
{
	struct netlink_route to_sandbox = { .to = link->address, .source = link->gateway };
	struct netlink_link up = { .flags = IFF_UP, .changed = IFF_UP };
	int device = netlink_device(router, name);

	if (device < 0)
		return device;
	up.index = device;
	netlink_begin(router, NETLINK_SET_LINK, 0, &up, sizeof(up));
	netlink_neighbour(router, device, link->address, mac);
	netlink_route(router, device, &to_sandbox);
	return netlink_send(router);
}

/* On this device alone: programs may rely on the loopback's own address. */
static int turn_off_ipv6(struct setup *setup)
{
	int err = setup_sysctl(setup, "sys/net/ipv6/conf/default/disable_ipv6", "1", 1);

	return err == -ENOENT ? 0 : err;
}

int setup_link(struct setup *setup)
{
	const struct dsec_msg_link *link = &setup->spec->link;
	AUTO_NETLINK inside = { .fd = -1 };
	AUTO_NETLINK router = { .fd = -1 };
	char name[VETH_NAME_BYTES];
	uint8_t mac[MAC_BYTES];
	int err;

	if (!(setup->spec->present & DSEC_SPAWN_HAS_LINK))
		return 0;
	veth_name(link->address, name);
	own_mac(link->address, mac);
	err = turn_off_ipv6(setup);
	if (!err)
		err = netlink_open(&inside);
	if (!err)
		err = open_router(&router);
	if (!err)
		err = make_pair(&inside, name, mac);
	crash_point(CRASH_LINK_MADE);
	if (!err)
		err = configure_inside(&inside, link);
	if (!err)
		err = configure_router(&router, name, link, mac);
	crash_point(CRASH_LINK_READY);
	return err;
}
