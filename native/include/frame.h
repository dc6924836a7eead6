/*
 * Frames: a header of 24 bytes and a payload, see packages/protocol/src/frame.ts. Nothing here
 * allocates or does I/O. Every input is taken as hostile.
 */
#ifndef DSEC_FRAME_H
#define DSEC_FRAME_H

#include "dsec_protocol.gen.h"

enum dsec_side {
	DSEC_FROM_CLIENT = 1,
	DSEC_FROM_SERVER = 2,
	DSEC_FROM_BOTH = DSEC_FROM_CLIENT | DSEC_FROM_SERVER,
};

enum dsec_scope {
	DSEC_SCOPE_CONNECTION,
	DSEC_SCOPE_STREAM,
	DSEC_SCOPE_ANY,
};

struct dsec_frame_type {
	const char *name;
	uint8_t code;
	uint8_t from;
	uint8_t scope;
	uint32_t payload_bytes_max;
	const struct dsec_message *message; /* NULL for a data frame */
};

struct dsec_protocol {
	const char *name;
	const struct dsec_frame_type *types;
	size_t type_count;
};

struct dsec_frame {
	const struct dsec_frame_type *type;
	uint32_t stream;
	uint32_t epoch;
	uint64_t offset;
	bool end;
	struct dsec_bytes payload;
};

/* The type with this code, or NULL. */
const struct dsec_frame_type *dsec_frame_type(const struct dsec_protocol *protocol, uint8_t code);

/*
 * Reads a header that came from the side `from`. Sets everything but `payload.data`, which is
 * NULL. Returns 0, or -EPROTO when the header breaks a rule of its type.
 */
int dsec_frame_decode_header(const struct dsec_protocol *protocol, enum dsec_side from,
			     const uint8_t header[DSEC_FRAME_HEADER_BYTES],
			     struct dsec_frame *frame);

/*
 * Reads the frame at the start of `input`, which may hold part of one or more than one. Returns
 * the bytes that it takes, 0 when more are needed, or -EPROTO. The payload is a view of `input`;
 * that of a control frame has been checked against its message.
 */
int dsec_frame_decode(const struct dsec_protocol *protocol, enum dsec_side from,
		      struct dsec_bytes input, struct dsec_frame *frame);

/* Writes the header of `frame`, for a payload that is sent after it. Returns 0 or -EINVAL. */
int dsec_frame_encode_header(const struct dsec_frame *frame,
			     uint8_t header[DSEC_FRAME_HEADER_BYTES]);

/*
 * Writes a control frame whose message is encoded from `value`; `frame->payload` is set to it.
 * Returns the bytes written, -EMSGSIZE or -EINVAL.
 */
int dsec_frame_encode(struct dsec_frame *frame, const void *value, uint8_t *output,
		      size_t capacity);

#endif
