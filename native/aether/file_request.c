#include "file_request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crash.h"
#include "failure.h"
#include "guests.h"
#include "inlet.h"
#include "link.h"
#include "outlet.h"
#include "source.h"
#include "stream.h"
#include "worker.h"

enum {
	REQUESTS_MAX = 64,
	/* The host connects at about the time when it sends the token. */
	TOKEN_DEADLINE_MS = 10000,
};

struct request {
	struct request *next;
	struct stream stream;
	uint8_t code;
	bool is_raw;
	bool awaits; /* its raw stream */
	struct timer deadline;
	struct watch worker; /* the socket to it */
	struct inlet input;
	struct outlet outlet;
	struct source output;
	uint8_t answer_code; /* 0: not known yet */
	uint32_t answer_length;
	uint8_t *answer;
	uint32_t length;
	uint8_t payload[];
};

static struct request *requests;
static uint32_t request_count;
static struct worker_packet packet;

static void free_request(struct request *request)
{
	struct request **at = &requests;

	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	request_count--;
	timer_stop(&request->deadline);
	stream_close(&request->stream);
	/* A worker that still runs takes this as its cancellation. */
	watch_close(&request->worker);
	inlet_close(&request->input);
	source_close(&request->output);
	link_forget_outlet(&request->outlet);
	outlet_free(&request->outlet);
	free(request->answer);
	free(request);
}

static void fail(struct request *request, const char *code, int errno_value, const char *message)
{
	if (request->stream.number != 0)
		link_put_error(request->stream.number, code, errno_value, message);
	free_request(request);
}

static void commit(struct request *request)
{
	char word = WORKER_COMMIT;

	crash_point(CRASH_FILE_COMMIT);
	if (send(request->worker.fd, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

static void on_packet(struct watch *watch, uint32_t events)
{
	struct request *request = container_of(watch, struct request, worker);
	ssize_t bytes = recv(watch->fd, &packet, sizeof(packet), MSG_DONTWAIT);

	(void)events;
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes < 1) {
		fail(request, DSEC_ERROR_INTERNAL, 0, "the worker was lost");
		return;
	}
	if (packet.code == WORKER_READY) {
		/*
		 * All bytes are in the new file. A raw stream ends the same way when the host dies,
		 * but then the link has ended as well.
		 */
		if (request->is_raw ? link_is_up() : request->input.ended)
			commit(request);
		return;
	}
	request->answer_code = packet.code;
	request->answer_length = (uint32_t)bytes - 1;
	request->answer = malloc((size_t)bytes);
	if (!request->answer) {
		fail(request, DSEC_ERROR_OVERLOADED, ENOMEM, "out of memory");
		return;
	}
	memcpy(request->answer, packet.payload, request->answer_length);
	watch_close(&request->worker);
	stream_mark_ready(&request->stream);
}

static void on_output_ended(struct source *source)
{
	(void)source;
}

static int make_pipe(int *read_end, int *write_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	*read_end = fds[0];
	*write_end = fds[1];
	return 0;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int start_worker(struct request *request, int raw)
{
	struct worker_task task = {
		.code = request->code,
		.payload = { request->payload, request->length },
		.control = -1,
		.input = -1,
		.output = -1,
		.raw = raw,
	};
	bool reads =
		request->code == DSEC_AETHER_FILE_WRITE || request->code == DSEC_AETHER_PORT_OPEN;
	bool writes =
		request->code == DSEC_AETHER_FILE_READ || request->code == DSEC_AETHER_PORT_OPEN;
	int input = -1, output = -1;
	int pair[2];
	int err = 0;

	if (raw < 0 && reads)
		err = make_pipe(&task.input, &input);
	if (!err && raw < 0 && writes)
		err = make_pipe(&output, &task.output);
	if (!err && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		err = -errno;
	if (!err) {
		pid_t pid;

		task.control = pair[1];
		pid = fork();
		if (pid == 0)
			worker_run(&task);
		err = pid < 0 ? -errno : 0;
		close(pair[1]);
		request->worker = (struct watch){ .fd = pair[0], .ready = on_packet };
	}
	close_if(task.input);
	close_if(task.output);
	if (err) {
		close_if(input);
		close_if(output);
		return err;
	}
	inlet_open(&request->input, input, false);
	request->outlet.ended = request->outlet.end_sent = output < 0;
	if (output >= 0) {
		request->output.outlet = &request->outlet;
		err = source_open(&request->output, output);
	}
	crash_point(CRASH_FILE_WORKER);
	return err ? err : watch_set(&request->worker, EPOLLIN);
}

static void begin(struct request *request, int raw)
{
	int err = start_worker(request, raw);

	if (err)
		fail(request, failure_code(-err), -err, "the worker could not be started");
}

static void on_deadline(struct timer *timer)
{
	fail(container_of(timer, struct request, deadline), DSEC_ERROR_DEADLINE_EXCEEDED, 0,
	     "nobody connected with the raw token");
}

/* The token of a message that has one, NULL without. */
static const uint8_t *raw_token(const struct dsec_frame *frame)
{
	struct dsec_msg_file_read read_message;
	struct dsec_msg_file_write write_message;
	struct dsec_msg_port_open port_message;

	switch (frame->type->code) {
	case DSEC_AETHER_FILE_READ:
		dsec_message_decode(frame->type->message, frame->payload, &read_message);
		return read_message.raw_token.data;
	case DSEC_AETHER_FILE_WRITE:
		dsec_message_decode(frame->type->message, frame->payload, &write_message);
		return write_message.raw_token.data;
	case DSEC_AETHER_PORT_OPEN:
		dsec_message_decode(frame->type->message, frame->payload, &port_message);
		return port_message.raw_token.data;
	default:
		return NULL;
	}
}

static const struct stream_kind request_stream;

static struct request *add(const struct dsec_frame *frame)
{
	struct request *request = calloc(1, sizeof(*request) + frame->payload.length);

	if (!request)
		return NULL;
	request->code = frame->type->code;
	request->length = frame->payload.length;
	if (request->length > 0)
		memcpy(request->payload, frame->payload.data, request->length);
	request->deadline.fire = on_deadline;
	request->worker.fd = request->output.watch.fd = request->input.watch.fd = -1;
	request->input.stream = request->output.stream = &request->stream;
	request->output.ended = on_output_ended;
	outlet_init(&request->outlet, DSEC_WINDOW_BYTES_MIN, false);
	request->next = requests;
	requests = request;
	request_count++;
	return request;
}

int file_request(const struct dsec_frame *frame)
{
	const uint8_t *token = raw_token(frame);
	struct request *request = request_count < REQUESTS_MAX ? add(frame) : NULL;
	int raw;

	if (!request) {
		link_put_error(frame->stream, DSEC_ERROR_OVERLOADED, 0,
			       "too many file and port requests at a time");
		return 0;
	}
	stream_open(&request->stream, &request_stream, frame->stream);
	request->is_raw = token;
	raw = token ? guests_take(token) : -1;
	if (token && raw < 0) {
		request->awaits = true;
		timer_start(&request->deadline, TOKEN_DEADLINE_MS);
		return 0;
	}
	begin(request, raw);
	close_if(raw);
	return 0;
}

/* The token in a request's own copy of its message. */
static const uint8_t *token_of(const struct request *request)
{
	struct dsec_frame frame = {
		.type = dsec_frame_type(&dsec_aether_protocol, request->code),
		.payload = { request->payload, request->length },
	};

	return raw_token(&frame);
}

static bool same_token(const uint8_t *one, const uint8_t *other)
{
	uint8_t difference = 0;

	for (int i = 0; i < DSEC_NONCE_BYTES; i++)
		difference |= one[i] ^ other[i];
	return difference == 0;
}

static struct request *awaiting(const uint8_t token[DSEC_NONCE_BYTES])
{
	struct request *request = requests;

	while (request && !(request->awaits && same_token(token_of(request), token)))
		request = request->next;
	return request;
}

bool file_request_awaits(const uint8_t token[DSEC_NONCE_BYTES])
{
	return awaiting(token);
}

void file_request_raw(const uint8_t token[DSEC_NONCE_BYTES], int fd)
{
	struct request *request = awaiting(token);

	if (request) {
		request->awaits = false;
		timer_stop(&request->deadline);
		begin(request, fd);
	}
	/* From here on the worker's alone. */
	close(fd);
}

static bool produce(struct stream *stream)
{
	struct request *request = container_of(stream, struct request, stream);
	bool failed = request->answer_code == DSEC_AETHER_ERROR;

	if (inlet_answer(&request->input))
		return true;
	if (!failed && outlet_has_frame(&request->outlet)) {
		link_put_data(DSEC_AETHER_STDOUT, stream->number, &request->outlet);
		source_resume(&request->output);
		return true;
	}
	if (request->answer_code == 0 || !(failed || outlet_is_done(&request->outlet)))
		return false;
	if (link_put_payload(request->answer_code, stream->number,
			     (struct dsec_bytes){ request->answer, request->answer_length }))
		fail(request, DSEC_ERROR_INTERNAL, EPROTO, "the worker's answer makes no sense");
	else
		free_request(request);
	return false;
}

static int take_channel_frame(struct request *request, const struct dsec_frame *frame)
{
	struct dsec_msg_channel message;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	if (message.channel != DSEC_CHANNEL_CHANNEL_STDOUT)
		return -EPROTO;
	if (frame->type->code == DSEC_AETHER_ACK)
		return outlet_ack(&request->outlet, frame->offset);
	outlet_grant(&request->outlet, frame->offset);
	stream_mark_ready(&request->stream);
	return 0;
}

static int consume(struct stream *stream, const struct dsec_frame *frame)
{
	struct request *request = container_of(stream, struct request, stream);

	switch (frame->type->code) {
	case DSEC_AETHER_STDIN:
		/* Only where bytes are expected, and not beside a raw stream. */
		if (request->is_raw || (request->code != DSEC_AETHER_FILE_WRITE &&
					request->code != DSEC_AETHER_PORT_OPEN))
			return -EPROTO;
		return inlet_take(&request->input, frame);
	case DSEC_AETHER_ACK:
	case DSEC_AETHER_CREDIT:
		return take_channel_frame(request, frame);
	case DSEC_AETHER_CANCEL:
		fail(request, DSEC_ERROR_CANCELLED, 0, "cancelled");
		return 0;
	case DSEC_AETHER_ERROR:
		free_request(request);
		return 0;
	default:
		return -EPROTO;
	}
}

static void detached(struct stream *stream)
{
	free_request(container_of(stream, struct request, stream));
}

static const struct stream_kind request_stream = {
	.produce = produce,
	.consume = consume,
	.detached = detached,
};
