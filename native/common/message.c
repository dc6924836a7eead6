#include "message.h"

#include <errno.h>
#include <string.h>

#include "message_bytes.h"

enum {
	FIELD_HEADER_BYTES = 6,
	ITEM_HEADER_BYTES = 4,
};

/* Width of a number kind, 0 for kinds of any length. */
static unsigned int number_width(uint8_t kind)
{
	switch (kind) {
	case DSEC_KIND_U8:
		return 1;
	case DSEC_KIND_U16:
		return 2;
	case DSEC_KIND_U32:
	case DSEC_KIND_I32:
		return 4;
	case DSEC_KIND_U64:
	case DSEC_KIND_I64:
		return 8;
	default:
		return 0;
	}
}

static struct dsec_bytes slice(struct dsec_bytes from, uint32_t at, uint32_t length)
{
	return (struct dsec_bytes){ length ? from.data + at : NULL, length };
}

/* Length of the UTF-8 sequence at the start of `in`, 0 when there is none. */
static uint32_t utf8_sequence(struct dsec_bytes in)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint8_t first = in.data[0];
	uint32_t length = first < 0x80		 ? 1
			  : (first >> 5) == 0x6	 ? 2
			  : (first >> 4) == 0xe	 ? 3
			  : (first >> 3) == 0x1e ? 4
						 : 0;
	uint32_t code;

	if (length < 2)
		return length;
	if (in.length < length)
		return 0;
	code = first & (0x7f >> length);
	for (uint32_t i = 1; i < length; i++) {
		if ((in.data[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (in.data[i] & 0x3f);
	}
	/* Overlong forms, surrogates and numbers beyond Unicode are not UTF-8. */
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

static bool is_utf8(struct dsec_bytes in)
{
	while (in.length > 0) {
		uint32_t taken = utf8_sequence(in);

		if (taken == 0)
			return false;
		in = slice(in, taken, in.length - taken);
	}
	return true;
}

static int check_bytes(uint8_t kind, int64_t min, int64_t max, struct dsec_bytes in)
{
	if ((int64_t)in.length < min || (int64_t)in.length > max)
		return -EPROTO;
	if (kind == DSEC_KIND_BYTES || in.length == 0)
		return 0;
	if (memchr(in.data, 0, in.length))
		return -EPROTO;
	if (kind == DSEC_KIND_STRING && !is_utf8(in))
		return -EPROTO;
	return 0;
}

static int decode_number(const struct dsec_field *field, struct dsec_bytes in, uint8_t *member)
{
	unsigned int width = number_width(field->kind);
	uint64_t raw;
	int64_t value;

	if (in.length != width)
		return -EPROTO;
	raw = dsec_get_le(in.data, width);
	if (field->kind == DSEC_KIND_U64 && raw > INT64_MAX)
		return -EPROTO;
	value = field->kind == DSEC_KIND_I32 ? (int32_t)raw : (int64_t)raw;
	if (value < field->min || value > field->max)
		return -EPROTO;
	if (!member)
		return 0;
	if (width == 1)
		*member = (uint8_t)raw;
	else if (width == 2)
		memcpy(member, &(uint16_t){ (uint16_t)raw }, width);
	else if (width == 4)
		memcpy(member, &(uint32_t){ (uint32_t)raw }, width);
	else
		memcpy(member, &raw, width);
	return 0;
}

bool dsec_list_next(struct dsec_list *list, struct dsec_bytes *item)
{
	struct dsec_bytes rest = list->items;
	uint32_t length;

	if (rest.length < ITEM_HEADER_BYTES)
		return false;
	length = (uint32_t)dsec_get_le(rest.data, ITEM_HEADER_BYTES);
	rest = slice(rest, ITEM_HEADER_BYTES, rest.length - ITEM_HEADER_BYTES);
	if (length > rest.length)
		return false;
	*item = slice(rest, 0, length);
	list->items = slice(rest, length, rest.length - length);
	return true;
}

static int decode_list(const struct dsec_field *field, struct dsec_bytes in, uint8_t *member)
{
	struct dsec_list rest = { in, 0 };
	struct dsec_list list = { in, 0 };
	struct dsec_bytes item;
	int err;

	while (dsec_list_next(&rest, &item)) {
		if ((int64_t)++list.count > field->max)
			return -EPROTO;
		if (field->message)
			err = dsec_message_decode(field->message, item, NULL);
		else
			err = check_bytes(DSEC_KIND_PATH, 0, field->item_bytes_max, item);
		if (err)
			return err;
	}
	/* What dsec_list_next() could not take is an item that is cut off. */
	if (rest.items.length > 0 || (int64_t)list.count < field->min)
		return -EPROTO;
	if (member)
		memcpy(member, &list, sizeof(list));
	return 0;
}

static int decode_field(const struct dsec_field *field, struct dsec_bytes in, uint8_t *member)
{
	int err;

	if (number_width(field->kind))
		return decode_number(field, in, member);
	if (in.length > field->bytes_max)
		return -EPROTO;
	if (field->kind == DSEC_KIND_STRUCT)
		return dsec_message_decode(field->message, in, member);
	if (field->kind == DSEC_KIND_LIST)
		return decode_list(field, in, member);
	err = check_bytes(field->kind, field->min, field->max, in);
	if (!err && member)
		memcpy(member, &in, sizeof(in));
	return err;
}

int dsec_message_decode(const struct dsec_message *message, struct dsec_bytes in, void *value)
{
	const struct dsec_field *fields = message->fields;
	uint32_t present = 0;
	uint16_t next = 0;
	int err;

	if (value)
		memset(value, 0, message->size);
	while (in.length > 0) {
		uint32_t length;
		uint16_t tag;

		if (in.length < FIELD_HEADER_BYTES)
			return -EPROTO;
		tag = (uint16_t)dsec_get_le(in.data, 2);
		length = (uint32_t)dsec_get_le(in.data + 2, 4);
		in = slice(in, FIELD_HEADER_BYTES, in.length - FIELD_HEADER_BYTES);
		if (length > in.length)
			return -EPROTO;
		while (next < message->field_count && fields[next].tag < tag) {
			if (!fields[next++].optional)
				return -EPROTO;
		}
		if (next == message->field_count || fields[next].tag != tag)
			return -EPROTO;
		err = decode_field(&fields[next], slice(in, 0, length),
				   value ? (uint8_t *)value + fields[next].offset : NULL);
		if (err)
			return err;
		present |= 1u << next++;
		in = slice(in, length, in.length - length);
	}
	while (next < message->field_count) {
		if (!fields[next++].optional)
			return -EPROTO;
	}
	if (value)
		memcpy(value, &present, sizeof(present));
	return 0;
}

/* Output that counts on past its end, so that one check at the end tells what did not fit. */
struct writer {
	uint8_t *data;
	size_t capacity;
	size_t length;
};

static void put_bytes(struct writer *writer, struct dsec_bytes bytes)
{
	if (bytes.length > 0 && writer->length + bytes.length <= writer->capacity)
		memcpy(writer->data + writer->length, bytes.data, bytes.length);
	writer->length += bytes.length;
}

static void put_number(struct writer *writer, uint64_t value, unsigned int width)
{
	if (writer->length + width <= writer->capacity)
		dsec_put_le(writer->data + writer->length, value, width);
	writer->length += width;
}

static uint64_t member_number(const struct dsec_field *field, const uint8_t *member)
{
	uint64_t wide;
	uint32_t word;
	uint16_t half;

	switch (number_width(field->kind)) {
	case 1:
		return *member;
	case 2:
		memcpy(&half, member, sizeof(half));
		return half;
	case 4:
		memcpy(&word, member, sizeof(word));
		return word;
	default:
		memcpy(&wide, member, sizeof(wide));
		return wide;
	}
}

static void put_message(struct writer *writer, const struct dsec_message *message,
			const uint8_t *value);

static void put_field(struct writer *writer, const struct dsec_field *field, const uint8_t *member)
{
	size_t start = writer->length + FIELD_HEADER_BYTES;
	struct dsec_bytes bytes;
	struct dsec_list list;

	put_number(writer, field->tag, 2);
	put_number(writer, 0, 4);
	if (number_width(field->kind)) {
		put_number(writer, member_number(field, member), number_width(field->kind));
	} else if (field->kind == DSEC_KIND_STRUCT) {
		put_message(writer, field->message, member);
	} else if (field->kind == DSEC_KIND_LIST) {
		memcpy(&list, member, sizeof(list));
		put_bytes(writer, list.items);
	} else {
		memcpy(&bytes, member, sizeof(bytes));
		put_bytes(writer, bytes);
	}
	if (start <= writer->capacity)
		dsec_put_le(writer->data + start - 4, writer->length - start, 4);
}

static void put_message(struct writer *writer, const struct dsec_message *message,
			const uint8_t *value)
{
	uint32_t present;

	memcpy(&present, value, sizeof(present));
	for (uint16_t i = 0; i < message->field_count; i++) {
		const struct dsec_field *field = &message->fields[i];

		if (!field->optional || (present >> i & 1))
			put_field(writer, field, value + field->offset);
	}
}

int dsec_message_encode(const struct dsec_message *message, const void *value, uint8_t *output,
			size_t capacity)
{
	struct writer writer = { output, capacity, 0 };

	put_message(&writer, message, value);
	if (writer.length > message->bytes_max)
		return -EINVAL;
	if (writer.length > capacity)
		return -EMSGSIZE;
	/* The decoder knows every rule; what it refuses must not leave. */
	if (dsec_message_decode(message, (struct dsec_bytes){ output, (uint32_t)writer.length },
				NULL))
		return -EINVAL;
	return (int)writer.length;
}

int dsec_list_put(struct dsec_list *list, uint8_t *buffer, size_t capacity, struct dsec_bytes item)
{
	struct writer writer = { buffer, capacity, list->items.length };

	put_number(&writer, item.length, ITEM_HEADER_BYTES);
	put_bytes(&writer, item);
	if (writer.length > capacity || writer.length > UINT32_MAX)
		return -EMSGSIZE;
	*list = (struct dsec_list){ { buffer, (uint32_t)writer.length }, list->count + 1 };
	return 0;
}

int dsec_list_put_message(struct dsec_list *list, uint8_t *buffer, size_t capacity,
			  const struct dsec_message *message, const void *value)
{
	size_t start = (size_t)list->items.length + ITEM_HEADER_BYTES;
	int length;

	if (start > capacity)
		return -EMSGSIZE;
	length = dsec_message_encode(message, value, buffer + start, capacity - start);
	if (length < 0)
		return length;
	dsec_put_le(buffer + start - ITEM_HEADER_BYTES, (uint64_t)length, ITEM_HEADER_BYTES);
	*list = (struct dsec_list){ { buffer, (uint32_t)start + (uint32_t)length },
				    list->count + 1 };
	return 0;
}
