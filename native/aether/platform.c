#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dsec_protocol.gen.h"
#include "kernel.h"

enum {
	OWN_FD_MIN = 32,
};

struct session_ids session_ids = { .namespace_fd = -1 };
struct rlimit session_files;
int proc_fd = -1;

static uint8_t instance[DSEC_NONCE_BYTES];

const uint8_t *platform_instance(void)
{
	return instance;
}

/* 0, 1 and 2 must be taken, or a pipe for a command would get one of these numbers. */
static int standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return fcntl(2, F_GETFD) < 0 ? -errno : 0;
	close(fd);
	return 0;
}

/* Exactly the descriptors that were meant are kept; the rest was leaked by whoever started aether.
 */
static int own_descriptors(void)
{
	unsigned int last = session_ids.count > 0 ? SESSION_NAMESPACE_FD : LISTENER_FD;

	if (kernel_close_range(last + 1, ~0u, 0))
		return -errno;
	for (unsigned int fd = LISTENER_FD; fd <= last; fd++) {
		if (fcntl((int)fd, F_SETFD, FD_CLOEXEC))
			return -errno;
	}
	if (fcntl(LISTENER_FD, F_SETFL, O_NONBLOCK))
		return -errno;
	if (session_ids.count > 0)
		session_ids.namespace_fd = SESSION_NAMESPACE_FD;
	return 0;
}

/*
 * Undumpable: no ptrace, no /proc/PID/{mem,fd,maps,environ,root} for those who share its user id.
 * Subreaper: what loses its parent comes here even when aether is not PID 1.
 */
static int out_of_reach(void)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return -errno;
	return 0;
}

/*
 * Every signal is ignored, which drops it when it is sent; a blocked one would be kept in memory.
 * SIGCHLD alone is blocked, for the loop, as ignoring it would throw away how children ended.
 */
static int deaf(void)
{
	for (int signal = 1; signal <= SIGNAL_MAX; signal++) {
		if (signal != SIGKILL && signal != SIGSTOP && signal != SIGCHLD &&
		    kernel_sigaction(signal, SIG_IGN))
			return -errno;
	}
	if (kernel_sigaction(SIGCHLD, SIG_DFL) || kernel_sigmask(UINT64_C(1) << (SIGCHLD - 1)))
		return -errno;
	return 0;
}

static int open_files(void)
{
	struct rlimit own;

	if (getrlimit(RLIMIT_NOFILE, &session_files))
		return -errno;
	own = (struct rlimit){ session_files.rlim_max, session_files.rlim_max };
	return setrlimit(RLIMIT_NOFILE, &own) ? -errno : 0;
}

static int directories(void)
{
	int fd;

	umask(022);
	if (chdir("/"))
		return -errno;
	fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	proc_fd = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD_MIN);
	close(fd);
	return 0;
}

static int identity(void)
{
	prctl(PR_SET_NAME, "aether", 0, 0, 0);
	return getrandom(instance, sizeof(instance), 0) == sizeof(instance) ? 0 : -EIO;
}

static const struct {
	const char *name;
	int (*run)(void);
} steps[] = {
	{ "standard descriptors", standard_descriptors },
	{ "descriptors", own_descriptors },
	{ "out of reach", out_of_reach },
	{ "signals", deaf },
	{ "open files", open_files },
	{ "directories", directories },
	{ "identity", identity },
};

static int read_arguments(int argc, char **argv)
{
	static const char option[] = "--session-ids";
	char rest;

	if (argc == 1)
		return 0;
	if (argc != 3 || strcmp(argv[1], option) ||
	    sscanf(argv[2], "%u:%u:%u%c", &session_ids.inside, &session_ids.outside,
		   &session_ids.count, &rest) != 3 ||
	    session_ids.count == 0)
		return -EINVAL;
	return 0;
}

int platform_init(int argc, char **argv)
{
	int err = read_arguments(argc, argv);

	if (err) {
		fprintf(stderr,
			"usage: aether [--session-ids INSIDE:OUTSIDE:COUNT] | --crash-points\n");
		return err;
	}
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		err = steps[i].run();
		if (err) {
			fprintf(stderr, "aether: %s: %s\n", steps[i].name, strerror(-err));
			return err;
		}
	}
	return 0;
}
