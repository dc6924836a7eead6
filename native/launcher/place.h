/* Mounts held by a descriptor until they are put somewhere. */
#ifndef LAUNCHER_PLACE_H
#define LAUNCHER_PLACE_H

struct mount_option {
	const char *key;
	const char *value; /* NULL: a flag */
};

/* A new file system of this type, detached. Returns a descriptor or a negative errno. */
int place_new(const char *type, const struct mount_option *options, int count,
	      unsigned int attributes);

/*
 * A detached copy of what `path` names, of this mount alone. `attributes` are set on it;
 * `user_namespace` shifts its ids, -1: not. Returns a descriptor or a negative errno.
 */
int place_copy(int directory, const char *path, unsigned int attributes, int user_namespace);

#endif
