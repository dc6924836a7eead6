/*
 * Messages: runs of tagged fields, the payload of control frames. The encoding is described in
 * packages/protocol/src/wire-fields.ts; structures and field tables are generated from it into
 * dsec_protocol.gen.h. Nothing here allocates or does I/O. Every input is taken as hostile.
 */
#ifndef DSEC_MESSAGE_H
#define DSEC_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dsec_kind {
	DSEC_KIND_U8,
	DSEC_KIND_U16,
	DSEC_KIND_U32,
	DSEC_KIND_U64,
	DSEC_KIND_I32,
	DSEC_KIND_I64,
	DSEC_KIND_BYTES,
	DSEC_KIND_PATH,	  /* bytes without NUL */
	DSEC_KIND_STRING, /* UTF-8 without NUL */
	DSEC_KIND_STRUCT,
	DSEC_KIND_LIST,
};

/* A view of bytes that belong to someone else. Text is not terminated by NUL. */
struct dsec_bytes {
	const uint8_t *data;
	uint32_t length;
};

/* Items as they are encoded; see dsec_list_next() and dsec_list_put(). */
struct dsec_list {
	struct dsec_bytes items;
	uint32_t count;
};

struct dsec_message;

struct dsec_field {
	const char *name;
	uint16_t tag;
	uint16_t offset; /* of the member in the message's structure */
	uint8_t kind;
	bool optional;
	int64_t min; /* of a number's value, a length in bytes, or the number of items */
	int64_t max;
	uint32_t bytes_max;		    /* of the encoded value */
	uint32_t item_bytes_max;	    /* of one plain item of a list */
	const struct dsec_message *message; /* of a structure or of a list's items */
};

/*
 * Every message's structure begins with `uint32_t present`: bit i stands for fields[i]. Bits of
 * fields that are not optional are set by decoding and need not be set for encoding.
 */
struct dsec_message {
	const char *name;
	const struct dsec_field *fields; /* in ascending order of their tags */
	uint16_t field_count;
	uint16_t size; /* of the structure */
	uint32_t bytes_max;
};

/*
 * Decodes into the message's structure; byte fields and lists are views of `input`. Returns 0, or
 * -EPROTO for any field that is unknown, doubled, out of order, missing, too long or out of range.
 * `value` may be NULL to check only.
 */
int dsec_message_decode(const struct dsec_message *message, struct dsec_bytes input, void *value);

/*
 * Encodes from the message's structure. Returns the length, -EMSGSIZE when `capacity` is too
 * small, or -EINVAL when a field breaks its limits.
 */
int dsec_message_encode(const struct dsec_message *message, const void *value, uint8_t *output,
			size_t capacity);

/* Takes the first item off `list->items`; `count` stays. Returns false at the end. */
bool dsec_list_next(struct dsec_list *list, struct dsec_bytes *item);

/*
 * Appends an item to a list that lies in `buffer`; a new list is all zeros. Returns 0 or -EMSGSIZE
 * when it does not fit.
 */
int dsec_list_put(struct dsec_list *list, uint8_t *buffer, size_t capacity, struct dsec_bytes item);

/* As dsec_list_put(), with an item that is a message. */
int dsec_list_put_message(struct dsec_list *list, uint8_t *buffer, size_t capacity,
			  const struct dsec_message *message, const void *value);

#endif
