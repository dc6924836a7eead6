#ifndef LAUNCHER_CLAIM_H
#define LAUNCHER_CLAIM_H

#include <stdbool.h>

/*
 * Marks the edge's cgroup with the state root that it belongs to. Returns -EADDRINUSE when the edge
 * id is in use by another one: its sandboxes would be taken for what is left of our own.
 */
int claim_edge_id(void);

/* Whether anything runs in the edge's own cgroup, or below it. */
bool claim_is_populated(void);

#endif
