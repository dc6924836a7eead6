#include "netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	FLAG_REQUEST = 1,
	FLAG_ACKNOWLEDGE = 4,
	MESSAGE_ERROR = 2,
	/* An answer repeats the request when it failed. */
	ANSWER_BYTES_MAX = NETLINK_BYTES_MAX + 256,

	ADDRESS_ANY = 1,
	ADDRESS_LOCAL = 2,

	ROUTE_DESTINATION = 1,
	ROUTE_DEVICE = 4,
	ROUTE_GATEWAY = 5,
	ROUTE_SOURCE = 7,
	ROUTE_TABLE_MAIN = 254,
	ROUTE_PROTOCOL_STATIC = 4,
	ROUTE_SCOPE_UNIVERSE = 0,
	ROUTE_SCOPE_LINK = 253,
	ROUTE_UNICAST = 1,

	NEIGHBOUR_ADDRESS = 1,
	NEIGHBOUR_MAC = 2,
	NEIGHBOUR_PERMANENT = 0x80,

	ADDRESS_BITS = 32,
};

struct message_header {
	uint32_t length;
	uint16_t type;
	uint16_t flags;
	uint32_t sequence;
	uint32_t port;
};

struct attribute_header {
	uint16_t length;
	uint16_t type;
};

struct address_header {
	uint8_t family;
	uint8_t bits;
	uint8_t flags;
	uint8_t scope;
	uint32_t device;
};

struct route_header {
	uint8_t family;
	uint8_t to_bits;
	uint8_t from_bits;
	uint8_t service;
	uint8_t table;
	uint8_t protocol;
	uint8_t scope;
	uint8_t type;
	uint32_t flags;
};

struct neighbour_header {
	uint8_t family;
	uint8_t unused[3];
	int32_t device;
	uint16_t state;
	uint8_t flags;
	uint8_t type;
};

int netlink_open(struct netlink *netlink)
{
	*netlink = (struct netlink){ .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) };
	return netlink->fd < 0 ? -errno : 0;
}

void netlink_close(struct netlink *netlink)
{
	if (netlink->fd >= 0)
		close(netlink->fd);
	netlink->fd = -1;
}

/* Appends, filled up to a multiple of 4. */
static void append(struct netlink *netlink, const void *data, size_t length)
{
	size_t padded = (length + 3) & ~(size_t)3;

	if (netlink->is_full || padded > sizeof(netlink->bytes) - netlink->length) {
		netlink->is_full = true;
		return;
	}
	memset(netlink->bytes + netlink->length, 0, padded);
	if (length)
		memcpy(netlink->bytes + netlink->length, data, length);
	netlink->length += padded;
	memcpy(netlink->bytes + netlink->start,
	       &(uint32_t){ (uint32_t)(netlink->length - netlink->start) }, sizeof(uint32_t));
}

void netlink_begin(struct netlink *netlink, enum netlink_request request, uint16_t flags,
		   const void *header, size_t length)
{
	struct message_header message = {
		.type = (uint16_t)request,
		.flags = FLAG_REQUEST | FLAG_ACKNOWLEDGE | flags,
		.sequence = ++netlink->count,
	};

	netlink->start = netlink->length;
	append(netlink, &message, sizeof(message));
	append(netlink, header, length);
}

void netlink_put(struct netlink *netlink, uint16_t attribute, const void *value, size_t length)
{
	struct attribute_header header = { (uint16_t)(sizeof(header) + length), attribute };

	append(netlink, &header, sizeof(header));
	append(netlink, value, length);
}

void netlink_put_number(struct netlink *netlink, uint16_t attribute, uint32_t number)
{
	netlink_put(netlink, attribute, &number, sizeof(number));
}

void netlink_put_text(struct netlink *netlink, uint16_t attribute, const char *text)
{
	netlink_put(netlink, attribute, text, strlen(text) + 1);
}

size_t netlink_enter(struct netlink *netlink, uint16_t attribute, const void *header, size_t length)
{
	size_t entered = netlink->length;

	netlink_put(netlink, attribute, header, length);
	return entered;
}

void netlink_leave(struct netlink *netlink, size_t entered)
{
	uint16_t length = (uint16_t)(netlink->length - entered);

	if (!netlink->is_full)
		memcpy(netlink->bytes + entered, &length, sizeof(length));
}

static void put_address(struct netlink *netlink, uint16_t attribute, uint32_t address)
{
	netlink_put_number(netlink, attribute, htonl(address));
}

void netlink_address(struct netlink *netlink, int device, uint32_t address)
{
	struct address_header header = {
		.family = AF_INET,
		.bits = ADDRESS_BITS,
		.device = (uint32_t)device,
	};

	netlink_begin(netlink, NETLINK_NEW_ADDRESS, NETLINK_CREATE | NETLINK_REPLACE, &header,
		      sizeof(header));
	put_address(netlink, ADDRESS_LOCAL, address);
	put_address(netlink, ADDRESS_ANY, address);
}

void netlink_route(struct netlink *netlink, int device, const struct netlink_route *route)
{
	struct route_header header = {
		.family = AF_INET,
		.to_bits = route->to ? ADDRESS_BITS : 0,
		.table = ROUTE_TABLE_MAIN,
		.protocol = ROUTE_PROTOCOL_STATIC,
		.scope = route->gateway ? ROUTE_SCOPE_UNIVERSE : ROUTE_SCOPE_LINK,
		.type = ROUTE_UNICAST,
	};

	netlink_begin(netlink, NETLINK_NEW_ROUTE, NETLINK_CREATE | NETLINK_EXCLUSIVE, &header,
		      sizeof(header));
	netlink_put_number(netlink, ROUTE_DEVICE, (uint32_t)device);
	if (route->to)
		put_address(netlink, ROUTE_DESTINATION, route->to);
	if (route->gateway)
		put_address(netlink, ROUTE_GATEWAY, route->gateway);
	if (route->source)
		put_address(netlink, ROUTE_SOURCE, route->source);
}

void netlink_neighbour(struct netlink *netlink, int device, uint32_t address,
		       const uint8_t mac[MAC_BYTES])
{
	struct neighbour_header header = {
		.family = AF_INET,
		.device = device,
		.state = NEIGHBOUR_PERMANENT,
	};

	netlink_begin(netlink, NETLINK_NEW_NEIGHBOUR, NETLINK_CREATE | NETLINK_REPLACE, &header,
		      sizeof(header));
	put_address(netlink, NEIGHBOUR_ADDRESS, address);
	netlink_put(netlink, NEIGHBOUR_MAC, mac, MAC_BYTES);
}

/* The kernel answers before the request returns, so that nothing is waited for. */
static int take_answer(const struct netlink *netlink)
{
	_Alignas(4) uint8_t answer[ANSWER_BYTES_MAX];
	struct message_header header;
	int32_t err;
	ssize_t length = recv(netlink->fd, answer, sizeof(answer), MSG_DONTWAIT);

	if (length < (ssize_t)(sizeof(header) + sizeof(err)))
		return length < 0 ? -errno : -EBADMSG;
	memcpy(&header, answer, sizeof(header));
	memcpy(&err, answer + sizeof(header), sizeof(err));
	return header.type == MESSAGE_ERROR ? err : -EBADMSG;
}

int netlink_send(struct netlink *netlink)
{
	uint32_t count = netlink->count;
	size_t length = netlink->length;
	int err = netlink->is_full ? -ENOBUFS : 0;

	netlink->count = 0;
	netlink->length = 0;
	netlink->is_full = false;
	if (err)
		return err;
	if (send(netlink->fd, netlink->bytes, length, 0) != (ssize_t)length)
		return -errno;
	for (uint32_t i = 0; i < count; i++) {
		int answer = take_answer(netlink);

		if (!err)
			err = answer;
	}
	return err;
}

int netlink_device(const struct netlink *netlink, const char *name)
{
	struct ifreq request = { .ifr_ifindex = 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(netlink->fd, SIOCGIFINDEX, &request) ? -errno : request.ifr_ifindex;
}
