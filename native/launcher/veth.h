/*
 * Links of sandboxes: a pair of devices each, `eth0` inside and one named after the address in the
 * router. Before it is made it is noted below run/links, by the object's key and by its own name,
 * so that no two objects ever have an address and each link is found again by whose it is.
 */
#ifndef LAUNCHER_VETH_H
#define LAUNCHER_VETH_H

#include <stdint.h>

#include "netlink.h"

enum {
	/* `v`, the address in hex, and NUL. */
	VETH_NAME_BYTES = 10,
};

void veth_name(uint32_t address, char name[VETH_NAME_BYTES]);

/* Notes that the object has the address. -EADDRINUSE: another one has. */
int veth_claim(const char *key, uint32_t address);

/*
 * Removal, in a process that stays in the router's namespace from then on. Devices are marked, so
 * that any number of them goes in one step, as the kernel takes as long for one as for many.
 */
struct veth_removal {
	struct netlink netlink; /* with descriptor -1 until it is needed */
	int marked;
};

int veth_mark(struct veth_removal *removal, const char *key);
int veth_remove_marked(struct veth_removal *removal);
/* Once its link is gone. */
int veth_forget(const char *key);

#endif
