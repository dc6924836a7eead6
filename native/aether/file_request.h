/*
 * Requests about files and ports. Each is done by a worker, a forked child with the session's own
 * user and rights, so that nothing can be reached through aether that the user could not reach. The
 * worker's bytes flow through pipes and the link, or, with a raw token, straight through a
 * connection of their own that the worker alone has. A request ends with its link; the host repeats
 * it.
 */
#ifndef AETHER_FILE_REQUEST_H
#define AETHER_FILE_REQUEST_H

#include "frame.h"

/* Handles any request of the kind; see dispatch.h. */
int file_request(const struct dsec_frame *frame);

/* Whether a request waits for a raw stream with this token. */
bool file_request_awaits(const uint8_t token[DSEC_NONCE_BYTES]);
/* Hands it the connection. */
void file_request_raw(const uint8_t token[DSEC_NONCE_BYTES], int fd);

#endif
