/*
 * The end of a launcher that nobody needs: no edge has been connected for a while, and nothing of
 * its edge is left on the host. It goes as at SIGTERM; an edge that comes later starts another.
 */
#ifndef LAUNCHER_IDLE_H
#define LAUNCHER_IDLE_H

#include <stdbool.h>

/* Before the first edge has come. Returns 0 or a negative errno. */
int idle_init(void);

/* The last edge has gone. */
void idle_begin(void);

/* Nothing runs that this launcher or an earlier one has made, and nothing waits to be released. */
bool idle_is_empty(void);

#endif
