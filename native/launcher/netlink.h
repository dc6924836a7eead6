/*
 * Requests to the kernel about devices, addresses, routes and neighbours (rtnetlink), several in
 * one call. What musl's headers do not declare of it is here too; numbers are those of
 * include/uapi.
 */
#ifndef LAUNCHER_NETLINK_H
#define LAUNCHER_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NETLINK_BYTES_MAX = 1024,
	MAC_BYTES = 6,
};

enum netlink_request {
	NETLINK_NEW_LINK = 16,
	NETLINK_DELETE_LINK = 17,
	NETLINK_SET_LINK = 19,
	NETLINK_NEW_ADDRESS = 20,
	NETLINK_NEW_ROUTE = 24,
	NETLINK_NEW_NEIGHBOUR = 28,
};

enum netlink_link_attribute {
	LINK_ADDRESS = 1,
	LINK_NAME = 3,
	LINK_INFO = 18,
	LINK_GROUP = 27,
	LINK_NAMESPACE = 28,
	LINK_SEND_QUEUES = 31,
	LINK_RECEIVE_QUEUES = 32,
	/* In LINK_INFO. */
	LINK_INFO_KIND = 1,
	LINK_INFO_DATA = 2,
	/* In LINK_INFO_DATA of kind `veth`: the header of the other end, and its attributes. */
	LINK_VETH_PEER = 1,
};

struct netlink_link {
	uint8_t family;
	uint8_t unused;
	uint16_t type;
	int32_t index;
	uint32_t flags;
	uint32_t changed;
};

/* Requests that are sent together. */
struct netlink {
	int fd;
	uint32_t count;
	size_t length;
	size_t start; /* of the last request */
	bool is_full;
	_Alignas(4) uint8_t bytes[NETLINK_BYTES_MAX];
};

/* In the network namespace that the process is in now. Returns 0 or a negative errno. */
int netlink_open(struct netlink *netlink);
void netlink_close(struct netlink *netlink);

/* Closed when the name goes out of scope; -1 is no descriptor. */
#define AUTO_NETLINK __attribute__((cleanup(netlink_close))) struct netlink

/* Begins a request; what is put next belongs to it. `flags` are NETLINK_CREATE and others. */
void netlink_begin(struct netlink *netlink, enum netlink_request request, uint16_t flags,
		   const void *header, size_t length);
void netlink_put(struct netlink *netlink, uint16_t attribute, const void *value, size_t length);
void netlink_put_number(struct netlink *netlink, uint16_t attribute, uint32_t number);
void netlink_put_text(struct netlink *netlink, uint16_t attribute, const char *text);
/* What is put until netlink_leave() lies in this attribute. Returns what that wants to know. */
size_t netlink_enter(struct netlink *netlink, uint16_t attribute, const void *header,
		     size_t length);
void netlink_leave(struct netlink *netlink, size_t entered);

enum {
	NETLINK_REPLACE = 0x100,
	NETLINK_EXCLUSIVE = 0x200,
	NETLINK_CREATE = 0x400,
};

/* IPv4 addresses are numbers, whose highest byte is the first part of the dotted form. */
void netlink_address(struct netlink *netlink, int device, uint32_t address);

struct netlink_route {
	uint32_t to;	  /* a single address; 0: everything */
	uint32_t gateway; /* 0: it is a neighbour */
	uint32_t source;  /* 0: any of the device's */
};

void netlink_route(struct netlink *netlink, int device, const struct netlink_route *route);
/* For ever. */
void netlink_neighbour(struct netlink *netlink, int device, uint32_t address,
		       const uint8_t mac[MAC_BYTES]);

/* Carries all of them out, in order. Returns 0 or the negative errno of the first that failed. */
int netlink_send(struct netlink *netlink);

/* The number of a device in the namespace of the requests, or a negative errno. */
int netlink_device(const struct netlink *netlink, const char *name);

#endif
