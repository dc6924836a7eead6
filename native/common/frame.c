#include "frame.h"

#include <errno.h>

#include "message_bytes.h"

enum {
	AT_LENGTH = 0,
	AT_VERSION = 4,
	AT_TYPE = 5,
	AT_FLAGS = 6,
	AT_STREAM = 8,
	AT_EPOCH = 12,
	AT_OFFSET = 16,
};

#define OFFSET_MAX ((UINT64_C(1) << 53) - 1)

const struct dsec_frame_type *dsec_frame_type(const struct dsec_protocol *protocol, uint8_t code)
{
	for (size_t i = 0; i < protocol->type_count; i++) {
		if (protocol->types[i].code == code)
			return &protocol->types[i];
	}
	return NULL;
}

/* The rules that hold for both directions of travel. */
static bool is_well_formed(const struct dsec_frame *frame)
{
	const struct dsec_frame_type *type = frame->type;
	bool is_data = !type->message;

	if (frame->payload.length > type->payload_bytes_max || frame->offset > OFFSET_MAX)
		return false;
	if (frame->end && !is_data)
		return false;
	/* An empty frame that ends nothing would only cost its receiver time. */
	if (is_data && frame->payload.length == 0 && !frame->end)
		return false;
	if (type->scope == DSEC_SCOPE_ANY)
		return true;
	return (frame->stream == 0) == (type->scope == DSEC_SCOPE_CONNECTION);
}

int dsec_frame_decode_header(const struct dsec_protocol *protocol, enum dsec_side from,
			     const uint8_t header[DSEC_FRAME_HEADER_BYTES],
			     struct dsec_frame *frame)
{
	uint64_t flags = dsec_get_le(header + AT_FLAGS, 2);

	if (header[AT_VERSION] != DSEC_FRAME_VERSION || (flags & ~(uint64_t)DSEC_FRAME_FLAG_END))
		return -EPROTO;
	*frame = (struct dsec_frame){
		.type = dsec_frame_type(protocol, header[AT_TYPE]),
		.stream = (uint32_t)dsec_get_le(header + AT_STREAM, 4),
		.epoch = (uint32_t)dsec_get_le(header + AT_EPOCH, 4),
		.offset = dsec_get_le(header + AT_OFFSET, 8),
		.end = flags & DSEC_FRAME_FLAG_END,
		.payload.length = (uint32_t)dsec_get_le(header + AT_LENGTH, 4),
	};
	if (!frame->type || !(frame->type->from & from) || !is_well_formed(frame))
		return -EPROTO;
	return 0;
}

int dsec_frame_decode(const struct dsec_protocol *protocol, enum dsec_side from,
		      struct dsec_bytes input, struct dsec_frame *frame)
{
	int err;

	if (input.length < DSEC_FRAME_HEADER_BYTES)
		return 0;
	err = dsec_frame_decode_header(protocol, from, input.data, frame);
	if (err)
		return err;
	if (input.length - DSEC_FRAME_HEADER_BYTES < frame->payload.length)
		return 0;
	frame->payload.data = input.data + DSEC_FRAME_HEADER_BYTES;
	if (frame->type->message) {
		err = dsec_message_decode(frame->type->message, frame->payload, NULL);
		if (err)
			return err;
	}
	return (int)(DSEC_FRAME_HEADER_BYTES + frame->payload.length);
}

int dsec_frame_encode_header(const struct dsec_frame *frame,
			     uint8_t header[DSEC_FRAME_HEADER_BYTES])
{
	if (!is_well_formed(frame))
		return -EINVAL;
	dsec_put_le(header + AT_LENGTH, frame->payload.length, 4);
	header[AT_VERSION] = DSEC_FRAME_VERSION;
	header[AT_TYPE] = frame->type->code;
	dsec_put_le(header + AT_FLAGS, frame->end ? DSEC_FRAME_FLAG_END : 0, 2);
	dsec_put_le(header + AT_STREAM, frame->stream, 4);
	dsec_put_le(header + AT_EPOCH, frame->epoch, 4);
	dsec_put_le(header + AT_OFFSET, frame->offset, 8);
	return 0;
}

int dsec_frame_encode(struct dsec_frame *frame, const void *value, uint8_t *output, size_t capacity)
{
	int length;
	int err;

	if (!frame->type->message)
		return -EINVAL;
	if (capacity < DSEC_FRAME_HEADER_BYTES)
		return -EMSGSIZE;
	length = dsec_message_encode(frame->type->message, value, output + DSEC_FRAME_HEADER_BYTES,
				     capacity - DSEC_FRAME_HEADER_BYTES);
	if (length < 0)
		return length;
	frame->payload = (struct dsec_bytes){ output + DSEC_FRAME_HEADER_BYTES, (uint32_t)length };
	err = dsec_frame_encode_header(frame, output);
	return err ? err : DSEC_FRAME_HEADER_BYTES + length;
}
