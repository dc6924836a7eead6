/* The processes below one that is their subreaper. Nothing here allocates. */
#ifndef AETHER_TREE_H
#define AETHER_TREE_H

#include <sys/types.h>

/*
 * Sends a signal to every process below `top`, as it is found by a walk from there; `spared` and
 * what is above stay untouched. Returns how many there were (without those that ended and wait to
 * be reaped), or a negative errno.
 */
int tree_signal(pid_t top, int signal, pid_t spared);

#endif
