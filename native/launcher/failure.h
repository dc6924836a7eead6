/* Why a request failed, as it is told to the edge. */
#ifndef LAUNCHER_FAILURE_H
#define LAUNCHER_FAILURE_H

enum {
	STEP_BYTES_MAX = 128,
};

struct failure {
	const char *code;	   /* of the error table; NULL: no failure */
	int err;		   /* positive errno, 0: none */
	char step[STEP_BYTES_MAX]; /* empty: none */
	const char *message;
};

/* The code that an errno stands for; `err` is positive. */
const char *failure_code(int err);

/* A failure of the system at a step; `err` is a positive errno. */
struct failure failure_at(const char *step, int err);

/* A request that the launcher refuses. */
struct failure failure_of(const char *code, const char *message);

#endif
