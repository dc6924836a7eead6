/* The two small roots: the launcher's own, and that of the pinned namespace. */
#ifndef LAUNCHER_HOST_ROOTS_H
#define LAUNCHER_HOST_ROOTS_H

/*
 * Finds or makes the mount namespace that outlives the launcher, pinned at run/layers.mnt in the
 * namespace that the launcher was started in. Returns its descriptor or a negative errno.
 */
int pinned_namespace(void);

/* Leaves the host's mounts for a root that holds what host.h lists. Returns 0 or a negative errno.
 */
int enter_own_root(void);

/*
 * Undoes what pinned_namespace() has made, at the end of a launcher that nothing has outlived: the
 * state root can be removed then.
 */
void remove_roots(void);

#endif
