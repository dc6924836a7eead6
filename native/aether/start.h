/*
 * Starting a command: what aether, the keeper that it forks for each command, and the leader that
 * the keeper forks say to each other.
 *
 *   aether ── keeper (subreaper of this one command, runs as aether does) ── leader (the command)
 *
 * Whatever the command starts, double forks and new sessions included, stays below its keeper,
 * which signals and kills it as a whole. The keeper is out of reach for it like aether itself.
 * Keeper and leader allocate nothing: they work in static memory that is untouched, and so costs
 * nothing, in aether.
 */
#ifndef AETHER_START_H
#define AETHER_START_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "message.h"
#include "passwd.h"

/* What to start. Views of the host's frame. */
struct start {
	struct dsec_list argv; /* empty: `shell`, or for a session the account's own shell */
	struct dsec_bytes shell;
	struct dsec_bytes cwd;
	struct dsec_bytes user;
	struct dsec_list env;
	bool session; /* a shell that reads descriptor 3 and reports on descriptor 9 */
	/* Descriptors of the leader; -1 for none. */
	int stdio[3];
	int terminal; /* the slave, which is then all three of stdio */
	int script;
	int status;
	/* Of the keeper. */
	int control; /* its end of the socket pair */
	int drain[2];
};

/* Steps that may fail, in the order of the report. */
enum start_step {
	STEP_MEMORY,
	STEP_USER,
	STEP_KEEPER,
	STEP_FORK,
	STEP_DESCRIPTORS,
	STEP_TERMINAL,
	STEP_IDENTITY,
	STEP_LIMITS,
	STEP_DIRECTORY,
	STEP_RULES,
	STEP_COMMAND,
	STEPS,
};

struct start_failure {
	int32_t step;
	int32_t error; /* positive errno */
};

enum report_kind {
	REPORT_STARTED, /* the command's program runs */
	REPORT_FAILED,
	REPORT_ENDED, /* the leader was waited for */
	REPORT_NONE,  /* the socket just closes when no process of the command is left */
};

/* From the keeper to aether, one a packet. */
struct report {
	uint32_t kind;
	int32_t leader;
	struct start_failure failure;
	int32_t status; /* of wait4 */
	uint64_t user_us;
	uint64_t system_us;
	uint64_t peak_bytes;
};

enum order_kind {
	ORDER_SIGNAL_LEADER,
	ORDER_SIGNAL_TREE,
	/* All but the leader: what a session's shell has started. */
	ORDER_SIGNAL_BELOW,
	ORDER_KILL_TREE,
	ORDER_KILL_BELOW,
	/* aether reads the outputs no more: read and drop what still comes. */
	ORDER_DRAIN,
	/* The command is forgotten; go on for what it left behind. */
	ORDER_RELEASE,
};

/* From aether to the keeper, one a packet. */
struct order {
	uint32_t kind;
	int32_t signal;
};

/* What the leader executes, prepared by the keeper. */
struct program {
	struct account account;
	char **argv;
	char **env;
	const char *cwd;
	const char *search_path;
};

/* Copies texts out of the frame and finds the account. Returns 0 or a negative errno. */
int program_prepare(const struct start *start, struct program *program,
		    struct start_failure *failure);
/* In memory that is still the keeper's: why it could not start is put in `failure`. */
_Noreturn void leader_run(const struct start *start, const struct program *program,
			  struct start_failure *failure);
_Noreturn void keeper_run(const struct start *start);

#endif
