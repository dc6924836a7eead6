#ifndef LAUNCHER_CEILING_H
#define LAUNCHER_CEILING_H

/*
 * Bounds the processes of all sandboxes together, whatever their own limits add up to: a host in
 * which they fork without end can still fork. Set anew with each edge that connects, as the host's
 * own limits may have been raised. Returns 0, also where the kernel counts no processes, or a
 * negative errno.
 */
int ceiling_set(void);

/*
 * In version 1 a process is counted where it is moved to, but not refused: that there are more
 * than the ceiling allows has to be looked up then. Returns 0 or -EAGAIN, as a fork would.
 */
int ceiling_check(void);

#endif
