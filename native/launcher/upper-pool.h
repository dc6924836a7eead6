/*
 * Uppers in images that are made ahead: mounted in the pinned namespace and empty, of the sizes
 * that were asked for last. What is left of them by a launcher that died goes at the next start.
 */
#ifndef LAUNCHER_UPPER_POOL_H
#define LAUNCHER_UPPER_POOL_H

#include "object.h"

/* Gives the object an upper of this size, if one is ready, and makes more in the background. */
void upper_pool_take(struct object *object, const struct dsec_msg_upper *upper);
/* In the reaper: removes the one that an object was given, if it does not bear its key yet. */
int upper_pool_drop(const char *ready);
/* Removes all of them, whoever made them: at the start and at a clean exit. */
void upper_pool_sweep(void);

#endif
