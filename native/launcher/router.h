/*
 * The router: a network namespace of the edge's, pinned at run/router.net, in which the host ends
 * of all sandboxes' links are and the proxies of the node listen. A packet of a sandbox finds no
 * way out of it: it has no other devices, forwards nothing, and drops what comes from an address
 * that is not behind the device that it came by.
 */
#ifndef LAUNCHER_ROUTER_H
#define LAUNCHER_ROUTER_H

#include <stdint.h>

/* Below run/: the namespace, and who has which link. */
#define ROUTER_PIN   "router.net"
#define ROUTER_LINKS "links"

/* Takes up what an earlier launcher has made. Returns 0 or a negative errno. */
int router_find(void);

/* Makes it unless it is there, and gives it the address. Returns 0 or a negative errno. */
int router_need(uint32_t gateway);

#endif
