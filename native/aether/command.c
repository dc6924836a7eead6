#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "crash.h"
#include "failure.h"
#include "link.h"
#include "rules.h"
#include "session.h"

enum {
	COMMANDS_MAX = 1024,
	/* For processes that end just after the leader and write their last lines then. */
	GRACE_MS = 100,
};

static struct command *commands;
static uint32_t command_count;

static struct command *find(struct dsec_bytes id)
{
	struct command *command = commands;

	while (command &&
	       (strlen(command->id) != id.length || memcmp(command->id, id.data, id.length)))
		command = command->next;
	return command;
}

/* After a cut, and not before aether has its share, the keeper reads what still comes. */
static void on_output_ended(struct source *source)
{
	struct command *command = container_of(source->stream, struct command, stream);

	watch_close(&source->watch);
	if (command->was_cut && command->outlets[0].ended && command->outlets[1].ended)
		process_order(&command->process, ORDER_DRAIN, 0);
}

void command_started(struct command *command)
{
	crash_point(CRASH_EXEC_STARTED);
	command->state = COMMAND_RUNNING;
	command->started_owed = true;
	stream_mark_ready(&command->stream);
}

void command_failed(struct command *command, const char *code, int errno_value, const char *message)
{
	if (command->state != COMMAND_STARTING)
		return;
	timer_stop(&command->timeout);
	running_release();
	command->state = COMMAND_FAILED;
	command->failure_code = code;
	command->failure_errno = errno_value;
	strncpy(command->failure_message, message, FAILURE_BYTES_MAX - 1);
	stream_mark_ready(&command->stream);
}

void command_ended(struct command *command, const struct ending *ending)
{
	if (command->state != COMMAND_RUNNING && command->state != COMMAND_STARTING)
		return;
	timer_stop(&command->timeout);
	command->running_ms = running_ms() - command->started_ms;
	running_release();
	command->state = COMMAND_ENDED;
	command->ending = *ending;
	crash_point(CRASH_EXIT_KNOWN);
	if (!command->of_session)
		timer_start(&command->grace, GRACE_MS);
	stream_mark_ready(&command->stream);
}

static void on_started(struct process *process)
{
	command_started(container_of(process, struct command, process));
}

static void on_failed(struct process *process, const char *code, int errno_value,
		      const char *message)
{
	struct command *command = container_of(process, struct command, process);

	command_failed(command, code, errno_value, message);
	process_release(process);
}

static void on_ended(struct process *process, const struct ending *ending)
{
	command_ended(container_of(process, struct command, process), ending);
}

static const struct process_owner process_owner = {
	.started = on_started,
	.failed = on_failed,
	.ended = on_ended,
};

static void on_timeout(struct timer *timer)
{
	struct command *command = container_of(timer, struct command, timeout);

	command->timed_out = true;
	if (command->of_session)
		session_kill(command);
	else
		process_order(&command->process, ORDER_KILL_TREE, SIGKILL);
}

static void on_grace(struct timer *timer)
{
	struct command *command = container_of(timer, struct command, grace);

	command->was_cut = true;
	for (int i = 0; i < 2; i++)
		source_cut(&command->process.outputs[i]);
}

static void free_command(struct command *command)
{
	struct command **at = &commands;

	while (*at != command)
		at = &(*at)->next;
	*at = command->next;
	command_count--;
	timer_stop(&command->timeout);
	timer_stop(&command->grace);
	stream_close(&command->stream);
	if (command->of_session)
		session_leave(command);
	else
		process_release(&command->process);
	for (int i = 0; i < 2; i++) {
		link_forget_outlet(&command->outlets[i]);
		outlet_free(&command->outlets[i]);
	}
	free(command);
}

/* Makes the stream the command's; one that it had before is ended. */
static int attach(struct command *command, uint32_t number)
{
	if (command->stream.number != 0) {
		link_put_error(command->stream.number, DSEC_ERROR_CONFLICT, 0,
			       "the command was attached on another stream");
		stream_close(&command->stream);
	}
	command->exit_sent = false;
	command->is_attached = true;
	command->started_owed = command->state != COMMAND_STARTING;
	if (stream_open(&command->stream, &command_stream, number))
		return -EPROTO;
	stream_mark_ready(&command->stream);
	return 0;
}

void command_limit(struct command *command, bool limited, uint64_t timeout_ms)
{
	uint64_t passed = running_ms() - command->started_ms;

	timer_stop(&command->timeout);
	if (limited && command->state <= COMMAND_RUNNING)
		timer_start(&command->timeout, timeout_ms > passed ? timeout_ms - passed : 0);
}

static struct command *add(const struct dsec_msg_exec_start *message)
{
	struct command *command = calloc(1, sizeof(*command));

	if (!command)
		return NULL;
	memcpy(command->id, message->exec_id.data, message->exec_id.length);
	command->of_session = message->present & DSEC_EXEC_START_HAS_SESSION_ID;
	command->timeout.fire = on_timeout;
	command->grace.fire = on_grace;
	command->process.keeper.fd = command->process.input.watch.fd = -1;
	for (int i = 0; i < 2; i++) {
		outlet_init(&command->outlets[i], message->window_bytes, true);
		command->process.outputs[i].watch.fd = -1;
	}
	/* A terminal has one output. */
	command->outlets[1].ended = message->present & DSEC_EXEC_START_HAS_PTY;
	command->next = commands;
	commands = command;
	command_count++;
	crash_point(CRASH_EXEC_NOTED);
	return command;
}

static void start_process(struct command *command, const struct dsec_msg_exec_start *message)
{
	struct start start = {
		.argv = message->argv,
		.shell = message->shell,
		.cwd = message->cwd,
		.user = message->user,
		.env = message->env,
	};
	struct process_size terminal = { 0 };
	int err;

	if (message->present & DSEC_EXEC_START_HAS_PTY)
		terminal = (struct process_size){ message->pty.rows, message->pty.columns };
	for (int i = 0; i < 2; i++) {
		command->process.outputs[i].outlet = &command->outlets[i];
		command->process.outputs[i].stream = &command->stream;
		command->process.outputs[i].ended = on_output_ended;
	}
	command->process.input.stream = &command->stream;
	err = process_start(&command->process, &start, &process_owner, terminal,
			    message->stdin_open);
	if (err)
		command_failed(command, failure_code(-err), -err, strerror(-err));
}

int command_start(const struct dsec_frame *frame)
{
	struct dsec_msg_exec_start message;
	struct command *command;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	command = find(message.exec_id);
	if (command) {
		for (int i = 0; i < 2; i++)
			outlet_resume(&command->outlets[i], command->outlets[i].base);
		return attach(command, frame->stream);
	}
	/* Exactly one of the two says what to run. */
	if (!(message.present & DSEC_EXEC_START_HAS_ARGV) ==
	    !(message.present & DSEC_EXEC_START_HAS_SHELL)) {
		link_put_error(frame->stream, DSEC_ERROR_INVALID_ARGUMENT, 0,
			       "a command has either arguments or shell text");
		return 0;
	}
	if (rules_held()) {
		link_put_error(frame->stream, DSEC_ERROR_UNAVAILABLE, 0, RULES_HELD);
		return 0;
	}
	command = command_count < COMMANDS_MAX ? add(&message) : NULL;
	if (!command) {
		link_put_error(frame->stream, DSEC_ERROR_OVERLOADED, 0,
			       "too many commands whose results were not acknowledged");
		return 0;
	}
	stream_open(&command->stream, &command_stream, frame->stream);
	running_hold();
	command->started_ms = running_ms();
	if (command->of_session)
		session_run(command, &message);
	else
		start_process(command, &message);
	command_limit(command, message.present & DSEC_EXEC_START_HAS_TIMEOUT_MS,
		      message.timeout_ms);
	return 0;
}

int command_attach(const struct dsec_frame *frame)
{
	struct dsec_msg_exec_attach message;
	struct command *command;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	command = find(message.exec_id);
	if (!command) {
		link_put_error(frame->stream, DSEC_ERROR_NOT_FOUND, 0, "no such command");
		return 0;
	}
	if (outlet_resume(&command->outlets[0], message.stdout_offset) ||
	    outlet_resume(&command->outlets[1], message.stderr_offset)) {
		link_put_error(frame->stream, DSEC_ERROR_OUTPUT_LOST, 0,
			       "the output from that offset on is not here");
		return 0;
	}
	for (int i = 0; i < 2; i++)
		source_resume(&command->process.outputs[i]);
	session_resume_outputs(command);
	return attach(command, frame->stream);
}

int command_forget(const struct dsec_frame *frame)
{
	struct dsec_msg_exec_exit_ack message;
	struct command *command;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	command = find(message.exec_id);
	if (!command)
		return 0;
	if (command->state < COMMAND_ENDED) {
		link_put_error(frame->stream, DSEC_ERROR_STATE_CONFLICT, 0,
			       "the command has not ended");
		return 0;
	}
	free_command(command);
	crash_point(CRASH_EXIT_ACKED);
	return 0;
}

void command_note_policy(void)
{
	for (struct command *command = commands; command; command = command->next) {
		if (command->state <= COMMAND_RUNNING)
			command->ended_by_policy = true;
	}
}

void command_child_ended(pid_t pid, int status)
{
	process_child_ended(pid, status);
}
