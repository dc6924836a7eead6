/* What the host and a command say to each other on the command's stream. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "command.h"
#include "crash.h"
#include "link.h"
#include "session.h"

static struct inlet *input_of(struct command *command)
{
	return command->of_session ? session_input(command) : &command->process.input;
}

static void put_started(struct command *command)
{
	struct inlet *input = input_of(command);

	command->started_owed = false;
	link_put(DSEC_AETHER_EXEC_STARTED, command->stream.number,
		 &(struct dsec_msg_exec_started){
			 .attached = command->is_attached,
			 .stdin_offset = input ? input->taken : 0,
			 .stdin_credit = input ? input->credit : 0,
		 });
}

static void put_exit(struct command *command)
{
	const struct ending *ending = &command->ending;
	struct dsec_msg_exec_exit exit = {
		.exec_id = { (const uint8_t *)command->id, (uint32_t)strlen(command->id) },
		.core_dumped = WIFSIGNALED(ending->status) && WCOREDUMP(ending->status),
		.timed_out = command->timed_out,
		.trusted = !command->of_session,
		.stdout_bytes = command->outlets[0].head,
		.stderr_bytes = command->outlets[1].head,
		.running_ms = command->running_ms,
		.cpu_user_us = ending->user_us,
		.cpu_system_us = ending->system_us,
		.memory_peak_bytes = ending->peak_bytes,
	};

	if (WIFSIGNALED(ending->status)) {
		exit.present = DSEC_EXEC_EXIT_HAS_SIGNAL;
		exit.signal = (uint8_t)WTERMSIG(ending->status);
	} else {
		exit.present = DSEC_EXEC_EXIT_HAS_EXIT_CODE;
		exit.exit_code = (uint8_t)WEXITSTATUS(ending->status);
	}
	if (command->ended_by_policy) {
		exit.present |= DSEC_EXEC_EXIT_HAS_ENDED_BY_POLICY;
		exit.ended_by_policy = true;
	}
	link_put(DSEC_AETHER_EXEC_EXIT, command->stream.number, &exit);
	command->exit_sent = true;
	crash_point(CRASH_EXIT_SENT);
}

/* Puts at most one frame; what it did put may not have been the last. */
static bool produce(struct stream *stream)
{
	static const uint8_t channels[] = { DSEC_AETHER_STDOUT, DSEC_AETHER_STDERR };
	struct command *command = container_of(stream, struct command, stream);
	struct inlet *input = input_of(command);
	uint32_t number = stream->number;

	if (command->state == COMMAND_FAILED) {
		stream_close(stream);
		link_put_error(number, command->failure_code, command->failure_errno,
			       command->failure_message);
		return false;
	}
	if (command->started_owed) {
		put_started(command);
		return true;
	}
	if (command->state == COMMAND_STARTING)
		return false;
	if (input && inlet_answer(input))
		return true;
	/* One after the other, so that a flood on one does not hold up the other. */
	for (int i = 0; i < 2; i++) {
		command->turn ^= 1;
		if (outlet_has_frame(&command->outlets[command->turn])) {
			link_put_data(channels[command->turn], number,
				      &command->outlets[command->turn]);
			return true;
		}
	}
	if (command->state == COMMAND_ENDED && !command->exit_sent &&
	    outlet_is_done(&command->outlets[0]) && outlet_is_done(&command->outlets[1]))
		put_exit(command);
	return false;
}

static int take_ack(struct command *command, const struct dsec_frame *frame)
{
	struct dsec_msg_channel message;
	int output;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	output = message.channel - DSEC_CHANNEL_CHANNEL_STDOUT;
	if (output < 0)
		return -EPROTO;
	if (frame->type->code == DSEC_AETHER_CREDIT) {
		outlet_grant(&command->outlets[output], frame->offset);
		stream_mark_ready(&command->stream);
		return 0;
	}
	if (outlet_ack(&command->outlets[output], frame->offset))
		return -EPROTO;
	crash_point(CRASH_OUTPUT_ACKED);
	if (command->of_session)
		session_resume_outputs(command);
	else
		source_resume(&command->process.outputs[output]);
	return 0;
}

static void take_signal(struct command *command, const struct dsec_frame *frame)
{
	struct dsec_msg_signal message;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	if (command->of_session)
		session_signal(command, message.signal);
	else if (message.scope == DSEC_SIGNAL_SCOPE_TREE)
		process_order(&command->process, ORDER_SIGNAL_TREE, message.signal);
	else
		process_signal_leader(&command->process, message.signal);
}

static int take_resize(struct command *command, const struct dsec_frame *frame)
{
	struct dsec_msg_pty_size size;

	dsec_message_decode(frame->type->message, frame->payload, &size);
	if (command->of_session)
		session_resize(command, &size);
	else if (process_resize(&command->process,
				(struct process_size){ size.rows, size.columns }))
		return -EPROTO;
	return 0;
}

static int consume(struct stream *stream, const struct dsec_frame *frame)
{
	struct command *command = container_of(stream, struct command, stream);
	struct dsec_msg_timeout timeout;
	struct inlet *input;

	switch (frame->type->code) {
	case DSEC_AETHER_STDIN:
		input = input_of(command);
		return input ? inlet_take(input, frame) : 0;
	case DSEC_AETHER_ACK:
	case DSEC_AETHER_CREDIT:
		return take_ack(command, frame);
	case DSEC_AETHER_SIGNAL:
		take_signal(command, frame);
		return 0;
	case DSEC_AETHER_RESIZE:
		return take_resize(command, frame);
	case DSEC_AETHER_TIMEOUT:
		dsec_message_decode(frame->type->message, frame->payload, &timeout);
		command_limit(command, timeout.present & DSEC_TIMEOUT_HAS_TIMEOUT_MS,
			      timeout.timeout_ms);
		return 0;
	case DSEC_AETHER_CANCEL:
	case DSEC_AETHER_ERROR:
		stream_close(stream);
		return 0;
	default:
		return -EPROTO;
	}
}

/* The command itself goes on. */
static void detached(struct stream *stream)
{
	(void)stream;
}

const struct stream_kind command_stream = {
	.produce = produce,
	.consume = consume,
	.detached = detached,
};
