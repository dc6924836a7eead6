/*
 * Guests: connections that have not said what they are. The first bytes tell: the token of a raw
 * stream that is waited for, or a hello. Few at a time, each with a deadline.
 */
#ifndef AETHER_GUESTS_H
#define AETHER_GUESTS_H

/* Begins to accept on the inherited listening socket. Returns 0 or a negative errno. */
int guests_init(int listener);

#endif
