/*
 * Tests of the frame and message codecs: `frame_test <golden>`, with the directory of golden
 * frames. `frame_test <golden> <corpus>` writes them as inputs for the fuzzer instead.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "frame_golden.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define BYTES(text) ((struct dsec_bytes){ (const uint8_t *)(text), sizeof(text) - 1 })

static struct dsec_frame resize_frame(void)
{
	return (struct dsec_frame){
		.type = dsec_frame_type(&dsec_aether_protocol, DSEC_AETHER_RESIZE),
		.stream = 1,
	};
}

static void test_frames_arrive_in_pieces(void)
{
	struct dsec_msg_pty_size size = { .rows = 24, .columns = 80 };
	struct dsec_frame frame = resize_frame();
	uint8_t output[64];
	int length = dsec_frame_encode(&frame, &size, output, sizeof(output));

	CHECK(length == 24 + 2 * 8);
	for (uint32_t i = 0; i < (uint32_t)length; i++) {
		struct dsec_bytes part = { output, i };

		CHECK(dsec_frame_decode(&dsec_aether_protocol, DSEC_FROM_CLIENT, part, &frame) ==
		      0);
	}
	output[length] = 0xff; /* The start of the next frame is not looked at. */
	CHECK(dsec_frame_decode(&dsec_aether_protocol, DSEC_FROM_CLIENT,
				(struct dsec_bytes){ output, (uint32_t)length + 1 },
				&frame) == length);
	CHECK(frame.type->code == DSEC_AETHER_RESIZE && frame.payload.length == 16);
}

static void test_encode_refuses_what_decode_would(void)
{
	struct dsec_msg_pty_size size = { .rows = 0, .columns = 80 };
	struct dsec_frame frame = resize_frame();
	uint8_t output[64];

	CHECK(dsec_frame_encode(&frame, &size, output, sizeof(output)) == -EINVAL);
	size.rows = 1;
	frame.stream = 0;
	CHECK(dsec_frame_encode(&frame, &size, output, sizeof(output)) == -EINVAL);
	frame.stream = 1;
	for (size_t capacity = 0; capacity < 40; capacity++)
		CHECK(dsec_frame_encode(&frame, &size, output, capacity) == -EMSGSIZE);
	CHECK(dsec_frame_encode(&frame, &size, output, 40) == 40);

	frame.type = dsec_frame_type(&dsec_aether_protocol, DSEC_AETHER_STDOUT);
	frame.payload.length = DSEC_FRAME_DATA_BYTES_MAX + 1;
	CHECK(dsec_frame_encode_header(&frame, output) == -EINVAL);
	frame.payload.length = 0;
	CHECK(dsec_frame_encode_header(&frame, output) == -EINVAL);
	frame.end = true;
	CHECK(dsec_frame_encode_header(&frame, output) == 0);
}

static void test_lists_are_built_in_place(void)
{
	struct dsec_msg_file_attributes entry = { .name = BYTES("a\xff"), .mode = 0644 };
	struct dsec_msg_file_entries entries = { 0 };
	struct dsec_msg_file_attributes decoded;
	struct dsec_bytes item;
	uint8_t items[256];
	uint8_t output[512];
	int length;

	CHECK(dsec_list_put_message(&entries.entries, items, sizeof(items),
				    &dsec_msg_file_attributes, &entry) == 0);
	entry.mtime_seconds = -1;
	CHECK(dsec_list_put_message(&entries.entries, items, sizeof(items),
				    &dsec_msg_file_attributes, &entry) == 0);
	/* A full buffer leaves the list as it was. */
	CHECK(dsec_list_put_message(&entries.entries, items, sizeof(items),
				    &dsec_msg_file_attributes, &entry) == -EMSGSIZE);
	CHECK(entries.entries.count == 2);
	length = dsec_message_encode(&dsec_msg_file_entries, &entries, output, sizeof(output));
	CHECK(length > 0);
	memset(&entries, 0xff, sizeof(entries));
	CHECK(dsec_message_decode(&dsec_msg_file_entries,
				  (struct dsec_bytes){ output, (uint32_t)length }, &entries) == 0);
	CHECK(entries.entries.count == 2 && !(entries.present & DSEC_FILE_ENTRIES_HAS_CURSOR));
	CHECK(dsec_list_next(&entries.entries, &item));
	CHECK(dsec_list_next(&entries.entries, &item));
	CHECK(dsec_message_decode(&dsec_msg_file_attributes, item, &decoded) == 0);
	CHECK(decoded.mtime_seconds == -1 && decoded.name.length == 2);
	CHECK(!dsec_list_next(&entries.entries, &item));
}

static void test_plain_lists(void)
{
	struct dsec_list list = { 0 };
	struct dsec_bytes item;
	uint8_t buffer[16];

	CHECK(dsec_list_put(&list, buffer, sizeof(buffer), BYTES("ab")) == 0);
	CHECK(dsec_list_put(&list, buffer, sizeof(buffer), BYTES("")) == 0);
	CHECK(dsec_list_put(&list, buffer, sizeof(buffer), BYTES("abc")) == -EMSGSIZE);
	CHECK(list.count == 2 && list.items.length == 10);
	CHECK(dsec_list_next(&list, &item) && item.length == 2 && item.data[1] == 'b');
	CHECK(dsec_list_next(&list, &item) && item.length == 0);
	CHECK(!dsec_list_next(&list, &item));
}

static void test_optional_fields(void)
{
	struct dsec_msg_timeout timeout = { .timeout_ms = 5 };
	uint8_t output[32];

	CHECK(dsec_message_encode(&dsec_msg_timeout, &timeout, output, sizeof(output)) == 0);
	timeout.present = DSEC_TIMEOUT_HAS_TIMEOUT_MS;
	CHECK(dsec_message_encode(&dsec_msg_timeout, &timeout, output, sizeof(output)) == 14);
}

static int run_tests(const char *good, const char *bad)
{
	int frames;
	int broken;

	test_frames_arrive_in_pieces();
	test_encode_refuses_what_decode_would();
	test_lists_are_built_in_place();
	test_plain_lists();
	test_optional_fields();
	frames = golden_check_frames(good);
	broken = golden_check_broken(bad);
	CHECK(frames > 100 && broken > 30);
	printf("frame_test: ok, %d golden frames, %d broken ones\n", frames, broken);
	return 0;
}

int main(int argc, char **argv)
{
	char good[4096];
	char bad[4096];

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: %s <golden> [<corpus>]\n", argv[0]);
		return 2;
	}
	snprintf(good, sizeof(good), "%s/frames.txt", argv[1]);
	snprintf(bad, sizeof(bad), "%s/broken-frames.txt", argv[1]);
	if (argc == 2)
		return run_tests(good, bad);
	CHECK(golden_write_corpus(good, argv[2]) > 0 && golden_write_corpus(bad, argv[2]) > 0);
	return 0;
}
