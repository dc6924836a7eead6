/* Descriptors that a forked child of aether keeps. */
#ifndef AETHER_DESCRIPTORS_H
#define AETHER_DESCRIPTORS_H

#include <stddef.h>

/*
 * Closes every descriptor but 0, 1, 2 and the kept ones, of which -1 are passed over. Sorts the
 * array. Returns 0 or a negative errno.
 */
int descriptors_keep(int *kept, size_t count);

#endif
