/*
 * A command of the grader. It gets a descriptor to report on (3) and one to read a secret word from
 * (4), which begins each of its lines: `WORD OUTCOME NAME`. It reads the word and closes 4 before
 * anything of the solution is run. What it writes goes to the runner's standard error. The runner
 * has another user, no capability, and cannot be looked into, so that its standard output, which
 * the host believes, is out of reach.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "runner.h"

enum {
	RUNNER_ID = 65532,
	REPORT = 3,
	WORD = 4,
	WORD_BYTES = 32,
	LINE_BYTES_MAX = 1024,
	LINES_MAX = 65536,
	LAST_CAPABILITY = 63,
};

static char word[WORD_BYTES + 1];

static int make_word(void)
{
	uint8_t bytes[WORD_BYTES / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -1;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(word + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/*
 * Nothing gives a capability back: root without one is a user among others. Securebits keep them
 * over the change of user, so that they go last.
 */
static int lock_capabilities(void)
{
	for (int i = 0; i <= LAST_CAPABILITY; i++) {
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) && errno != EINVAL)
			return -1;
	}
	return prctl(PR_SET_SECUREBITS, KERNEL_SECUREBITS, 0, 0, 0);
}

static int drop_capabilities(void)
{
	struct kernel_capability_header header = { KERNEL_CAPABILITY_VERSION_3, 0 };
	struct kernel_capability_sets none[2] = { 0 };

	return (int)syscall(SYS_capset, &header, none);
}

static int become(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -1;
	return 0;
}

static int place_descriptor(int from, int to)
{
	return dup2(from, to) < 0 ? -1 : 0;
}

static _Noreturn void start(uid_t uid, gid_t gid, char **argv, int report, int words)
{
	struct rlimit no_core = { 0, 0 };
	/* Out of the way of the numbers that they get. */
	int high_report = fcntl(report, F_DUPFD, 16);
	int high_words = fcntl(words, F_DUPFD, 16);
	int null = open("/dev/null", O_RDONLY);

	if (high_report < 0 || high_words < 0 || null < 0 || place_descriptor(null, 0) ||
	    place_descriptor(2, 1) || place_descriptor(high_report, REPORT) ||
	    place_descriptor(high_words, WORD) || syscall(SYS_close_range, WORD + 1, ~0u, 0))
		_exit(complain("descriptors", ""));
	if (setsid() < 0 || setrlimit(RLIMIT_CORE, &no_core))
		_exit(complain("session", ""));
	if (lock_capabilities() || become(uid, gid) || drop_capabilities() ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(complain("privileges", ""));
	execvp(argv[0], argv);
	_exit(complain("run", argv[0]));
}

static bool is_outcome(const char *text, size_t length)
{
	static const char *const outcomes[] = { "passed", "failed", "skipped", "error" };

	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		if (strlen(outcomes[i]) == length && !memcmp(outcomes[i], text, length))
			return true;
	}
	return false;
}

/* Tells the host a line without its word, or that one was none. */
static void tell(const char *line)
{
	const char *outcome = line + WORD_BYTES + 1;
	const char *space;

	if (strncmp(line, word, WORD_BYTES) || line[WORD_BYTES] != ' ' ||
	    !(space = strchr(outcome, ' ')) || !space[1] ||
	    !is_outcome(outcome, (size_t)(space - outcome)))
		puts("bad");
	else
		printf("test %s\n", outcome);
}

struct reader {
	char line[LINE_BYTES_MAX];
	size_t length;
	int lines;
	bool over; /* too long, or too many */
};

static void take(struct reader *reader, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count && !reader->over; i++) {
		if (bytes[i] != '\n') {
			reader->over = reader->length == LINE_BYTES_MAX - 1 || !bytes[i];
			reader->line[reader->length] = bytes[i];
			reader->length += !reader->over;
			continue;
		}
		reader->line[reader->length] = '\0';
		reader->length = 0;
		reader->over = ++reader->lines > LINES_MAX;
		tell(reader->line);
	}
}

/* Returns false at the end of what there is. */
static bool read_some(struct reader *reader, int report)
{
	char bytes[4096];
	ssize_t count = read(report, bytes, sizeof(bytes));

	if (count > 0)
		take(reader, bytes, (size_t)count);
	return count > 0 && !reader->over;
}

/* Until the command has ended: whoever else holds the other end is of no interest. */
static void follow(struct reader *reader, int report, int process)
{
	struct pollfd polled[] = { { .fd = report, .events = POLLIN },
				   { .fd = process, .events = POLLIN } };

	while (!(polled[1].revents & POLLIN)) {
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			break;
		if (polled[0].revents && !read_some(reader, report))
			polled[0].fd = -1;
	}
	while (polled[0].fd >= 0 && read_some(reader, report))
		;
	if (reader->over || reader->length)
		puts("bad");
}

static int supervise(pid_t child, int report)
{
	int process = (int)syscall(SYS_pidfd_open, child, 0);
	static struct reader reader;
	int status;

	if (process < 0 || become(RUNNER_ID, RUNNER_ID) || fcntl(report, F_SETFL, O_NONBLOCK) < 0)
		return complain("supervise", "");
	follow(&reader, report, process);
	if (waitpid(child, &status, 0) != child)
		return complain("wait", "");
	if (WIFEXITED(status))
		printf("exit %d\n", WEXITSTATUS(status));
	else
		printf("signal %d\n", WTERMSIG(status));
	return fflush(stdout) ? 1 : 0;
}

int run_command(uid_t uid, gid_t gid, char **argv)
{
	int report[2], words[2];
	pid_t child;

	if (make_word() || pipe2(report, O_CLOEXEC) || pipe2(words, O_CLOEXEC))
		return complain("pipes", "");
	if (write(words[1], word, WORD_BYTES) != WORD_BYTES || write(words[1], "\n", 1) != 1)
		return complain("word", "");
	close(words[1]);
	child = fork();
	if (child < 0)
		return complain("fork", "");
	if (child == 0)
		start(uid, gid, argv, report[1], words[0]);
	close(report[1]);
	close(words[0]);
	return supervise(child, report[0]);
}
