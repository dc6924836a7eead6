/*
 * Layers: each one mounted once for the node, in the pinned namespace, at /layers/<digest>/mount.
 * Beside it `users` has an entry for every object that uses it, so that the truth outlives the
 * launcher. All of this is done by workers: reading a file of a stalled store must stop nobody
 * else.
 */
#ifndef LAUNCHER_LAYERS_H
#define LAUNCHER_LAYERS_H

#include "link.h"

enum {
	LAYER_ID_PREFIX = 7, /* `sha256:` */
	LAYER_NAME_BYTES = 64,
};

void layers_mount(struct origin origin, const struct dsec_msg_layer_mount *message);
void layers_unmount(struct origin origin, const struct dsec_msg_layer_unmount *message);
void layers_list(struct origin origin, const struct dsec_msg_layer_list *message);

/* The digest of a layer's id in hex (64 bytes, no NUL), or NULL for what is not an id. */
const char *layer_digest(struct dsec_bytes id);

#endif
