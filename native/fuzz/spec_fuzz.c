/*
 * Fuzzes what the launcher insists on. A specification that is sound in all else takes its id maps,
 * ids, capabilities, mounts and sysctls from the input. Whatever is accepted must keep the
 * invariants, which are checked here in another way: by walking over ids one at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "spec.h"

enum {
	LIST_BYTES = 8192,
	ID_STEP = 97, /* ids looked at: every so many, and the last of each map */
};

struct input {
	const uint8_t *data;
	size_t length;
};

static uint32_t take(struct input *input, unsigned int bytes)
{
	uint32_t value = 0;

	while (bytes-- > 0 && input->length > 0) {
		value = value << 8 | *input->data++;
		input->length--;
	}
	return value;
}

/* Near the numbers that matter more often than anywhere. */
static uint32_t take_id(struct input *input)
{
	static const uint32_t near[] = { 0,
					 65535,
					 65536,
					 DSEC_SANDBOX_ID_FIRST,
					 DSEC_SANDBOX_ID_FIRST + 65536,
					 UINT32_MAX - 65535 };
	uint32_t choice = take(input, 1);

	if (choice >= 128)
		return take(input, 4);
	return near[choice % (sizeof(near) / sizeof(near[0]))] + take(input, 1) - 2;
}

static struct dsec_list take_maps(struct input *input, uint8_t *buffer)
{
	struct dsec_list list = { 0 };
	uint32_t count = take(input, 1) % 4;

	while (count-- > 0) {
		struct dsec_msg_id_map map = {
			.inside = take_id(input),
			.outside = take_id(input),
			.count = take_id(input) % DSEC_SANDBOX_ID_COUNT + 1,
		};

		dsec_list_put_message(&list, buffer, LIST_BYTES, &dsec_msg_id_map, &map);
	}
	return list;
}

static struct dsec_bytes text(const char *string)
{
	return (struct dsec_bytes){ (const uint8_t *)string, (uint32_t)strlen(string) };
}

/* A procfs of processes alone, which needs no masks, so that what this host has makes no
 * difference. */
static struct dsec_list take_mounts(struct input *input, uint8_t *buffer, uint8_t *options)
{
	struct dsec_msg_mount proc = {
		.present = DSEC_MOUNT_HAS_OPTIONS,
		.kind = DSEC_MOUNT_KIND_PROC,
		.target = text("/proc"),
	};
	struct dsec_msg_mount other = {
		.kind = (uint8_t)(take(input, 1) % (DSEC_MOUNT_KIND_READONLY + 1)),
		.target = { input->data, (uint32_t)(input->length < 32 ? input->length : 32) },
	};
	struct dsec_list list = { 0 };

	dsec_list_put(&proc.options, options, LIST_BYTES, text("subset=pid"));
	dsec_list_put_message(&list, buffer, LIST_BYTES, &dsec_msg_mount, &proc);
	/* Refused here when the target is none: then there is one mount. */
	dsec_list_put_message(&list, buffer, LIST_BYTES, &dsec_msg_mount, &other);
	return list;
}

static struct dsec_list all_rlimits(uint8_t *buffer)
{
	struct dsec_list list = { 0 };

	for (uint8_t resource = 0; resource < 16; resource++) {
		struct dsec_msg_rlimit rlimit = { .resource = resource };

		dsec_list_put_message(&list, buffer, LIST_BYTES, &dsec_msg_rlimit, &rlimit);
	}
	return list;
}

static struct dsec_list all_descriptors(uint8_t *buffer)
{
	struct dsec_list list = { 0 };

	for (uint32_t number = 0; number < 4; number++) {
		struct dsec_msg_descriptor descriptor = { .number = number };

		if (number == 3) {
			descriptor.present = DSEC_DESCRIPTOR_HAS_NAME;
			descriptor.kind = DSEC_DESCRIPTOR_KIND_LISTENER;
			descriptor.name = text("run/sb/box-1.sock");
		}
		dsec_list_put_message(&list, buffer, LIST_BYTES, &dsec_msg_descriptor, &descriptor);
	}
	return list;
}

/* Every id of PID 1's namespace is of one range, and none that sessions have is its own. */
static void check_ids(const struct dsec_msg_spawn *spec)
{
	uint32_t range = spec_host_id(spec, 0) / DSEC_SANDBOX_ID_COUNT;
	struct dsec_list sessions = spec->session_id_maps;
	struct dsec_bytes item;

	if (range < DSEC_SANDBOX_ID_FIRST / DSEC_SANDBOX_ID_COUNT || spec->uid || spec->gid)
		abort();
	for (uint32_t inside = 0; inside < DSEC_SANDBOX_ID_COUNT; inside += ID_STEP) {
		uint32_t outside = spec_host_id(spec, inside);

		if (outside != (uint32_t)-1 && outside / DSEC_SANDBOX_ID_COUNT != range)
			abort();
	}
	if (spec->session_id_maps.count == 0)
		abort();
	while (dsec_list_next(&sessions, &item)) {
		struct dsec_msg_id_map map;

		dsec_message_decode(&dsec_msg_id_map, item, &map);
		for (uint64_t id = map.outside; id < (uint64_t)map.outside + map.count; id++) {
			if (id == 0)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	static uint8_t maps[LIST_BYTES], sessions[LIST_BYTES], mounts[LIST_BYTES],
		options[LIST_BYTES];
	static uint8_t rlimits[LIST_BYTES], descriptors[LIST_BYTES];
	struct input input = { data, length };
	struct dsec_msg_spawn spec = {
		.present = DSEC_SPAWN_HAS_ROOT | DSEC_SPAWN_HAS_SECCOMP,
		.kind = DSEC_SPAWN_KIND_SANDBOX,
		.namespaces = 127,
		.seccomp = text("12345678"),
		.rlimits = all_rlimits(rlimits),
		.descriptors = all_descriptors(descriptors),
	};

	spec.capabilities = (uint64_t)take(&input, 2) << (take(&input, 1) % 32);
	spec.uid = take(&input, 1) % 2;
	spec.gid = take(&input, 1) % 2;
	spec.id_maps = take_maps(&input, maps);
	spec.session_id_maps = take_maps(&input, sessions);
	spec.mounts = take_mounts(&input, mounts, options);
	if (spec_check(&spec, "box-1").code)
		return 0;
	check_ids(&spec);
	if (spec.capabilities & ~SPEC_CAPABILITIES)
		abort();
	return 0;
}
