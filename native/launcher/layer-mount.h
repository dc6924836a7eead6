/* What a worker does to mount or unmount one layer. */
#ifndef LAUNCHER_LAYER_MOUNT_H
#define LAUNCHER_LAYER_MOUNT_H

#include "frame.h"

/* Both return 0 or a negative errno, with the step that failed. */
int layer_mount(const struct dsec_msg_layer_mount *message, const char *digest, const char **step);
int layer_unmount(const char *digest, const char **step);

/* In the pinned namespace. */
bool layer_is_mounted(const char *digest);

#endif
