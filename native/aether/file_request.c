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
#include "raw_token.h"
#include "rules.h"
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
	/* Of a write: the worker has all bytes that came, and the host has said how many there are.
	 */
	bool is_whole, is_ended;
	uint64_t whole_bytes, ended_bytes;
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

static struct dsec_bytes payload_of(const struct request *request)
{
	return (struct dsec_bytes){ request->payload, request->length };
}

/*
 * The file gets its name when the worker has as many bytes as the host says that it has. Where
 * bytes come raw, the end of their connection says nothing: it also ends when the host dies.
 */
static void commit_if_whole(struct request *request)
{
	char word = WORKER_COMMIT;

	if (!request->is_whole || !request->is_ended)
		return;
	if (request->whole_bytes != request->ended_bytes) {
		fail(request, DSEC_ERROR_UNAVAILABLE, 0,
		     "bytes of the file were lost on their way");
		return;
	}
	crash_point(CRASH_FILE_COMMIT);
	/* A worker that is gone is seen by the end of its socket. */
	send(request->worker.fd, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
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
	if (packet.code == WORKER_READY && bytes == 1 + sizeof(request->whole_bytes)) {
		memcpy(&request->whole_bytes, packet.payload, sizeof(request->whole_bytes));
		request->is_whole = true;
		commit_if_whole(request);
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
		.payload = payload_of(request),
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
	int err = rules_held() ? 0 : start_worker(request, raw);

	if (rules_held())
		fail(request, DSEC_ERROR_UNAVAILABLE, 0, RULES_HELD);
	else if (err)
		fail(request, failure_code(-err), -err, "the worker could not be started");
}

static void on_deadline(struct timer *timer)
{
	fail(container_of(timer, struct request, deadline), DSEC_ERROR_DEADLINE_EXCEEDED, 0,
	     "nobody connected with the raw token");
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
	const uint8_t *token = raw_token_of(frame->type->code, frame->payload);
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

static struct request *awaiting(const uint8_t token[DSEC_NONCE_BYTES])
{
	struct request *request = requests;

	while (request &&
	       !(request->awaits &&
		 raw_token_same(raw_token_of(request->code, payload_of(request)), token)))
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

static int take_input(struct request *request, const struct dsec_frame *frame)
{
	bool writes = request->code == DSEC_AETHER_FILE_WRITE;

	if (!writes && request->code != DSEC_AETHER_PORT_OPEN)
		return -EPROTO;
	if (request->is_raw) {
		/* Beside a raw stream only the end of a file is told, once and for all. */
		if (!writes || !frame->end || frame->payload.length > 0 ||
		    (request->is_ended && frame->offset != request->ended_bytes))
			return -EPROTO;
	} else {
		int err = inlet_take(&request->input, frame);

		if (err || !frame->end || !writes)
			return err;
	}
	if (request->is_ended)
		return 0;
	request->is_ended = true;
	request->ended_bytes = frame->offset + frame->payload.length;
	commit_if_whole(request);
	return 0;
}

static int consume(struct stream *stream, const struct dsec_frame *frame)
{
	struct request *request = container_of(stream, struct request, stream);

	switch (frame->type->code) {
	case DSEC_AETHER_STDIN:
		return take_input(request, frame);
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
