/*
 * Named places where a test makes aether die: DSEC_CRASH_POINT=name[:n] in its environment kills it
 * with SIGKILL when the place is reached for the n-th time (1 without n). A sandbox's aether has no
 * environment, so that none is ever armed there.
 */
#ifndef AETHER_CRASH_H
#define AETHER_CRASH_H

enum crash_point {
	CRASH_ACCEPT,
	CRASH_WELCOME,
	CRASH_EXEC_NOTED,
	CRASH_EXEC_FORKED,
	CRASH_EXEC_STARTED,
	CRASH_OUTPUT_TAKEN,
	CRASH_OUTPUT_SENT,
	CRASH_OUTPUT_ACKED,
	CRASH_STDIN_TAKEN,
	CRASH_EXIT_KNOWN,
	CRASH_EXIT_SENT,
	CRASH_EXIT_ACKED,
	CRASH_KILL_ORDERED,
	CRASH_SESSION_OPENED,
	CRASH_FILE_WORKER,
	CRASH_FILE_COMMIT,
	CRASH_RULES_TAKEN,
	CRASH_QUIESCE,
	CRASH_POINTS,
};

/* Reads the environment. */
void crash_arm(void);
void crash_point(enum crash_point point);
/* Prints the names, one on each line. */
int crash_print(void);

#endif
