/*
 * Guests: connections that have not said what they are. The first bytes tell: a hello, or the token
 * of a raw stream, which may come before its request does. Few at a time, each with a deadline.
 */
#ifndef AETHER_GUESTS_H
#define AETHER_GUESTS_H

#include <stdint.h>

/* Begins to accept on the inherited listening socket. Returns 0 or a negative errno. */
int guests_init(int listener);

/* The connection that has sent this token of DSEC_NONCE_BYTES already, or -1. */
int guests_take(const uint8_t *token);

#endif
