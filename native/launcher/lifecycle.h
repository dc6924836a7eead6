/*
 * The life of an object: spawned or adopted, killed, ended, released. Each request waits in the
 * object and is answered by what happens to it.
 */
#ifndef LAUNCHER_LIFECYCLE_H
#define LAUNCHER_LIFECYCLE_H

#include "frame.h"
#include "object.h"

int lifecycle_init(void);
/* Part of it. */
int release_init(void);

void lifecycle_spawn(struct origin origin, const struct dsec_msg_spawn *spec);
void lifecycle_adopt(struct origin origin, const struct dsec_msg_adopt *message);
void lifecycle_kill(struct origin origin, const struct dsec_msg_kill *message);
void lifecycle_release(struct origin origin, const struct dsec_msg_release *message);

/* When a process started, which tells it from a later one of the same number. Returns 0 or -ESRCH.
 */
int lifecycle_start_ticks(pid_t pid, uint64_t *ticks);

/* Called when nothing runs in the object's life directory any more, maybe more than once. */
void lifecycle_check(struct object *object);
/* Removes all that bears the object's name (release.c), as `release` and a failed spawn ask for. */
void lifecycle_remove(struct object *object);
/* Goes on with it: the write of a setting that it waited for has ended. */
void lifecycle_written(struct object *object);
/* Called when that is done, or failed; the code of `failure` is NULL when it did not. */
void lifecycle_removed(struct object *object, const struct failure *failure);

#endif
