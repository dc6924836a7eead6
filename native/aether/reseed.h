/* What a restored copy is told, so that it does not repeat what its siblings do. */
#ifndef AETHER_RESEED_H
#define AETHER_RESEED_H

#include "frame.h"

/* Answers `reseeded`. Returns 0, or -ECONNABORTED after the `error` that ends the connection. */
int reseed(const struct dsec_frame *frame);

#endif
