#include "stream.h"

#include <errno.h>

enum {
	SLOTS = 256,
};

static struct stream *slots[SLOTS];
static uint32_t open_count;
static uint32_t silent_count;
static struct stream *first_ready;
static struct stream **last_ready = &first_ready;

struct stream *stream_find(uint32_t number)
{
	struct stream *stream = slots[number % SLOTS];

	while (stream && stream->number != number)
		stream = stream->next_same_slot;
	return stream;
}

bool stream_may_open(uint32_t number)
{
	return open_count < DSEC_STREAMS_MAX && !stream_find(number);
}

uint32_t stream_busy_count(void)
{
	return open_count - silent_count;
}

int stream_open(struct stream *stream, const struct stream_kind *kind, uint32_t number)
{
	if (!stream_may_open(number))
		return -EPROTO;
	*stream = (struct stream){
		.kind = kind,
		.number = number,
		.next_same_slot = slots[number % SLOTS],
	};
	slots[number % SLOTS] = stream;
	open_count++;
	silent_count += kind->is_silent;
	return 0;
}

static void drop_ready(struct stream *stream)
{
	struct stream **at = &first_ready;

	if (!stream->ready)
		return;
	while (*at != stream)
		at = &(*at)->next_ready;
	*at = stream->next_ready;
	if (last_ready == &stream->next_ready)
		last_ready = at;
	stream->ready = false;
}

void stream_close(struct stream *stream)
{
	struct stream **at = &slots[stream->number % SLOTS];

	if (stream->number == 0)
		return;
	drop_ready(stream);
	while (*at != stream)
		at = &(*at)->next_same_slot;
	*at = stream->next_same_slot;
	stream->number = 0;
	open_count--;
	silent_count -= stream->kind->is_silent;
}

void stream_detach_all(void)
{
	for (int i = 0; i < SLOTS; i++) {
		while (slots[i]) {
			struct stream *stream = slots[i];

			stream_close(stream);
			stream->kind->detached(stream);
		}
	}
}

struct stream *stream_next_ready(void)
{
	struct stream *stream = first_ready;

	if (stream)
		drop_ready(stream);
	return stream;
}

void stream_mark_ready(struct stream *stream)
{
	if (stream->ready || stream->number == 0)
		return;
	stream->ready = true;
	stream->next_ready = NULL;
	*last_ready = stream;
	last_ready = &stream->next_ready;
}
