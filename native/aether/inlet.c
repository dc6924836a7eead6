#include "inlet.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crash.h"
#include "link.h"
#include "stream.h"

static void release(struct inlet *inlet)
{
	if (inlet->waiting)
		munmap(inlet->waiting, INLET_WINDOW_BYTES);
	inlet->waiting = NULL;
}

static void finish(struct inlet *inlet)
{
	static const uint8_t end_of_file = 4; /* ^D */

	/* A terminal has no end, only the character that says so. */
	if (inlet->is_terminal && inlet->watch.fd >= 0 &&
	    write(inlet->watch.fd, &end_of_file, 1) < 0 && errno == EAGAIN) {
		watch_set(&inlet->watch, EPOLLOUT);
		return;
	}
	/* It stays open for what is typed next. */
	if (!inlet->is_terminal)
		watch_close(&inlet->watch);
	release(inlet);
	if (inlet->closed)
		inlet->closed(inlet);
}

/* Writes bytes; those that do not fit yet are counted as not written. Returns how many were. */
static uint32_t write_some(struct inlet *inlet, const uint8_t *data, uint32_t length)
{
	ssize_t bytes;

	if (length == 0)
		return 0;
	if (inlet->watch.fd < 0)
		return length;
	bytes = write(inlet->watch.fd, data, length);
	if (bytes >= 0)
		return (uint32_t)bytes;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	/* Nobody reads: the rest is taken and dropped, as a pipe without reader would have it. */
	watch_close(&inlet->watch);
	return length;
}

static bool owes_ack(const struct inlet *inlet)
{
	uint64_t bytes = inlet->taken - inlet->acked;

	return bytes >= INLET_WINDOW_BYTES / 2 || (inlet->ended && bytes > 0);
}

static bool owes_credit(const struct inlet *inlet)
{
	uint64_t credit = inlet->written + INLET_WINDOW_BYTES;

	return !inlet->ended && credit - inlet->credit >= INLET_WINDOW_BYTES / 2;
}

static void settle(struct inlet *inlet)
{
	if (inlet->stream && (owes_ack(inlet) || owes_credit(inlet)))
		stream_mark_ready(inlet->stream);
	if (inlet->written < inlet->taken) {
		watch_set(&inlet->watch, EPOLLOUT);
		return;
	}
	release(inlet);
	watch_set(&inlet->watch, 0);
	if (inlet->ended)
		finish(inlet);
}

static void on_ready(struct watch *watch, uint32_t events)
{
	struct inlet *inlet = container_of(watch, struct inlet, watch);

	(void)events;
	while (inlet->written < inlet->taken) {
		uint32_t at = (uint32_t)(inlet->written % INLET_WINDOW_BYTES);
		uint32_t left = (uint32_t)(inlet->taken - inlet->written);
		uint32_t piece = left < INLET_WINDOW_BYTES - at ? left : INLET_WINDOW_BYTES - at;
		uint32_t bytes = write_some(inlet, inlet->waiting + at, piece);

		if (bytes == 0)
			break;
		inlet->written += bytes;
	}
	settle(inlet);
}

void inlet_open(struct inlet *inlet, int fd, bool is_terminal)
{
	inlet->watch = (struct watch){ .fd = fd, .ready = on_ready };
	inlet->is_terminal = is_terminal;
	inlet->credit = INLET_WINDOW_BYTES;
}

static int keep_waiting(struct inlet *inlet, struct dsec_bytes data)
{
	uint32_t at = (uint32_t)(inlet->taken % INLET_WINDOW_BYTES);
	uint32_t first =
		data.length < INLET_WINDOW_BYTES - at ? data.length : INLET_WINDOW_BYTES - at;

	if (data.length == 0)
		return 0;
	if (!inlet->waiting) {
		void *waiting = mmap(NULL, INLET_WINDOW_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (waiting == MAP_FAILED)
			return -ENOMEM;
		inlet->waiting = waiting;
	}
	memcpy(inlet->waiting + at, data.data, first);
	if (data.length > first)
		memcpy(inlet->waiting, data.data + first, data.length - first);
	inlet->taken += data.length;
	return 0;
}

int inlet_take(struct inlet *inlet, const struct dsec_frame *frame)
{
	struct dsec_bytes data = frame->payload;

	/* A host that starts anew cannot know whether its last word arrived. */
	if (inlet->ended && frame->end && data.length == 0 && frame->offset == inlet->taken)
		return 0;
	if (inlet->ended || frame->offset != inlet->taken ||
	    inlet->taken + data.length > inlet->credit)
		return -EPROTO;
	if (inlet->written == inlet->taken) {
		uint32_t bytes = write_some(inlet, data.data, data.length);

		inlet->written += bytes;
		inlet->taken += bytes;
		data.data += bytes;
		data.length -= bytes;
	}
	if (keep_waiting(inlet, data))
		return -ENOMEM;
	inlet->ended = frame->end;
	crash_point(CRASH_STDIN_TAKEN);
	settle(inlet);
	return 0;
}

bool inlet_answer(struct inlet *inlet)
{
	struct dsec_msg_channel channel = { .channel = DSEC_CHANNEL_CHANNEL_STDIN };

	if (owes_ack(inlet)) {
		inlet->acked = inlet->taken;
		link_put_at(DSEC_AETHER_ACK, inlet->stream->number, inlet->acked, &channel);
		return true;
	}
	if (owes_credit(inlet)) {
		inlet->credit = inlet->written + INLET_WINDOW_BYTES;
		link_put_at(DSEC_AETHER_CREDIT, inlet->stream->number, inlet->credit, &channel);
		return true;
	}
	return false;
}

void inlet_restart(struct inlet *inlet, struct stream *stream)
{
	release(inlet);
	watch_set(&inlet->watch, 0);
	inlet->stream = stream;
	inlet->ended = false;
	inlet->written = inlet->taken = inlet->acked = 0;
	inlet->credit = INLET_WINDOW_BYTES;
}

void inlet_close(struct inlet *inlet)
{
	watch_close(&inlet->watch);
	release(inlet);
}
