/* The token by which a request's raw stream is known; see aether-frames.ts. */
#ifndef AETHER_RAW_TOKEN_H
#define AETHER_RAW_TOKEN_H

#include "frame.h"

/* The token of a request's message, DSEC_NONCE_BYTES in `payload`; NULL without. */
const uint8_t *raw_token_of(uint8_t code, struct dsec_bytes payload);
/* Takes as long whether or not they are the same. */
bool raw_token_same(const uint8_t *one, const uint8_t *other);

#endif
