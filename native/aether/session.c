#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "command.h"
#include "crash.h"
#include "failure.h"
#include "link.h"
#include "session_text.h"

enum {
	SESSIONS_MAX = 64,
	/* A shell whose children were killed reports within this time, or is killed too. */
	STUBBORN_MS = 2000,
	/* A terminal hands bytes on by and by; a pipe has them at once. */
	TERMINAL_SETTLE_MS = 30,
	GRACE_MS = 100,
	STATUS_BYTES_MAX = 64,
};

struct session {
	struct session *next;
	char id[ID_BYTES_MAX + 1];
	bool is_terminal;
	bool is_open; /* the shell runs */
	bool has_ended;
	struct stream stream; /* of the request that opens it */
	struct process process;
	struct command *current;
	bool current_reads; /* its input is the session's */
	char word[SESSION_WORD_BYTES + 1];
	char status[STATUS_BYTES_MAX];
	uint32_t status_used;
	struct timer settle;
	struct timer stubborn;
	const char *failure_code;
	int failure_errno;
	char failure_message[FAILURE_BYTES_MAX];
};

static struct session *sessions;
static uint32_t session_count;

static struct session *find(struct dsec_bytes id)
{
	struct session *session = sessions;

	while (session && (strlen(session->id) != id.length ||
			   memcmp(session->id, id.data, id.length)))
		session = session->next;
	return session;
}

static void free_session(struct session *session)
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
	process_release(&session->process);
	free(session);
}

/* The command has all its output: the session is free for the next, or over. */
static void let_go(struct session *session)
{
	session->current->session = NULL;
	session->current = NULL;
	timer_stop(&session->stubborn);
	if (session->has_ended) {
		free_session(session);
		return;
	}
	for (int i = 0; i < 2; i++)
		source_resume(&session->process.outputs[i]);
}

static bool has_all_output(const struct command *command)
{
	return command->state == COMMAND_ENDED && command->outlets[0].ended &&
	       command->outlets[1].ended;
}

static void on_output_ended(struct source *source)
{
	struct command *command = container_of(source->stream, struct command, stream);

	/* Not at once: the session may go, and this source with it. */
	if (command->session && has_all_output(command))
		timer_start(&command->session->settle, 0);
}

/* Ends the outputs after what was written so far, then the command's stay. */
static void on_settled(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, settle);

	if (!session->current)
		return;
	if (has_all_output(session->current)) {
		let_go(session);
		return;
	}
	for (int i = 0; i < 2; i++)
		source_cut(&session->process.outputs[i]);
}

static void on_stubborn(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, stubborn);

	process_order(&session->process, ORDER_KILL_TREE, SIGKILL);
}

static void take_status_line(struct session *session, const char *line)
{
	size_t length = strlen(session->word);
	struct ending ending = { 0 };

	/* What is not the word of this command was written by something else inside. */
	if (!session->current || session->current->state != COMMAND_RUNNING ||
	    strncmp(line, session->word, length) || line[length] != ' ')
		return;
	ending.status = (int)(strtoul(line + length + 1, NULL, 10) & 0xff) << 8;
	command_ended(session->current, &ending);
	timer_start(&session->settle, session->is_terminal ? TERMINAL_SETTLE_MS : 0);
}

static void on_status(struct watch *watch, uint32_t events)
{
	struct process *process = container_of(watch, struct process, status);
	struct session *session = container_of(process, struct session, process);
	ssize_t bytes = read(watch->fd, session->status + session->status_used,
			     STATUS_BYTES_MAX - 1 - session->status_used);
	char *end;

	(void)events;
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		watch_close(watch);
		return;
	}
	session->status_used += (uint32_t)bytes;
	session->status[session->status_used] = 0;
	while ((end = strchr(session->status, '\n'))) {
		*end = 0;
		take_status_line(session, session->status);
		session->status_used -= (uint32_t)(end + 1 - session->status);
		memmove(session->status, end + 1, session->status_used + 1);
	}
	/* Longer than any line of ours. */
	if (session->status_used == STATUS_BYTES_MAX - 1)
		session->status_used = 0;
}

static void on_started(struct process *process)
{
	struct session *session = container_of(process, struct session, process);

	session->is_open = true;
	process->status.ready = on_status;
	watch_set(&process->status, EPOLLIN);
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
		free_session(session);
}

/* The shell itself is gone, by an `exit` or a signal: its status is the command's. */
static void on_ended(struct process *process, const struct ending *ending)
{
	struct session *session = container_of(process, struct session, process);

	session->has_ended = true;
	if (!session->current) {
		free_session(session);
		return;
	}
	command_ended(session->current, ending);
	timer_start(&session->settle, GRACE_MS);
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
		free_session(session);
	} else if (session->is_open) {
		stream_close(stream);
		link_put(DSEC_AETHER_DONE, number, &(struct dsec_msg_done){ 0 });
	}
	return false;
}

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
		free_session(session);
}

static const struct stream_kind session_stream = {
	.produce = produce,
	.consume = consume,
	.detached = detached,
};

static struct session *add(const struct dsec_msg_session_open *message)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	memcpy(session->id, message->session_id.data, message->session_id.length);
	session->settle.fire = on_settled;
	session->stubborn.fire = on_stubborn;
	session->is_terminal = message->present & DSEC_SESSION_OPEN_HAS_PTY;
	session->process.keeper.fd = session->process.input.watch.fd = -1;
	for (int i = 0; i < 2; i++) {
		session->process.outputs[i].watch.fd = -1;
		session->process.outputs[i].ended = on_output_ended;
	}
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
	if (find(message.session_id)) {
		link_put_error(frame->stream, DSEC_ERROR_ALREADY_EXISTS, 0, "the session exists");
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
	session = find(message.session_id);
	if (!session) {
		link_put_error(frame->stream, DSEC_ERROR_NOT_FOUND, 0, "no such session");
		return 0;
	}
	process_order(&session->process, ORDER_KILL_TREE, SIGKILL);
	link_put(DSEC_AETHER_DONE, frame->stream, &(struct dsec_msg_done){ 0 });
	return 0;
}

static int send_line(struct session *session, const struct dsec_msg_exec_start *message)
{
	uint8_t random[SESSION_WORD_BYTES / 2];
	size_t length;
	char *line;
	int err = 0;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(session->word + 2 * i, 3, "%02x", random[i]);
	line = session_text(message, session->word, &length);
	if (!line)
		return -ENOMEM;
	/* An idle shell has read all there was, so a pipe of this size takes the line whole. */
	if (length > SESSION_PIPE_BYTES &&
	    fcntl(session->process.script_fd, F_SETPIPE_SZ, (int)length) < 0)
		err = -errno;
	else if (write(session->process.script_fd, line, length) != (ssize_t)length)
		err = -EPIPE;
	free(line);
	return err;
}

/* Why the session cannot run it, or NULL. */
static const char *refusal(const struct session *session,
			   const struct dsec_msg_exec_start *message, const char **code)
{
	*code = DSEC_ERROR_NOT_FOUND;
	if (!session || !session->is_open || session->has_ended)
		return "no such session";
	*code = DSEC_ERROR_STATE_CONFLICT;
	if (session->current)
		return "the session runs another command";
	*code = DSEC_ERROR_INVALID_ARGUMENT;
	if (message->env.count > 0 ||
	    message->present & (DSEC_EXEC_START_HAS_CWD | DSEC_EXEC_START_HAS_USER |
				DSEC_EXEC_START_HAS_PTY))
		return "directory, environment, user and terminal are the session's";
	return NULL;
}

void session_run(struct command *command, const struct dsec_msg_exec_start *message)
{
	struct session *session = find(message->session_id);
	const char *code;
	const char *why = refusal(session, message, &code);
	int err;

	if (why) {
		command_failed(command, code, 0, why);
		return;
	}
	err = send_line(session, message);
	if (err) {
		command_failed(command, failure_code(-err), -err, "the shell takes no command");
		process_order(&session->process, ORDER_KILL_TREE, SIGKILL);
		return;
	}
	command->session = session;
	session->current = command;
	session->current_reads = message->stdin_open;
	for (int i = 0; i < 2; i++) {
		struct source *source = &session->process.outputs[i];

		source->stream = &command->stream;
		source->outlet = source->watch.fd >= 0 ? &command->outlets[i] : NULL;
		command->outlets[i].ended = !source->outlet;
	}
	inlet_restart(&session->process.input, &command->stream);
	command_started(command);
}

void session_resume_outputs(struct command *command)
{
	for (int i = 0; command->session && i < 2; i++)
		source_resume(&command->session->process.outputs[i]);
}

void session_signal(struct command *command, int signal)
{
	if (!command->session)
		return;
	if (command->session->is_terminal)
		process_signal_leader(&command->session->process, signal);
	else
		process_order(&command->session->process, ORDER_SIGNAL_BELOW, signal);
}

void session_kill(struct command *command)
{
	if (!command->session)
		return;
	process_order(&command->session->process, ORDER_KILL_BELOW, SIGKILL);
	timer_start(&command->session->stubborn, STUBBORN_MS);
}

struct inlet *session_input(struct command *command)
{
	struct session *session = command->session;

	return session && session->current_reads ? &session->process.input : NULL;
}

void session_resize(struct command *command, const struct dsec_msg_pty_size *size)
{
	if (command->session)
		process_resize(&command->session->process,
			       (struct process_size){ size->rows, size->columns });
}

void session_leave(struct command *command)
{
	struct session *session = command->session;

	if (!session)
		return;
	for (int i = 0; i < 2; i++)
		session->process.outputs[i].outlet = NULL;
	let_go(session);
}
