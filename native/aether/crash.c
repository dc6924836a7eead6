#include "crash.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[CRASH_POINTS] = {
	[CRASH_ACCEPT] = "accept",
	[CRASH_WELCOME] = "welcome",
	[CRASH_EXEC_NOTED] = "exec-noted",
	[CRASH_EXEC_FORKED] = "exec-forked",
	[CRASH_EXEC_STARTED] = "exec-started",
	[CRASH_OUTPUT_TAKEN] = "output-taken",
	[CRASH_OUTPUT_SENT] = "output-sent",
	[CRASH_OUTPUT_ACKED] = "output-acked",
	[CRASH_STDIN_TAKEN] = "stdin-taken",
	[CRASH_EXIT_KNOWN] = "exit-known",
	[CRASH_EXIT_SENT] = "exit-sent",
	[CRASH_EXIT_ACKED] = "exit-acked",
	[CRASH_KILL_ORDERED] = "kill-ordered",
	[CRASH_SESSION_OPENED] = "session-opened",
	[CRASH_FILE_WORKER] = "file-worker",
	[CRASH_FILE_COMMIT] = "file-commit",
	[CRASH_RULES_TAKEN] = "rules-taken",
	[CRASH_QUIESCE] = "quiesce",
};

static int armed = -1;
static unsigned long hits_left;

void crash_arm(void)
{
	const char *wanted = getenv("DSEC_CRASH_POINT");
	size_t length;

	if (!wanted)
		return;
	length = strcspn(wanted, ":");
	for (int i = 0; i < CRASH_POINTS; i++) {
		if (strlen(names[i]) == length && !strncmp(names[i], wanted, length))
			armed = i;
	}
	hits_left = wanted[length] ? strtoul(wanted + length + 1, NULL, 10) : 1;
}

void crash_point(enum crash_point point)
{
	if (armed != (int)point || --hits_left > 0)
		return;
	kill(getpid(), SIGKILL);
	/* PID 1 of a namespace is deaf to its own signals. */
	_exit(137);
}

int crash_print(void)
{
	for (int i = 0; i < CRASH_POINTS; i++)
		puts(names[i]);
	return fflush(stdout) ? 1 : 0;
}
