/*
 * Cgroups of objects. The first one is the life directory, in version 2 and named by the object's
 * key: it kills, freezes, and tells when nothing is left. The others hold limits; those of version
 * 1 may be pooled, as making one costs more than a sandbox and removing one leaves its memory
 * behind.
 */
#ifndef LAUNCHER_CGROUP_H
#define LAUNCHER_CGROUP_H

#include "object.h"

/*
 * Notes the cgroups of the list in the object. 0, or -EINVAL: a hierarchy that is not here, a life
 * directory or a directory of its own that is not named by the key.
 */
int cgroup_note(struct object *object, struct dsec_list cgroups);
/* Makes the life directory with its settings, and watches it. 0 or a negative errno. */
int cgroup_make(struct object *object, struct dsec_list cgroups, char step[STEP_BYTES_MAX]);
int cgroup_write(const struct place *place, struct dsec_list settings, char step[STEP_BYTES_MAX]);
/* True for a name that the edge may write. */
bool cgroup_is_setting(struct dsec_bytes name);
/* In the child, as both may take long: makes the others where missing and writes their settings;
 * moves a process there. */
int cgroup_furnish(const struct object *object, struct dsec_list cgroups,
		   char step[STEP_BYTES_MAX]);
int cgroup_join(const struct object *object, const char *pid, char step[STEP_BYTES_MAX]);
/* A descriptor of the life directory, or a negative errno. */
int cgroup_open_life(const char *key);

int cgroup_watch_init(void (*changed)(struct object *object));
int cgroup_watch(struct object *object);
void cgroup_unwatch(struct object *object);

/* 1: something runs in it. 0: nothing does. -ENOENT: there is no such cgroup. */
int cgroup_populated(const char *key);
/*
 * Whether the object is frozen is the edge's to say: notes what settings of its life directory ask,
 * or what an object was told that is found again, and makes it so where somebody else changed it.
 */
void cgroup_note_frozen(struct object *object, struct dsec_list settings);
void cgroup_find_frozen(struct object *object);
void cgroup_keep_frozen(const struct object *object);
int cgroup_kill(const char *key);
/* Removes every cgroup that is named by the key, the life directory last. */
int cgroup_remove(const char *key);
/* How often the kernel killed something for memory in the object's cgroups. */
uint64_t cgroup_oom_kills(const struct object *object);

#endif
