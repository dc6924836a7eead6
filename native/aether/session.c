#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "failure.h"
#include "link.h"
#include "rules.h"
#include "session_state.h"

enum {
	SESSIONS_MAX = 64,
};

static struct session *sessions;
static uint32_t session_count;

struct session *session_find(struct dsec_bytes id)
{
	struct session *session = sessions;

	while (session &&
	       (strlen(session->id) != id.length || memcmp(session->id, id.data, id.length)))
		session = session->next;
	return session;
}

/* Whoever waits for the end of the session hears of it. */
static void watch_answer(struct session *session)
{
	uint32_t number = session->watch.number;

	stream_close(&session->watch);
	if (number != 0)
		link_put(DSEC_AETHER_DONE, number, &(struct dsec_msg_done){ 0 });
}

void session_free(struct session *session)
{
	struct session **at = &sessions;

	while (*at != session)
		at = &(*at)->next;
	*at = session->next;
	session_count--;
	if (session->current)
		session->current->session = NULL;
	timer_stop(&session->settle);
	timer_stop(&session->stubborn);
	stream_close(&session->stream);
	watch_answer(session);
	process_release(&session->process);
	free(session);
}

static void on_started(struct process *process)
{
	struct session *session = container_of(process, struct session, process);

	session->is_open = true;
	session_listen(session);
	stream_mark_ready(&session->stream);
	crash_point(CRASH_SESSION_OPENED);
}

static void on_failed(struct process *process, const char *code, int errno_value,
		      const char *message)
{
	struct session *session = container_of(process, struct session, process);

	session->failure_code = code;
	session->failure_errno = errno_value;
	strncpy(session->failure_message, message, FAILURE_BYTES_MAX - 1);
	stream_mark_ready(&session->stream);
	if (session->stream.number == 0)
		session_free(session);
}

static void on_ended(struct process *process, const struct ending *ending)
{
	struct session *session = container_of(process, struct session, process);

	session_shell_ended(session, ending);
}

static const struct process_owner process_owner = {
	.started = on_started,
	.failed = on_failed,
	.ended = on_ended,
};

static bool produce(struct stream *stream)
{
	struct session *session = container_of(stream, struct session, stream);
	uint32_t number = stream->number;

	if (session->failure_code) {
		link_put_error(number, session->failure_code, session->failure_errno,
			       session->failure_message);
		session_free(session);
	} else if (session->is_open) {
		stream_close(stream);
		link_put(DSEC_AETHER_DONE, number, &(struct dsec_msg_done){ 0 });
	}
	return false;
}

/* The host gives up the request. */
static int consume(struct stream *stream, const struct dsec_frame *frame)
{
	if (frame->type->code != DSEC_AETHER_CANCEL && frame->type->code != DSEC_AETHER_ERROR)
		return -EPROTO;
	stream_close(stream);
	return 0;
}

/* The session opens all the same; the next host may use or close it. */
static void detached(struct stream *stream)
{
	struct session *session = container_of(stream, struct session, stream);

	if (session->failure_code)
		session_free(session);
}

static const struct stream_kind session_stream = {
	.produce = produce,
	.consume = consume,
	.detached = detached,
};

static bool watch_produce(struct stream *stream)
{
	(void)stream;
	return false;
}

static void watch_detached(struct stream *stream)
{
	(void)stream;
}

static const struct stream_kind watch_stream = {
	.produce = watch_produce,
	.consume = consume,
	.detached = watch_detached,
	.is_silent = true,
};

static struct session *add(const struct dsec_msg_session_open *message)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	memcpy(session->id, message->session_id.data, message->session_id.length);
	session->is_terminal = message->present & DSEC_SESSION_OPEN_HAS_PTY;
	session->process.keeper.fd = session->process.input.watch.fd = -1;
	session_prepare(session);
	session->next = sessions;
	sessions = session;
	session_count++;
	return session;
}

int session_open(const struct dsec_frame *frame)
{
	struct dsec_msg_session_open message;
	struct process_size size = { 0 };
	struct session *session;
	struct start start;
	int err;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	if (session_find(message.session_id)) {
		link_put_error(frame->stream, DSEC_ERROR_ALREADY_EXISTS, 0, "the session exists");
		return 0;
	}
	if (rules_held()) {
		link_put_error(frame->stream, DSEC_ERROR_UNAVAILABLE, 0, RULES_HELD);
		return 0;
	}
	session = session_count < SESSIONS_MAX ? add(&message) : NULL;
	if (!session) {
		link_put_error(frame->stream, DSEC_ERROR_OVERLOADED, 0, "too many sessions");
		return 0;
	}
	stream_open(&session->stream, &session_stream, frame->stream);
	start = (struct start){
		.argv = message.argv,
		.cwd = message.cwd,
		.user = message.user,
		.env = message.env,
		.session = true,
	};
	if (session->is_terminal)
		size = (struct process_size){ message.pty.rows, message.pty.columns };
	err = process_start(&session->process, &start, &process_owner, size, true);
	if (err)
		on_failed(&session->process, failure_code(-err), -err, strerror(-err));
	return 0;
}

int session_close(const struct dsec_frame *frame)
{
	struct dsec_msg_session_close message;
	struct session *session;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	session = session_find(message.session_id);
	if (!session) {
		link_put_error(frame->stream, DSEC_ERROR_NOT_FOUND, 0, "no such session");
		return 0;
	}
	process_order(&session->process, ORDER_KILL_TREE, SIGKILL);
	link_put(DSEC_AETHER_DONE, frame->stream, &(struct dsec_msg_done){ 0 });
	return 0;
}

int session_watch(const struct dsec_frame *frame)
{
	struct dsec_msg_session_watch message;
	struct session *session;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	session = session_find(message.session_id);
	if (!session) {
		link_put_error(frame->stream, DSEC_ERROR_NOT_FOUND, 0, "no such session");
		return 0;
	}
	if (session->watch.number != 0) {
		link_put_error(session->watch.number, DSEC_ERROR_CONFLICT, 0,
			       "watched on another stream");
		stream_close(&session->watch);
	}
	return stream_open(&session->watch, &watch_stream, frame->stream);
}
