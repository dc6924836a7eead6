#ifndef LAUNCHER_CEILING_H
#define LAUNCHER_CEILING_H

/*
 * Bounds the processes of all sandboxes together, whatever their own limits add up to: a host in
 * which they fork without end can still fork. Set anew with each edge that connects, as the host's
 * own limits may have been raised. Returns 0, also where the kernel counts no processes, or a
 * negative errno.
 */
int ceiling_set(void);

#endif
