/* Processes: a keeper, the leader below it, and their pipes or terminal, as aether sees them. */
#ifndef AETHER_PROCESS_H
#define AETHER_PROCESS_H

#include "inlet.h"
#include "loop.h"
#include "source.h"
#include "start.h"

struct process;

struct ending {
	int status; /* of wait4 */
	uint64_t user_us;
	uint64_t system_us;
	uint64_t peak_bytes;
};

struct process_owner {
	void (*started)(struct process *process);
	/* Nothing runs; the error is one of the error table. */
	void (*failed)(struct process *process, const char *code, int errno_value,
		       const char *message);
	/* The leader has ended; others of its tree may run on. */
	void (*ended)(struct process *process, const struct ending *ending);
};

enum process_state {
	PROCESS_NONE,
	PROCESS_STARTING,
	PROCESS_RUNNING,
	PROCESS_ENDED,
};

struct process {
	const struct process_owner *owner;
	enum process_state state;
	struct watch keeper;
	pid_t keeper_pid;
	pid_t leader_pid;
	bool keeper_lost;
	struct process *next; /* of all that have a keeper */
	struct inlet input;
	struct source outputs[2];
	/* A session's. */
	int script_fd;
	struct watch status;
};

struct process_size {
	uint16_t rows; /* 0: no terminal */
	uint16_t columns;
};

/*
 * Forks the keeper. `start` holds what to run; its descriptors are made here. Outputs flow at once
 * into the sources' outlets. Returns 0, or a negative errno when not even that was possible.
 */
int process_start(struct process *process, struct start *start, const struct process_owner *owner,
		  struct process_size terminal, bool stdin_open);
void process_order(struct process *process, enum order_kind kind, int signal);
/* To the terminal's foreground group, or the leader. */
void process_signal_leader(struct process *process, int signal);
int process_resize(struct process *process, struct process_size size);
/* Closes all that aether has of it. What still runs below the keeper goes on. */
void process_release(struct process *process);
/* A child of aether was reaped: perhaps the leader of a process that lost its keeper. */
void process_child_ended(pid_t pid, int status);

#endif
