/*
 * Outlets: bytes on their way to the host, in a ring of one window, numbered from the first byte
 * on.
 *
 *     base <= sent <= head, sent <= credit, head - base <= window
 *
 * Below `base` the host has acknowledged, below `sent` it was sent on the present link, below
 * `head` it was taken from the command. A file's or port's outlet keeps nothing, as such a request
 * ends with its link: there `base` follows `sent`.
 */
#ifndef AETHER_OUTLET_H
#define AETHER_OUTLET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct outlet {
	uint8_t *ring; /* mapped when the first byte comes */
	uint32_t window;
	bool keeps;
	bool ended;	/* nothing comes after head */
	bool end_sent;	/* on the present link */
	uint64_t start; /* the offset that lies at ring[0], give or take windows */
	uint64_t base;
	uint64_t sent;
	uint64_t head;
	uint64_t credit;
};

void outlet_init(struct outlet *outlet, uint32_t window, bool keeps);
void outlet_free(struct outlet *outlet);

/* The free part of the ring, at most two pieces. Returns how many; 0 when full or out of memory. */
int outlet_space(struct outlet *outlet, struct iovec pieces[2]);
/* That many bytes were put into the space. */
void outlet_add(struct outlet *outlet, uint64_t bytes);
/* The pieces of the ring that hold the bytes from `offset` on. */
int outlet_pieces(const struct outlet *outlet, uint64_t offset, uint32_t length,
		  struct iovec pieces[2]);

/* Bytes that may be sent now. */
uint32_t outlet_sendable(const struct outlet *outlet);
/* Whether a data frame, be it an empty last one, can go. */
bool outlet_has_frame(const struct outlet *outlet);
/* Whether everything was sent, and its end. */
bool outlet_is_done(const struct outlet *outlet);

/* Returns -EPROTO for an offset that was never sent. */
int outlet_ack(struct outlet *outlet, uint64_t offset);
void outlet_grant(struct outlet *outlet, uint64_t credit);
/* Bytes up to `offset` are on their way. */
void outlet_sent(struct outlet *outlet, uint64_t offset, bool end);
/* Goes on from `offset` on a new link. Returns -ERANGE for bytes that are gone or never were. */
int outlet_resume(struct outlet *outlet, uint64_t offset);

#endif
