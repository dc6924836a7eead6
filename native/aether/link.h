/*
 * The link: the one framed connection to the host. It reads whole frames into one fixed buffer and
 * hands them on; it writes control frames from another, and longer data frames straight from the
 * rings that hold them. Nothing grows: reading stops while much waits to be written, and streams
 * are asked for frames only while there is room for the longest one. What is put is written when
 * the round of events is over; a link that failed is torn down then too, so that no handler loses
 * its object underneath it.
 */
#ifndef AETHER_LINK_H
#define AETHER_LINK_H

#include "frame.h"

struct outlet;
struct stream;

/* Takes over a connection whose hello was accepted; an earlier link is closed. */
void link_adopt(int fd, uint32_t epoch);

/* Puts a control frame whose offset is the next sequence number. */
void link_put(uint8_t code, uint32_t stream, const void *message);
/* The same with a meaningful offset. */
void link_put_at(uint8_t code, uint32_t stream, uint64_t offset, const void *message);
/* The same for a payload that is encoded already. Returns -EPROTO when it is not a valid one. */
int link_put_payload(uint8_t code, uint32_t stream, struct dsec_bytes payload);
/* Ends a failed request. */
void link_put_error(uint32_t stream, const char *code, int errno_value, const char *message);
/* Puts the next data frame of the outlet; false when it has to wait for another one. */
bool link_put_data(uint8_t code, uint32_t stream, struct outlet *outlet);
/* The outlet is about to go: what a data frame still needs of it is copied. */
void link_forget_outlet(const struct outlet *outlet);

/* Writes what was put. Called when a round of events is over. */
void link_settle(void);

#endif
