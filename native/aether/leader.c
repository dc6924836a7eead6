#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "identity.h"
#include "kernel.h"
#include "platform.h"
#include "rules.h"
#include "start.h"

enum {
	/* Descriptors that are about to be put in place stay above all places. */
	CLEAR_FD_MIN = 32,
	/* Where a session's shell finds its script and its status descriptor. */
	SCRIPT_FD = 3,
	STATUS_FD = 9,
};

static int moved_up(int *fd)
{
	if (*fd < 0)
		return 0;
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, CLEAR_FD_MIN);
	return *fd < 0 ? -errno : 0;
}

static int put(int fd, int place)
{
	return fd >= 0 && dup2(fd, place) < 0 ? -errno : 0;
}

/* Exactly 0, 1 and 2 survive the exec, and a session's two. */
static int step_descriptors(struct start *start, const struct program *program)
{
	int err = 0;

	(void)program;
	for (int i = 0; i < 3 && !err; i++)
		err = moved_up(&start->stdio[i]);
	if (!err)
		err = moved_up(&start->script);
	if (!err)
		err = moved_up(&start->status);
	if (!err && kernel_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC))
		err = -errno;
	for (int i = 0; i < 3 && !err; i++)
		err = put(start->stdio[i], i);
	if (!err)
		err = put(start->script, SCRIPT_FD);
	return err ? err : put(start->status, STATUS_FD);
}

static int step_terminal(struct start *start, const struct program *program)
{
	(void)program;
	if (setsid() < 0)
		return -errno;
	return start->terminal >= 0 && ioctl(0, TIOCSCTTY, 0) ? -errno : 0;
}

static int step_identity(struct start *start, const struct program *program)
{
	(void)start;
	return identity_assume(&program->account);
}

static int step_limits(struct start *start, const struct program *program)
{
	(void)start;
	(void)program;
	return setrlimit(RLIMIT_NOFILE, &session_files) ? -errno : 0;
}

static int step_directory(struct start *start, const struct program *program)
{
	(void)start;
	return chdir(program->cwd) ? -errno : 0;
}

static int step_rules(struct start *start, const struct program *program)
{
	(void)start;
	(void)program;
	return rules_confine();
}

/* Tries one place; what says most about why nothing was found stays in `err`. */
static void try_program(const char *path, const struct program *program, int *err)
{
	execve(path, program->argv, program->env);
	if (errno != ENOENT && errno != ENOTDIR)
		*err = -errno;
}

static int step_command(struct start *start, const struct program *program)
{
	const char *name = program->argv[0];
	const char *place = program->search_path;
	char path[4096];
	int err = -ENOENT;

	(void)start;
	for (int signal = 1; signal <= SIGNAL_MAX; signal++) {
		if (signal != SIGKILL && signal != SIGSTOP)
			kernel_sigaction(signal, SIG_DFL);
	}
	kernel_sigmask(0);
	/* Whatever it denies, an exec is all that is left to do. */
	if (rules_filter())
		return -ENOTRECOVERABLE;
	if (strchr(name, '/')) {
		execve(name, program->argv, program->env);
		return -errno;
	}
	while (place && *name) {
		size_t length = strcspn(place, ":");
		const char *directory = length > 0 ? place : ".";

		if (snprintf(path, sizeof(path), "%.*s/%s", length > 0 ? (int)length : 1, directory,
			     name) < (int)sizeof(path))
			try_program(path, program, &err);
		place = place[length] ? place + length + 1 : NULL;
	}
	return err;
}

static const struct {
	enum start_step step;
	int (*run)(struct start *start, const struct program *program);
} steps[] = {
	{ STEP_DESCRIPTORS, step_descriptors }, { STEP_TERMINAL, step_terminal },
	{ STEP_IDENTITY, step_identity },	{ STEP_LIMITS, step_limits },
	{ STEP_DIRECTORY, step_directory },	{ STEP_RULES, step_rules },
	{ STEP_COMMAND, step_command },
};

void leader_run(const struct start *from, const struct program *program,
		struct start_failure *failure)
{
	struct start start = *from;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int err = steps[i].run(&start, program);

		if (!err)
			continue;
		*failure = (struct start_failure){ (int32_t)steps[i].step, -err };
		break;
	}
	/* The command itself never gets here: a successful exec does not return. */
	_exit(127);
}
