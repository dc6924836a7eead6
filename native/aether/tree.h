/* The processes below the calling one, which must be their subreaper. For use after a fork. */
#ifndef AETHER_TREE_H
#define AETHER_TREE_H

#include <sys/types.h>

/*
 * Sends a signal to every process of the tree, as it is found by a walk from the top; `spared` and
 * what is above stay untouched. Returns how many there were (without those that ended and wait to
 * be reaped), or a negative errno.
 */
int tree_signal(int signal, pid_t spared);

#endif
