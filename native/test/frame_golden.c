#include "frame_golden.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

enum {
	LINE_BYTES_MAX = 64 * 1024,
	/* Room for the structure of any message. */
	VALUE_BYTES_MAX = 4096,
	NAME_BYTES_MAX = 512,
};

struct golden {
	FILE *file;
	char line[LINE_BYTES_MAX]; /* the current line, without its newline */
	char name[256];
	const struct dsec_protocol *protocol;
	enum dsec_side from;
	uint8_t frame[LINE_BYTES_MAX / 2];
	uint32_t length;
};

static bool next_line(struct golden *golden)
{
	if (!fgets(golden->line, sizeof(golden->line), golden->file)) {
		golden->line[0] = '\0';
		return false;
	}
	golden->line[strcspn(golden->line, "\n")] = '\0';
	return true;
}

/* The rest of the current line, which must start with this word. */
static const char *rest_after(struct golden *golden, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(golden->line, word, length) != 0 || golden->line[length] != ' ') {
		fprintf(stderr, "%s: expected %s, found: %s\n", golden->name, word, golden->line);
		exit(1);
	}
	return golden->line + length + 1;
}

static void read_hex(struct golden *golden)
{
	const char *hex = rest_after(golden, "hex");
	unsigned int byte;

	golden->length = 0;
	while (sscanf(hex, "%2x", &byte) == 1) {
		golden->frame[golden->length++] = (uint8_t)byte;
		hex += 2;
	}
}

/* Reads the head of the next block; the current line is then the first after it. */
static bool next_frame(struct golden *golden)
{
	while (strncmp(golden->line, "frame ", 6) != 0) {
		if (!next_line(golden))
			return false;
	}
	snprintf(golden->name, sizeof(golden->name), "%s", rest_after(golden, "frame"));
	next_line(golden);
	golden->protocol = strcmp(rest_after(golden, "protocol"), "aether") == 0
				   ? &dsec_aether_protocol
				   : &dsec_launcher_protocol;
	next_line(golden);
	golden->from = strcmp(rest_after(golden, "from"), "client") == 0 ? DSEC_FROM_CLIENT
									 : DSEC_FROM_SERVER;
	next_line(golden);
	read_hex(golden);
	next_line(golden);
	return true;
}

/* Compares one line of meaning and goes on to the next. */
static void expect(struct golden *golden, const char *name, const char *value)
{
	const char *found = rest_after(golden, name);

	if (strcmp(found, value) != 0) {
		fprintf(stderr, "%s: %s is %s here, %s there\n", golden->name, name, value, found);
		exit(1);
	}
	next_line(golden);
}

static void expect_number(struct golden *golden, const char *name, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	expect(golden, name, text);
}

static void expect_bytes(struct golden *golden, const char *name, struct dsec_bytes bytes)
{
	static char text[LINE_BYTES_MAX];

	text[0] = '\0';
	for (uint32_t i = 0; i < bytes.length; i++)
		sprintf(text + 2 * (size_t)i, "%02x", bytes.data[i]);
	expect(golden, name, text);
}

__attribute__((format(printf, 2, 3))) static void join(char *name, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vsnprintf(name, NAME_BYTES_MAX, format, arguments) >= NAME_BYTES_MAX)
		abort();
	va_end(arguments);
}

static int64_t number_at(uint8_t kind, const uint8_t *member)
{
	switch (kind) {
	case DSEC_KIND_U8:
		return *member;
	case DSEC_KIND_U16:
		return *(const uint16_t *)member;
	case DSEC_KIND_U32:
		return *(const uint32_t *)member;
	case DSEC_KIND_I32:
		return *(const int32_t *)member;
	default:
		return *(const int64_t *)member;
	}
}

static void expect_message(struct golden *golden, const char *prefix,
			   const struct dsec_message *message, const uint8_t *value);

static void expect_list(struct golden *golden, const char *name, const struct dsec_field *field,
			struct dsec_list list)
{
	_Alignas(max_align_t) uint8_t value[VALUE_BYTES_MAX];
	struct dsec_bytes item;
	char item_name[NAME_BYTES_MAX];

	join(item_name, "%s[]", name);
	expect_number(golden, item_name, list.count);
	for (uint32_t i = 0; dsec_list_next(&list, &item); i++) {
		if (!field->message) {
			join(item_name, "%s[%u]", name, i);
			expect_bytes(golden, item_name, item);
			continue;
		}
		join(item_name, "%s[%u].", name, i);
		dsec_message_decode(field->message, item, value);
		expect_message(golden, item_name, field->message, value);
	}
}

static void expect_message(struct golden *golden, const char *prefix,
			   const struct dsec_message *message, const uint8_t *value)
{
	uint32_t present = *(const uint32_t *)value;
	char name[NAME_BYTES_MAX];

	for (uint16_t i = 0; i < message->field_count; i++) {
		const struct dsec_field *field = &message->fields[i];
		const uint8_t *member = value + field->offset;

		if (!(present >> i & 1))
			continue;
		join(name, "%s%s", prefix, field->name);
		switch (field->kind) {
		case DSEC_KIND_STRUCT:
			join(name, "%s%s.", prefix, field->name);
			expect_message(golden, name, field->message, member);
			break;
		case DSEC_KIND_LIST:
			expect_list(golden, name, field, *(const struct dsec_list *)member);
			break;
		case DSEC_KIND_BYTES:
		case DSEC_KIND_PATH:
		case DSEC_KIND_STRING:
			expect_bytes(golden, name, *(const struct dsec_bytes *)member);
			break;
		default:
			expect_number(golden, name, number_at(field->kind, member));
		}
	}
}

static void expect_same_bytes(struct golden *golden, struct dsec_frame frame, const void *value)
{
	static uint8_t output[LINE_BYTES_MAX];
	int length;

	if (frame.type->message) {
		length = dsec_frame_encode(&frame, value, output, sizeof(output));
	} else {
		length = dsec_frame_encode_header(&frame, output);
		memcpy(output + DSEC_FRAME_HEADER_BYTES, frame.payload.data, frame.payload.length);
		if (length == 0)
			length = DSEC_FRAME_HEADER_BYTES + (int)frame.payload.length;
	}
	if (length != (int)golden->length || memcmp(output, golden->frame, golden->length) != 0) {
		fprintf(stderr, "%s: encoded to other bytes (%d)\n", golden->name, length);
		exit(1);
	}
}

static void check_frame(struct golden *golden)
{
	_Alignas(max_align_t) uint8_t value[VALUE_BYTES_MAX];
	struct dsec_frame frame;
	struct dsec_bytes input = { golden->frame, golden->length };
	int taken = dsec_frame_decode(golden->protocol, golden->from, input, &frame);

	if (taken != (int)golden->length) {
		fprintf(stderr, "%s: decoding gave %d\n", golden->name, taken);
		exit(1);
	}
	expect(golden, "type", frame.type->name);
	expect_number(golden, "stream", frame.stream);
	expect_number(golden, "epoch", frame.epoch);
	expect_number(golden, "offset", (int64_t)frame.offset);
	if (frame.type->message) {
		dsec_message_decode(frame.type->message, frame.payload, value);
		expect_message(golden, "", frame.type->message, value);
	} else {
		expect_number(golden, "end", frame.end);
		expect_bytes(golden, "data", frame.payload);
	}
	if (golden->line[0] != '\0') {
		fprintf(stderr, "%s: not decoded: %s\n", golden->name, golden->line);
		exit(1);
	}
	expect_same_bytes(golden, frame, value);
}

static void check_broken(struct golden *golden)
{
	struct dsec_frame frame;
	struct dsec_bytes input = { golden->frame, golden->length };
	int taken = dsec_frame_decode(golden->protocol, golden->from, input, &frame);

	if (taken != -EPROTO) {
		fprintf(stderr, "%s: not refused (%d)\n", golden->name, taken);
		exit(1);
	}
}

static const char *corpus_directory;

static void write_corpus(struct golden *golden)
{
	uint8_t choice = (golden->protocol == &dsec_launcher_protocol ? 1 : 0) |
			 (golden->from == DSEC_FROM_SERVER ? 2 : 0);
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d-%s", corpus_directory, choice, golden->name);
	file = fopen(path, "we");
	if (!file || fwrite(&choice, 1, 1, file) != 1 ||
	    fwrite(golden->frame, 1, golden->length, file) != golden->length || fclose(file)) {
		perror(path);
		exit(1);
	}
}

static int for_each_frame(const char *file, void (*visit)(struct golden *golden))
{
	static struct golden golden;
	int count = 0;

	memset(&golden, 0, sizeof(golden));
	golden.file = fopen(file, "re");
	if (!golden.file) {
		perror(file);
		return -1;
	}
	while (next_frame(&golden)) {
		visit(&golden);
		count++;
	}
	fclose(golden.file);
	return count;
}

int golden_check_frames(const char *file)
{
	return for_each_frame(file, check_frame);
}

int golden_check_broken(const char *file)
{
	return for_each_frame(file, check_broken);
}

int golden_write_corpus(const char *file, const char *directory)
{
	corpus_directory = directory;
	return for_each_frame(file, write_corpus);
}
