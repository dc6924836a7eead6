#include "link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ceiling.h"
#include "epoch.h"
#include "host.h"
#include "idle.h"
#include "loop.h"

enum {
	CONNECTIONS_MAX = 16,
	INPUT_BYTES = DSEC_FRAME_HEADER_BYTES + DSEC_FRAME_PAYLOAD_BYTES_MAX,
	OUTPUT_BYTES = 512 * 1024,
	/* No request is taken while this much waits to be read by the edge. */
	OUTPUT_HIGH_BYTES = OUTPUT_BYTES / 4,
};

struct connection {
	struct watch watch;
	uint64_t id;
	uint64_t sequence;
	uint32_t epoch;
	bool welcome; /* hello was accepted */
	bool broken;
	uint32_t input_length;
	uint32_t output_length;
	uint8_t input[INPUT_BYTES];
	uint8_t output[OUTPUT_BYTES];
};

static struct connection *connections[CONNECTIONS_MAX];
static uint64_t last_id;
static uint32_t newest_epoch;
static uint8_t instance[DSEC_NONCE_BYTES];
static void (*handle_request)(struct origin origin, const struct dsec_frame *frame);

bool link_is_used(void)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (connections[i])
			return true;
	}
	return false;
}

static void drop(struct connection *connection)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (connections[i] == connection)
			connections[i] = NULL;
	}
	watch_close(&connection->watch);
	free(connection);
	if (!link_is_used())
		idle_begin();
}

static void flush(struct connection *connection)
{
	while (connection->output_length > 0 && !connection->broken) {
		ssize_t sent = send(connection->watch.fd, connection->output,
				    connection->output_length, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0) {
			connection->broken = errno != EAGAIN;
			break;
		}
		connection->output_length -= (uint32_t)sent;
		memmove(connection->output, connection->output + sent, connection->output_length);
	}
	watch_change(&connection->watch,
		     (connection->output_length < OUTPUT_HIGH_BYTES ? EPOLLIN : 0) |
			     (connection->output_length > 0 || connection->broken ? EPOLLOUT : 0));
}

static void put(struct connection *connection, uint8_t code, uint32_t stream, const void *message)
{
	struct dsec_frame frame = {
		.type = dsec_frame_type(&dsec_launcher_protocol, code),
		.stream = stream,
		.epoch = connection->epoch,
		.offset = connection->sequence++,
	};
	int length =
		dsec_frame_encode(&frame, message, connection->output + connection->output_length,
				  OUTPUT_BYTES - connection->output_length);

	if (length < 0)
		connection->broken = true;
	else
		connection->output_length += (uint32_t)length;
	flush(connection);
}

static struct connection *find(uint64_t id)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (connections[i] && connections[i]->id == id)
			return connections[i];
	}
	return NULL;
}

void link_answer(struct origin to, uint8_t code, const void *message)
{
	struct connection *connection = find(to.connection);

	if (connection)
		put(connection, code, to.stream, message);
}

void link_done(struct origin to)
{
	link_answer(to, DSEC_LAUNCHER_DONE, &(struct dsec_msg_launcher_empty){ 0 });
}

static struct dsec_bytes text(const char *string)
{
	return (struct dsec_bytes){ (const uint8_t *)string, (uint32_t)strlen(string) };
}

void link_fail(struct origin to, const struct failure *failure)
{
	struct dsec_msg_launcher_error message = {
		.code = text(failure->code),
		.message = text(failure->message ? failure->message : ""),
		.errno_value = failure->err,
		.step = text(failure->step),
	};

	if (failure->err > 0)
		message.present |= DSEC_LAUNCHER_ERROR_HAS_ERRNO_VALUE;
	if (failure->step[0])
		message.present |= DSEC_LAUNCHER_ERROR_HAS_STEP;
	link_answer(to, DSEC_LAUNCHER_ERROR, &message);
}

void link_tell_all(uint8_t code, const void *message)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (connections[i] && connections[i]->welcome)
			put(connections[i], code, 0, message);
	}
}

/* An edge of a newer epoch has taken the state root over: those before it must not act any more. */
static void close_older(uint32_t epoch)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (connections[i] && connections[i]->welcome && connections[i]->epoch < epoch)
			drop(connections[i]);
	}
}

static int hello(struct connection *connection, const struct dsec_frame *frame)
{
	struct dsec_msg_launcher_welcome welcome = {
		.version = DSEC_FRAME_VERSION,
		.launcher_version = text(LAUNCHER_VERSION),
		.instance = { instance, sizeof(instance) },
	};
	struct dsec_msg_launcher_hello message;
	struct failure failure;
	struct origin origin = { connection->id, 0 };
	int err;

	if (frame->type->code != DSEC_LAUNCHER_HELLO)
		return -EPROTO;
	dsec_message_decode(frame->type->message, frame->payload, &message);
	connection->epoch = frame->epoch;
	if (message.edge_id.length != strlen(host.edge_id) ||
	    memcmp(message.edge_id.data, host.edge_id, message.edge_id.length)) {
		failure = failure_of(DSEC_ERROR_PERMISSION_DENIED,
				     "this launcher serves another edge");
		link_fail(origin, &failure);
		return -EPROTO;
	}
	if (frame->epoch < newest_epoch) {
		failure = failure_of(DSEC_ERROR_CONFLICT, "a newer edge has taken over");
		link_fail(origin, &failure);
		return -EPROTO;
	}
	err = ceiling_set();
	if (!err && frame->epoch > newest_epoch)
		err = epoch_store(frame->epoch);
	if (err) {
		failure = failure_at("hello", -err);
		link_fail(origin, &failure);
		return -EPROTO;
	}
	newest_epoch = frame->epoch;
	close_older(newest_epoch);
	connection->welcome = true;
	welcome.nonce = message.nonce;
	put(connection, DSEC_LAUNCHER_WELCOME, 0, &welcome);
	return 0;
}

static int take(struct connection *connection, const struct dsec_frame *frame)
{
	if (!connection->welcome)
		return hello(connection, frame);
	if (frame->type->code == DSEC_LAUNCHER_HELLO || frame->epoch != connection->epoch)
		return -EPROTO;
	handle_request((struct origin){ connection->id, frame->stream }, frame);
	return 0;
}

/* Handles the whole frames in the buffer, as long as there is room for their answers. */
static int take_all(struct connection *connection)
{
	uint32_t at = 0;
	int length = 0;

	while (connection->output_length < OUTPUT_HIGH_BYTES) {
		struct dsec_bytes rest = { connection->input + at, connection->input_length - at };
		struct dsec_frame frame;

		length = dsec_frame_decode(&dsec_launcher_protocol, DSEC_FROM_CLIENT, rest, &frame);
		if (length <= 0)
			break;
		at += (uint32_t)length;
		length = take(connection, &frame);
		if (length < 0)
			break;
	}
	connection->input_length -= at;
	memmove(connection->input, connection->input + at, connection->input_length);
	return length < 0 ? length : 0;
}

static int receive(struct connection *connection)
{
	ssize_t length = recv(connection->watch.fd, connection->input + connection->input_length,
			      INPUT_BYTES - connection->input_length, MSG_DONTWAIT);

	if (length < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (length == 0)
		return -EPIPE;
	connection->input_length += (uint32_t)length;
	return 0;
}

static void connection_ready(struct watch *watch, uint32_t events)
{
	struct connection *connection = container_of(watch, struct connection, watch);
	int err = 0;

	if (events & EPOLLOUT)
		flush(connection);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && connection->input_length < INPUT_BYTES)
		err = receive(connection);
	if (!err)
		err = take_all(connection);
	if (err || connection->broken)
		drop(connection);
}

static bool is_welcome_peer(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	       (peer.uid == 0 || peer.uid == host.edge_uid);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *connection;
	int free_place = 0;

	(void)events;
	if (fd < 0)
		return;
	while (free_place < CONNECTIONS_MAX && connections[free_place])
		free_place++;
	connection = free_place < CONNECTIONS_MAX && is_welcome_peer(fd)
			     ? calloc(1, sizeof(*connection))
			     : NULL;
	if (!connection) {
		close(fd);
		return;
	}
	connection->watch = (struct watch){ fd, connection_ready };
	connection->id = ++last_id;
	connections[free_place] = connection;
	if (watch_add(&connection->watch, EPOLLIN))
		drop(connection);
}

static struct watch listener = { .fd = -1, .ready = listener_ready };

int link_init(void (*request)(struct origin origin, const struct dsec_frame *frame))
{
	int err = epoch_load(&newest_epoch);

	handle_request = request;
	listener.fd = host.listener;
	if (err)
		return err;
	if (getrandom(instance, sizeof(instance), 0) != sizeof(instance))
		return -EIO;
	return watch_add(&listener, EPOLLIN);
}
