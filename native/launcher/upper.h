/*
 * The writable layer of a sandbox, by drivers: a file system or subvolume of its own, limited in
 * bytes and inodes, that goes as a whole however deep or wide what it holds is. What a driver keeps
 * beside its mount is called by the object's key, below uppers/ in the state root.
 */
#ifndef LAUNCHER_UPPER_H
#define LAUNCHER_UPPER_H

#include "setup.h"

/* In the child that sets a sandbox up. Returns a mount that holds `upper` and `work` and is not
 * attached anywhere, or a negative errno. */
int upper_make(struct setup *setup);

/* In the reaper: removes what any driver left behind besides the mount, known or not. */
int upper_remove(const char *key);

/* For drivers. */

/* The directory of uppers, which nobody but root can have tampered with; or a negative errno. */
int upper_directory(void);
/* Makes the two directories that an overlay wants. */
int upper_furnish(const struct setup *setup, int directory);

/* What overlayfs makes, and the upper's own directories. */
enum {
	UPPER_OWN_INODES = 5,
};

struct image_size {
	uint64_t bytes;
	uint64_t inodes;
};

struct image_size upper_image_size(const struct dsec_msg_upper *upper);
/* A mount of a new image that is called by its owner; comes back to the mount namespace `home`. */
int upper_image_mount(int directory, const struct image_size *size, const char *owner, int home);
int upper_image_make(struct setup *setup);
int upper_image_remove(int directory, const char *key);
int upper_btrfs_make(struct setup *setup);
int upper_btrfs_remove(int directory, const char *key);

#endif
