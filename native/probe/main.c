#include "probe.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	verb_run run;
} verbs[] = {
	{ "signals", run_signals },
	{ "kill-all", run_kill_all },
	{ "trace", run_trace },
	{ "steer", run_steer },
	{ "steal", run_steal },
	{ "namespaces", run_namespaces },
	{ "mounts", run_mounts },
	{ "inode-flags", run_inode_flags },
	{ "kernel", run_kernel },
	{ "sockets", run_sockets },
	{ "devices", run_devices },
	{ "walk", run_walk },
	{ "terminal", run_terminal },
	{ "pool", run_pool },
	{ "memory", run_memory },
	{ "forks", run_forks },
	{ "storm", run_storm },
	{ "spy", run_spy },
	{ "plant", run_plant },
	{ "sweep", run_sweep },
	{ "dive", run_dive },
	{ "foreign-abi", run_foreign_abi },
	{ "plain", run_plain },
	{ "ids", run_ids },
	{ "attributes", run_attributes },
	{ "scribble", run_scribble },
};

void report(long value, const char *format, ...)
{
	int error = value < 0 ? errno : 0;
	char item[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(item, sizeof(item), format, arguments);
	va_end(arguments);
	dprintf(STDOUT_FILENO, "%s %d\n", item, error);
}

long in_child(long (*action)(const void *), const void *argument)
{
	int *answer =
		mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;

	*answer = EINTR;
	child = fork();
	if (child == 0) {
		*answer = action(argument) < 0 ? errno : 0;
		_exit(0);
	}
	waitpid(child, &status, 0);
	errno = WIFSIGNALED(status) ? ECHILD : *answer;
	munmap(answer, sizeof(int));
	return errno == 0 ? 0 : -1;
}

void hold(void)
{
	char byte;

	dprintf(STDOUT_FILENO, "held 0\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

enum {
	SIGNALS_MAX = 64
};

/* By number: one handler interrupts another, and a count would be lost there. */
static volatile sig_atomic_t received[SIGNALS_MAX + 1];

static void note_signal(int number)
{
	received[number] = 1;
}

/* As PID 1 of a container without protections: runs a verb in a child, and tells how many of the
 * signals that it has a handler for reach itself. */
int run_plain(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = note_signal, .sa_flags = SA_RESTART };
	int handled = 0, reached = 0;
	pid_t child, ended;
	int status = 0;

	if (argc < 1)
		return 2;
	/* One child ends anyway, and a signal to stop takes back one to go on that still waits. */
	for (int number = 1; number <= SIGNALS_MAX; number++) {
		if (number != SIGCHLD && number != SIGCONT && sigaction(number, &action, NULL) == 0)
			handled++;
	}
	child = fork();
	if (child == 0)
		_exit(probe_run(argv[0], argc - 1, argv + 1));
	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	for (int number = 1; number <= SIGNALS_MAX; number++)
		reached += received[number];
	dprintf(STDOUT_FILENO, "handled %d\nreceived %d\n", handled, reached);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int probe_run(const char *verb, int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(verbs[i].name, verb) == 0)
			return verbs[i].run(argc, argv);
	}
	dprintf(STDERR_FILENO, "no verb %s\n", verb);
	return 2;
}

int main(int argc, char **argv)
{
	return argc < 2 ? 2 : probe_run(argv[1], argc - 2, argv + 2);
}
