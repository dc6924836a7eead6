/* Streams: the requests that the present link has open, found by the number that the host gave
 * them. */
#ifndef AETHER_STREAM_H
#define AETHER_STREAM_H

#include "frame.h"

struct stream;

struct stream_kind {
	/*
	 * Puts at most one frame on the link. Returns true when there is more to say; asks again
	 * with link_ready() otherwise.
	 */
	bool (*produce)(struct stream *stream);
	/* A frame of the host for this stream. Returns 0 or -EPROTO. */
	int (*consume)(struct stream *stream, const struct dsec_frame *frame);
	/* The link is gone, or the host gave the request up. The stream is closed already. */
	void (*detached)(struct stream *stream);
	/* Waits for its end and carries nothing until then. */
	bool is_silent;
};

struct stream {
	const struct stream_kind *kind;
	uint32_t number; /* 0: not open */
	struct stream *next_same_slot;
	struct stream *next_ready;
	bool ready;
};

struct stream *stream_find(uint32_t number);
/* Returns 0, or -EPROTO when the number is in use or too many are open. */
int stream_open(struct stream *stream, const struct stream_kind *kind, uint32_t number);
void stream_close(struct stream *stream);
/* Closes all, telling each: the link is gone. */
void stream_detach_all(void);
/* Whether one more may be opened under this number. */
bool stream_may_open(uint32_t number);
/* Those that may have something to carry. */
uint32_t stream_busy_count(void);

/* Takes the next stream that has something to say, NULL when there is none. */
struct stream *stream_next_ready(void);
void stream_mark_ready(struct stream *stream);

#endif
