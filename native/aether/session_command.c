/* The commands that a session runs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "failure.h"
#include "session_state.h"

enum {
	/* A shell whose children were killed reports within this time, or is killed too. */
	STUBBORN_MS = 2000,
	/* A terminal hands bytes on by and by; a pipe has them at once. */
	TERMINAL_SETTLE_MS = 30,
	GRACE_MS = 100,
};

/* The command has all its output: the session is free for the next, or over. */
static void let_go(struct session *session)
{
	session->current->session = NULL;
	session->current = NULL;
	timer_stop(&session->stubborn);
	if (session->has_ended) {
		session_free(session);
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

void session_prepare(struct session *session)
{
	session->settle.fire = on_settled;
	session->stubborn.fire = on_stubborn;
	for (int i = 0; i < 2; i++) {
		session->process.outputs[i].watch.fd = -1;
		session->process.outputs[i].ended = on_output_ended;
	}
}

void session_listen(struct session *session)
{
	session->process.status.ready = on_status;
	watch_set(&session->process.status, EPOLLIN);
}

void session_shell_ended(struct session *session, const struct ending *ending)
{
	session->has_ended = true;
	if (!session->current) {
		session_free(session);
		return;
	}
	/* By an `exit` or a signal: the shell's status is the command's. */
	command_ended(session->current, ending);
	timer_start(&session->settle, GRACE_MS);
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
static const char *refusal(const struct session *session, const struct dsec_msg_exec_start *message,
			   const char **code)
{
	*code = DSEC_ERROR_NOT_FOUND;
	if (!session || !session->is_open || session->has_ended)
		return "no such session";
	*code = DSEC_ERROR_STATE_CONFLICT;
	if (session->current)
		return "the session runs another command";
	*code = DSEC_ERROR_INVALID_ARGUMENT;
	if (message->env.count > 0 ||
	    message->present &
		    (DSEC_EXEC_START_HAS_CWD | DSEC_EXEC_START_HAS_USER | DSEC_EXEC_START_HAS_PTY))
		return "directory, environment, user and terminal are the session's";
	return NULL;
}

void session_run(struct command *command, const struct dsec_msg_exec_start *message)
{
	struct session *session = session_find(message->session_id);
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
