/*
 * Fuzzes the frame and message codecs. The first byte chooses protocol and direction; the rest is a
 * stream of frames. Whatever decodes must encode again to the same bytes: each message has one
 * encoding.
 */
#include <stdlib.h>
#include <string.h>

#include "frame.h"

enum {
	VALUE_BYTES_MAX = 4096,
};

static void read_items(const struct dsec_message *message, const uint8_t *value);

static void read_list(const struct dsec_field *field, struct dsec_list list)
{
	_Alignas(max_align_t) uint8_t value[VALUE_BYTES_MAX];
	struct dsec_bytes item;
	uint32_t count = 0;

	for (; dsec_list_next(&list, &item); count++) {
		if (!field->message)
			continue;
		if (dsec_message_decode(field->message, item, value))
			abort();
		read_items(field->message, value);
	}
	if (count != list.count || list.items.length != 0)
		abort();
}

static void read_items(const struct dsec_message *message, const uint8_t *value)
{
	for (uint16_t i = 0; i < message->field_count; i++) {
		const struct dsec_field *field = &message->fields[i];

		if (!(*(const uint32_t *)value >> i & 1))
			continue;
		if (field->kind == DSEC_KIND_LIST)
			read_list(field, *(const struct dsec_list *)(value + field->offset));
		if (field->kind == DSEC_KIND_STRUCT)
			read_items(field->message, value + field->offset);
	}
}

static void check_again(struct dsec_frame frame, const uint8_t *bytes, size_t length)
{
	_Alignas(max_align_t) uint8_t value[VALUE_BYTES_MAX];
	uint8_t *output;

	if (!frame.type->message)
		return;
	if (frame.type->message->size > sizeof(value) ||
	    dsec_message_decode(frame.type->message, frame.payload, value))
		abort();
	read_items(frame.type->message, value);
	output = malloc(length);
	if (!output || dsec_frame_encode(&frame, value, output, length) != (int)length ||
	    memcmp(output, bytes, length) != 0)
		abort();
	free(output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dsec_protocol *protocol;
	enum dsec_side from;

	if (size == 0)
		return 0;
	protocol = data[0] & 1 ? &dsec_launcher_protocol : &dsec_aether_protocol;
	from = data[0] & 2 ? DSEC_FROM_SERVER : DSEC_FROM_CLIENT;
	data++;
	size--;
	for (;;) {
		struct dsec_frame frame;
		int taken = dsec_frame_decode(protocol, from,
					      (struct dsec_bytes){ data, (uint32_t)size }, &frame);

		if (taken <= 0)
			return 0;
		check_again(frame, data, (size_t)taken);
		data += taken;
		size -= (size_t)taken;
	}
}
