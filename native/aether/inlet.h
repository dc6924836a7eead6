/*
 * Inlets: bytes of the host on their way into a pipe or terminal. At most one window waits for the
 * reader; the credit that the host has follows what was written.
 */
#ifndef AETHER_INLET_H
#define AETHER_INLET_H

#include "frame.h"
#include "loop.h"

enum {
	INLET_WINDOW_BYTES = DSEC_WINDOW_BYTES_MIN,
};

struct stream;

struct inlet {
	struct watch watch; /* of the write end; -1 when nobody reads any more */
	struct stream *stream;
	bool is_terminal;
	bool ended;	  /* the host has sent its last byte */
	uint8_t *waiting; /* one window, mapped while something waits */
	uint64_t written; /* offsets, from the first byte on */
	uint64_t taken;
	uint64_t credit; /* what the host was told */
	uint64_t acked;	 /* likewise */
	/* The end was passed on, or the reader is gone. May be NULL. */
	void (*closed)(struct inlet *inlet);
};

/* The descriptor must not block; -1: what comes is dropped. */
void inlet_open(struct inlet *inlet, int fd, bool is_terminal);
/* Takes a data frame. Returns -EPROTO when it is not the next one or more than was granted. */
int inlet_take(struct inlet *inlet, const struct dsec_frame *frame);
/* Puts an acknowledgement or new credit on the link, if one is due. Returns whether it did. */
bool inlet_answer(struct inlet *inlet);
/* Counts from the first byte again, for another request on the same descriptor. */
void inlet_restart(struct inlet *inlet, struct stream *stream);
void inlet_close(struct inlet *inlet);

#endif
