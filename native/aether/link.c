#include "link.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "crash.h"
#include "dispatch.h"
#include "loop.h"
#include "outlet.h"
#include "stream.h"

enum {
	IN_BYTES = DSEC_FRAME_HEADER_BYTES + DSEC_FRAME_PAYLOAD_BYTES_MAX,
	/* Longest frame that is copied: a listing, or the rest of a data frame. */
	PUT_BYTES_MAX = DSEC_FRAME_HEADER_BYTES + DSEC_FRAME_DATA_BYTES_MAX,
	/* While more than this waits, nothing is read and no stream is asked. */
	OUT_BYTES_HIGH = 64 * 1024,
	OUT_BYTES = OUT_BYTES_HIGH + 3 * PUT_BYTES_MAX,
	/* Shorter data is copied: fewer writes, and nothing to keep track of. */
	COPY_BYTES_MAX = 4096,
	/* Buffers that grew beyond this give their pages back when all is quiet. */
	QUIET_BYTES_MAX = 4096,
	PARTING_READS = 16,
};

static void on_ready(struct watch *watch, uint32_t events);

static struct watch watch = { .fd = -1, .ready = on_ready };
static uint32_t epoch;
static uint64_t sequence;
static bool failed;
static bool blocked;
static bool is_large; /* buffers have been used beyond QUIET_BYTES_MAX */

_Alignas(4096) static uint8_t in[IN_BYTES];
static uint32_t in_used;
_Alignas(4096) static uint8_t out[OUT_BYTES];
static uint32_t out_from, out_to;

/* A data frame that is being written from its ring. It goes before everything in `out`. */
static struct {
	const struct outlet *outlet;
	uint8_t header[DSEC_FRAME_HEADER_BYTES];
	uint32_t header_left;
	uint64_t offset;
	uint32_t left;
} flight;

static uint32_t out_waiting(void)
{
	return out_to - out_from;
}

static bool has_room(void)
{
	return out_waiting() <= OUT_BYTES_HIGH;
}

/* Makes sure that `length` bytes fit behind what waits. */
static uint8_t *out_reserve(uint32_t length)
{
	if (OUT_BYTES - out_to < length) {
		memmove(out, out + out_from, out_waiting());
		out_to -= out_from;
		out_from = 0;
	}
	if (OUT_BYTES - out_to < length) {
		failed = true;
		return NULL;
	}
	if (out_to + length > QUIET_BYTES_MAX)
		is_large = true;
	return out + out_to;
}

static struct dsec_frame frame_of(uint8_t code, uint32_t stream, uint64_t offset)
{
	return (struct dsec_frame){
		.type = dsec_frame_type(&dsec_aether_protocol, code),
		.stream = stream,
		.epoch = epoch,
		.offset = offset,
	};
}

void link_put_at(uint8_t code, uint32_t stream, uint64_t offset, const void *message)
{
	struct dsec_frame frame = frame_of(code, stream, offset);
	uint32_t longest = DSEC_FRAME_HEADER_BYTES + frame.type->payload_bytes_max;
	uint8_t *to;
	int length;

	if (watch.fd < 0 || failed)
		return;
	to = out_reserve(longest < PUT_BYTES_MAX ? longest : PUT_BYTES_MAX);
	if (!to)
		return;
	length = dsec_frame_encode(&frame, message, to, (size_t)(out + OUT_BYTES - to));
	if (length < 0)
		failed = true;
	else
		out_to += (uint32_t)length;
}

void link_put(uint8_t code, uint32_t stream, const void *message)
{
	link_put_at(code, stream, ++sequence, message);
}

int link_put_payload(uint8_t code, uint32_t stream, struct dsec_bytes payload)
{
	struct dsec_frame frame = frame_of(code, stream, ++sequence);
	uint8_t *to;

	if (watch.fd < 0 || failed)
		return 0;
	if (!frame.type || !frame.type->message || payload.length > DSEC_FRAME_DATA_BYTES_MAX ||
	    dsec_message_decode(frame.type->message, payload, NULL))
		return -EPROTO;
	frame.payload = payload;
	to = out_reserve(DSEC_FRAME_HEADER_BYTES + payload.length);
	if (!to || dsec_frame_encode_header(&frame, to))
		return -EPROTO;
	if (payload.length > 0)
		memcpy(to + DSEC_FRAME_HEADER_BYTES, payload.data, payload.length);
	out_to += DSEC_FRAME_HEADER_BYTES + payload.length;
	return 0;
}

void link_put_error(uint32_t stream, const char *code, int errno_value, const char *message)
{
	struct dsec_msg_error error = {
		.code = { (const uint8_t *)code, (uint32_t)strlen(code) },
		.message = { (const uint8_t *)message, (uint32_t)strlen(message) },
	};

	if (errno_value > 0) {
		error.errno_value = errno_value;
		error.present |= DSEC_ERROR_HAS_ERRNO_VALUE;
	}
	link_put(DSEC_AETHER_ERROR, stream, &error);
}

bool link_put_data(uint8_t code, uint32_t stream, struct outlet *outlet)
{
	struct dsec_frame frame = frame_of(code, stream, outlet->sent);
	struct iovec pieces[2];
	uint8_t *to;

	if (flight.outlet)
		return false;
	frame.payload.length = outlet_sendable(outlet);
	frame.end = outlet->ended && outlet->sent + frame.payload.length == outlet->head;
	if (frame.payload.length > COPY_BYTES_MAX && out_waiting() == 0) {
		if (dsec_frame_encode_header(&frame, flight.header))
			failed = true;
		flight.outlet = outlet;
		flight.header_left = DSEC_FRAME_HEADER_BYTES;
		flight.offset = frame.offset;
		flight.left = frame.payload.length;
	} else {
		to = out_reserve(DSEC_FRAME_HEADER_BYTES + frame.payload.length);
		if (!to || dsec_frame_encode_header(&frame, to)) {
			failed = true;
			return true;
		}
		to += DSEC_FRAME_HEADER_BYTES;
		for (int i = 0,
			 n = outlet_pieces(outlet, frame.offset, frame.payload.length, pieces);
		     i < n; i++) {
			memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
			to += pieces[i].iov_len;
		}
		out_to += DSEC_FRAME_HEADER_BYTES + frame.payload.length;
	}
	outlet_sent(outlet, frame.offset + frame.payload.length, frame.end);
	crash_point(CRASH_OUTPUT_SENT);
	return true;
}

void link_forget_outlet(const struct outlet *outlet)
{
	struct iovec pieces[2];
	uint32_t rest = flight.header_left + flight.left;
	uint8_t *to = out;

	if (flight.outlet != outlet)
		return;
	/* The frame goes before everything else, so what is put already moves behind it. */
	if (rest > OUT_BYTES - out_waiting()) {
		failed = true;
		return;
	}
	memmove(out + rest, out + out_from, out_waiting());
	out_to = rest + out_waiting();
	out_from = 0;
	memcpy(to, flight.header + DSEC_FRAME_HEADER_BYTES - flight.header_left,
	       flight.header_left);
	to += flight.header_left;
	for (int i = 0, n = outlet_pieces(outlet, flight.offset, flight.left, pieces); i < n; i++) {
		memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
		to += pieces[i].iov_len;
	}
	is_large = true;
	memset(&flight, 0, sizeof(flight));
}

/* Counts written bytes off the frame in flight, then off the buffer. */
static void written(size_t bytes)
{
	uint32_t part = bytes < flight.header_left ? (uint32_t)bytes : flight.header_left;

	flight.header_left -= part;
	bytes -= part;
	part = bytes < flight.left ? (uint32_t)bytes : flight.left;
	flight.offset += part;
	flight.left -= part;
	bytes -= part;
	if (flight.outlet && flight.header_left == 0 && flight.left == 0)
		flight.outlet = NULL;
	out_from += (uint32_t)bytes;
	if (out_from == out_to)
		out_from = out_to = 0;
}

/* Writes what the connection takes. Returns true when nothing is left. */
static bool flush(void)
{
	while (!failed && (flight.outlet || out_waiting() > 0)) {
		struct iovec parts[4];
		int count = 0;
		ssize_t bytes;

		if (flight.header_left > 0)
			parts[count++] = (struct iovec){
				flight.header + DSEC_FRAME_HEADER_BYTES - flight.header_left,
				flight.header_left,
			};
		if (flight.left > 0)
			count += outlet_pieces(flight.outlet, flight.offset, flight.left,
					       parts + count);
		if (out_waiting() > 0)
			parts[count++] = (struct iovec){ out + out_from, out_waiting() };
		bytes = writev(watch.fd, parts, count);
		if (bytes > 0) {
			written((size_t)bytes);
		} else if (errno == EAGAIN) {
			blocked = true;
			return false;
		} else if (errno != EINTR) {
			failed = true;
		}
	}
	return !failed;
}

/* Ends the link after what was put, an error most often. */
static void part(void)
{
	flush();
	failed = true;
	/* A socket that is closed with bytes unread takes back what it sent: the error would be
	 * lost. */
	for (int i = 0; i < PARTING_READS && read(watch.fd, in, sizeof(in)) > 0; i++)
		in_used = 0;
}

static void violation(const char *why)
{
	link_put_error(0, DSEC_ERROR_PROTOCOL, 0, why);
	part();
}

/* Handles the whole frames in the buffer, as long as there is room for their answers. */
static bool take_frames(void)
{
	uint32_t at = 0;

	while (!failed && has_room()) {
		struct dsec_frame frame;
		int length =
			dsec_frame_decode(&dsec_aether_protocol, DSEC_FROM_CLIENT,
					  (struct dsec_bytes){ in + at, in_used - at }, &frame);

		if (length == 0)
			break;
		if (length < 0 || frame.epoch != epoch) {
			violation("malformed frame");
			break;
		}
		at += (uint32_t)length;
		length = dispatch_frame(&frame);
		if (length == -EPROTO)
			violation(frame.type->name);
		else if (length)
			part();
	}
	if (!failed) {
		memmove(in, in + at, in_used - at);
		in_used -= at;
	}
	return at > 0;
}

static void receive(void)
{
	/* A few reads at most, so that a host that sends without end keeps no command waiting. */
	for (int i = 0; i < 4 && !failed && has_room() && in_used < IN_BYTES; i++) {
		ssize_t bytes = read(watch.fd, in + in_used, IN_BYTES - in_used);

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0 && errno == EAGAIN)
			break;
		if (bytes <= 0) {
			failed = true;
			break;
		}
		in_used += (uint32_t)bytes;
		if (in_used > QUIET_BYTES_MAX)
			is_large = true;
		take_frames();
	}
}

static void on_ready(struct watch *ready, uint32_t events)
{
	(void)ready;
	blocked = false;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive();
}

static void drop(void)
{
	watch_close(&watch);
	memset(&flight, 0, sizeof(flight));
	in_used = out_from = out_to = 0;
	failed = blocked = false;
	stream_detach_all();
}

static void give_pages_back(void)
{
	if (!is_large || in_used > 0 || out_waiting() > 0 || stream_busy_count() > 0)
		return;
	madvise(in, sizeof(in) & ~4095u, MADV_DONTNEED);
	madvise(out, sizeof(out) & ~4095u, MADV_DONTNEED);
	is_large = false;
}

void link_settle(void)
{
	bool progress = true;

	while (watch.fd >= 0 && !failed && progress) {
		struct stream *stream;

		progress = false;
		if (!blocked && !flush())
			break;
		while (!failed && has_room() && !flight.outlet && (stream = stream_next_ready())) {
			if (stream->kind->produce(stream))
				stream_mark_ready(stream);
			progress = true;
		}
		if (in_used > 0 && has_room() && take_frames())
			progress = true;
		if (blocked)
			break;
	}
	if (failed)
		drop();
	if (watch.fd >= 0)
		watch_set(&watch, (has_room() ? EPOLLIN : 0u) | (blocked ? EPOLLOUT : 0u));
	give_pages_back();
}

void link_adopt(int fd, uint32_t new_epoch)
{
	drop();
	watch.fd = fd;
	epoch = new_epoch;
	if (watch_set(&watch, EPOLLIN))
		failed = true;
}
