/*
 * Commands: what the host started, each exactly once. A command is known from before its first fork
 * until the host acknowledges its result; a failed start is a result too. Every step is remembered
 * here, none depends on a connection.
 *
 * The last byte of an output is the one before its end of file. Where processes that outlive the
 * leader hold it open, it is the last one that was in the pipe a short while after the leader
 * ended: what background processes write later is read and dropped, so that they neither stop nor
 * die of it.
 */
#ifndef AETHER_COMMAND_H
#define AETHER_COMMAND_H

#include "frame.h"
#include "outlet.h"
#include "process.h"
#include "stream.h"

enum {
	ID_BYTES_MAX = 40,
	FAILURE_BYTES_MAX = 256,
};

enum command_state {
	COMMAND_STARTING,
	COMMAND_RUNNING,
	/* The status is known, outputs may still have bytes. */
	COMMAND_ENDED,
	COMMAND_FAILED,
};

struct session;

struct command {
	struct command *next;
	char id[ID_BYTES_MAX + 1];
	enum command_state state;
	struct stream stream;
	bool is_attached; /* the stream is not the one that started it */
	bool started_owed;
	bool exit_sent;
	uint8_t turn; /* the output that may send first */
	bool timed_out;
	bool ended_by_policy;
	bool was_cut;		 /* its outputs end before their end of file */
	struct process process;	 /* its own, unless it runs in a session */
	struct session *session; /* NULL when it does not, or when that has ended */
	bool of_session;
	struct outlet outlets[2];
	struct timer timeout;
	struct timer grace;
	uint64_t started_ms;
	uint64_t running_ms;
	struct ending ending;
	const char *failure_code;
	int failure_errno;
	char failure_message[FAILURE_BYTES_MAX];
};

/* Handlers of frames; see dispatch.h. */
int command_start(const struct dsec_frame *frame);
int command_attach(const struct dsec_frame *frame);
int command_forget(const struct dsec_frame *frame);

void command_child_ended(pid_t pid, int status);
/* All that run now are ended because the policy changes. */
void command_note_policy(void);

/* How a command's stream behaves. */
extern const struct stream_kind command_stream;
/* Sets the limit on running time, counted from the start, or takes it away. */
void command_limit(struct command *command, bool limited, uint64_t timeout_ms);

/* For the session that runs it. */
void command_started(struct command *command);
void command_failed(struct command *command, const char *code, int errno_value,
		    const char *message);
void command_ended(struct command *command, const struct ending *ending);

#endif
