/*
 * Links: the framed connections of edges. Frames are read whole into one fixed buffer and handed
 * on; answers wait in another. An edge that does not read its answers loses its connection, never
 * the launcher's memory.
 */
#ifndef LAUNCHER_LINK_H
#define LAUNCHER_LINK_H

#include "failure.h"
#include "frame.h"

/* Where a request came from. The connection may be gone by the time of the answer. */
struct origin {
	uint64_t connection;
	uint32_t stream;
};

/* Begins to accept. `request` is called for each frame after a hello; its views last as long as the
 * call. */
int link_init(void (*request)(struct origin origin, const struct dsec_frame *frame));

/* Whether anybody is connected. */
bool link_is_used(void);

void link_answer(struct origin to, uint8_t code, const void *message);
void link_done(struct origin to);
void link_fail(struct origin to, const struct failure *failure);
/* To every connection that has said hello. */
void link_tell_all(uint8_t code, const void *message);

#endif
