/*
 * Layers: each one mounted once for each mark, in the pinned namespace, at /layers/<name>/mount,
 * where the name is the digest and the mark behind it, if there is one. Beside it `users` has an
 * entry for every object that uses it, so that the truth outlives the launcher. All of this is done
 * by workers: reading a file of a stalled store must stop nobody else.
 */
#ifndef LAUNCHER_LAYERS_H
#define LAUNCHER_LAYERS_H

#include "link.h"

enum {
	LAYER_ID_PREFIX = 7, /* `sha256:` */
	LAYER_DIGEST_BYTES = 64,
	LAYER_MARK_BYTES = 17, /* `.` and 16 hex digits */
	LAYER_NAME_BYTES_MAX = LAYER_DIGEST_BYTES + LAYER_MARK_BYTES,
	LAYER_PATH_BYTES = 192,
};

void layers_mount(struct origin origin, const struct dsec_msg_layer_mount *message);
void layers_unmount(struct origin origin, const struct dsec_msg_layer_unmount *message);
void layers_list(struct origin origin, const struct dsec_msg_layer_list *message);

/* The name of a layer's id, which begins with the digest in hex; false for what is no id. */
bool layer_name(struct dsec_bytes id, char name[LAYER_NAME_BYTES_MAX + 1]);

#endif
