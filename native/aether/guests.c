#include "guests.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crash.h"
#include "file_request.h"
#include "link.h"
#include "loop.h"
#include "platform.h"

enum {
	GUESTS_MAX = 16,
	GUEST_DEADLINE_MS = 5000,
	/* Longest hello; a raw token is shorter than a header. */
	HELLO_BYTES_MAX = 128,
};

struct guest {
	struct watch watch;
	struct timer deadline;
	uint32_t used;
	uint8_t bytes[HELLO_BYTES_MAX];
};

static struct guest guests[GUESTS_MAX];
static struct watch listener;
static uint32_t epoch_seen;

static void leave(struct guest *guest)
{
	timer_stop(&guest->deadline);
	watch_close(&guest->watch);
	/* A place is free again for those that wait in the socket's queue. */
	watch_set(&listener, EPOLLIN);
}

/* Hands the descriptor on and frees the place. */
static int take_descriptor(struct guest *guest)
{
	int fd = guest->watch.fd;

	watch_set(&guest->watch, 0);
	guest->watch.fd = -1;
	leave(guest);
	return fd;
}

static void refuse(struct guest *guest, uint32_t epoch, const char *code, const char *why)
{
	uint8_t bytes[512];
	struct dsec_frame frame = {
		.type = dsec_frame_type(&dsec_aether_protocol, DSEC_AETHER_ERROR),
		.epoch = epoch,
	};
	struct dsec_msg_error error = {
		.code = { (const uint8_t *)code, (uint32_t)strlen(code) },
		.message = { (const uint8_t *)why, (uint32_t)strlen(why) },
	};
	int length = dsec_frame_encode(&frame, &error, bytes, sizeof(bytes));

	/* Best effort: whoever does not read it sees the connection close. */
	if (length > 0)
		length = (int)write(guest->watch.fd, bytes, (size_t)length);
	leave(guest);
}

static void welcome(struct guest *guest, const struct dsec_frame *frame)
{
	struct dsec_msg_hello hello;
	struct dsec_msg_welcome answer = {
		.version = DSEC_FRAME_VERSION,
		.agent_version = { (const uint8_t *)AETHER_VERSION, sizeof(AETHER_VERSION) - 1 },
		.instance = { platform_instance(), DSEC_NONCE_BYTES },
	};
	uint8_t nonce[DSEC_NONCE_BYTES];

	dsec_message_decode(frame->type->message, frame->payload, &hello);
	if (frame->epoch < epoch_seen) {
		refuse(guest, frame->epoch, DSEC_ERROR_CONFLICT,
		       "a host of a newer epoch was here");
		return;
	}
	epoch_seen = frame->epoch;
	memcpy(nonce, hello.nonce.data, sizeof(nonce));
	answer.nonce = (struct dsec_bytes){ nonce, sizeof(nonce) };
	link_adopt(take_descriptor(guest), frame->epoch);
	link_put(DSEC_AETHER_WELCOME, 0, &answer);
	crash_point(CRASH_WELCOME);
}

/* A hello tells itself from a token by the type, and by the zeros of flags and stream. */
static bool may_be_hello(const uint8_t bytes[DSEC_NONCE_BYTES])
{
	static const uint8_t start[] = { DSEC_FRAME_VERSION, DSEC_AETHER_HELLO, 0, 0, 0, 0, 0, 0 };

	return !memcmp(bytes + 4, start, sizeof(start));
}

/*
 * How many bytes are needed before the next decision: reading no more than that leaves what follows
 * a hello or a token to its next reader. 0 when the bytes are a whole hello, negative for nonsense.
 */
static int bytes_wanted(const struct guest *guest, struct dsec_frame *frame)
{
	int length;

	if (guest->used < DSEC_NONCE_BYTES)
		return DSEC_NONCE_BYTES;
	if (guest->used < DSEC_FRAME_HEADER_BYTES)
		return DSEC_FRAME_HEADER_BYTES;
	if (dsec_frame_decode_header(&dsec_aether_protocol, DSEC_FROM_CLIENT, guest->bytes, frame))
		return -EPROTO;
	length = DSEC_FRAME_HEADER_BYTES + (int)frame->payload.length;
	if (frame->type->code != DSEC_AETHER_HELLO || length > HELLO_BYTES_MAX)
		return -EPROTO;
	if (guest->used < (uint32_t)length)
		return length;
	length = dsec_frame_decode(&dsec_aether_protocol, DSEC_FROM_CLIENT,
				   (struct dsec_bytes){ guest->bytes, guest->used }, frame);
	return length > 0 ? 0 : -EPROTO;
}

/* Hands the connection to the request that waits for it, or waits for that request. */
static void take_token(struct guest *guest)
{
	uint8_t token[DSEC_NONCE_BYTES];

	memcpy(token, guest->bytes, sizeof(token));
	if (file_request_awaits(token))
		file_request_raw(token, take_descriptor(guest));
	else
		watch_set(&guest->watch, 0);
}

static void on_bytes(struct watch *watch, uint32_t events)
{
	struct guest *guest = container_of(watch, struct guest, watch);
	struct dsec_frame frame;
	int wanted;

	(void)events;
	while ((wanted = bytes_wanted(guest, &frame)) > 0) {
		ssize_t bytes =
			read(watch->fd, guest->bytes + guest->used, (size_t)wanted - guest->used);

		if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (bytes <= 0) {
			leave(guest);
			return;
		}
		guest->used += (uint32_t)bytes;
		if (guest->used == DSEC_NONCE_BYTES && !may_be_hello(guest->bytes)) {
			take_token(guest);
			return;
		}
	}
	if (wanted < 0)
		refuse(guest, 0, DSEC_ERROR_PROTOCOL, "expected a hello");
	else
		welcome(guest, &frame);
}

int guests_take(const uint8_t *token)
{
	for (struct guest *guest = guests; guest < guests + GUESTS_MAX; guest++) {
		if (guest->watch.fd >= 0 && guest->used == DSEC_NONCE_BYTES &&
		    !memcmp(guest->bytes, token, DSEC_NONCE_BYTES))
			return take_descriptor(guest);
	}
	return -1;
}

static void on_deadline(struct timer *timer)
{
	leave(container_of(timer, struct guest, deadline));
}

static void on_connection(struct watch *watch, uint32_t events)
{
	struct guest *guest = guests;
	int fd;

	(void)events;
	while (guest < guests + GUESTS_MAX && guest->watch.fd >= 0)
		guest++;
	if (guest == guests + GUESTS_MAX) {
		watch_set(watch, 0);
		return;
	}
	fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	crash_point(CRASH_ACCEPT);
	*guest = (struct guest){
		.watch = { .fd = fd, .ready = on_bytes },
		.deadline = { .fire = on_deadline },
	};
	timer_start(&guest->deadline, GUEST_DEADLINE_MS);
	if (watch_set(&guest->watch, EPOLLIN))
		leave(guest);
}

int guests_init(int fd)
{
	for (int i = 0; i < GUESTS_MAX; i++)
		guests[i].watch.fd = -1;
	listener = (struct watch){ .fd = fd, .ready = on_connection };
	return watch_set(&listener, EPOLLIN);
}
