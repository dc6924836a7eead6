#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "crash.h"
#include "failure.h"
#include "rules.h"
#include "tree.h"

static struct process *processes;

static void unlink_process(struct process *process)
{
	struct process **at = &processes;

	while (*at && *at != process)
		at = &(*at)->next;
	if (*at)
		*at = process->next;
}

/* aether's ends, which must not block, and the leader's. */
struct ends {
	int own[5]; /* stdin, stdout, stderr, script, status */
	int theirs[5];
};

static int make_pipe(int *read_end, int *write_end, int *own)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	*read_end = fds[0];
	*write_end = fds[1];
	return fcntl(*own, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static int make_pipes(struct ends *ends, bool stdin_open)
{
	int err = 0;

	if (stdin_open)
		err = make_pipe(&ends->theirs[0], &ends->own[0], &ends->own[0]);
	for (int i = 1; i <= 2 && !err; i++)
		err = make_pipe(&ends->own[i], &ends->theirs[i], &ends->own[i]);
	return err;
}

static int make_session_pipes(struct ends *ends)
{
	int err = make_pipe(&ends->theirs[3], &ends->own[3], &ends->own[3]);

	return err ? err : make_pipe(&ends->own[4], &ends->theirs[4], &ends->own[4]);
}

static int make_terminal(struct ends *ends, struct process_size size)
{
	struct winsize window = { .ws_row = size.rows, .ws_col = size.columns };
	int unlock = 0;
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (master < 0)
		return -errno;
	ends->own[1] = master;
	if (ioctl(master, TIOCSPTLCK, &unlock) || ioctl(master, TIOCSWINSZ, &window))
		return -errno;
	/* By the master, not by a path that somebody could have put something else under. */
	ends->theirs[1] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	/* One more descriptor of it for the loop, which waits for both directions apart. */
	ends->own[0] = fcntl(master, F_DUPFD_CLOEXEC, 0);
	return ends->theirs[1] < 0 || ends->own[0] < 0 ? -errno : 0;
}

static void close_all(const int fds[5])
{
	for (int i = 0; i < 5; i++) {
		if (fds[i] > 2)
			close(fds[i]);
	}
}

static void give_to_leader(struct start *start, const struct ends *ends, bool terminal)
{
	start->stdio[0] = terminal ? ends->theirs[1] : ends->theirs[0] < 0 ? 0 : ends->theirs[0];
	start->stdio[1] = ends->theirs[1];
	start->stdio[2] = terminal ? ends->theirs[1] : ends->theirs[2];
	start->terminal = terminal ? ends->theirs[1] : -1;
	start->script = ends->theirs[3];
	start->status = ends->theirs[4];
	start->drain[0] = terminal ? -1 : ends->own[1];
	start->drain[1] = terminal ? -1 : ends->own[2];
}

static void on_report(struct watch *watch, uint32_t events);

static int fork_keeper(struct process *process, struct start *start)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	start->control = pair[1];
	pid = fork();
	if (pid == 0)
		keeper_run(start);
	close(pair[1]);
	if (pid < 0) {
		int err = -errno;

		close(pair[0]);
		return err;
	}
	process->keeper = (struct watch){ .fd = pair[0], .ready = on_report };
	process->keeper_pid = pid;
	return watch_set(&process->keeper, EPOLLIN);
}

int process_start(struct process *process, struct start *start, const struct process_owner *owner,
		  struct process_size terminal, bool stdin_open)
{
	struct ends ends = { { -1, -1, -1, -1, -1 }, { -1, -1, -1, -1, -1 } };
	bool is_terminal = terminal.rows > 0;
	int err;

	process->owner = owner;
	process->keeper.fd = process->status.fd = process->script_fd = -1;
	err = is_terminal ? make_terminal(&ends, terminal) : make_pipes(&ends, stdin_open);
	if (!err && start->session)
		err = make_session_pipes(&ends);
	give_to_leader(start, &ends, is_terminal);
	if (!err)
		err = fork_keeper(process, start);
	close_all(ends.theirs);
	if (err) {
		close_all(ends.own);
		watch_close(&process->keeper);
		process->state = PROCESS_NONE;
		return err;
	}
	crash_point(CRASH_EXEC_FORKED);
	process->state = PROCESS_STARTING;
	process->next = processes;
	processes = process;
	inlet_open(&process->input, ends.own[0], is_terminal);
	for (int i = 0; i < 2; i++) {
		process->outputs[i].watch.fd = -1;
		if (ends.own[1 + i] >= 0)
			source_open(&process->outputs[i], ends.own[1 + i]);
	}
	process->script_fd = ends.own[3];
	process->status.fd = ends.own[4];
	return 0;
}

/* The keeper died, which takes a hand from outside or the kernel's, short of memory. */
static void keeper_lost(struct process *process)
{
	watch_close(&process->keeper);
	unlink_process(process);
	if (process->state == PROCESS_STARTING) {
		process->state = PROCESS_NONE;
		if (rules_held())
			process->owner->failed(process, DSEC_ERROR_UNAVAILABLE, 0, RULES_HELD);
		else
			process->owner->failed(process, DSEC_ERROR_INTERNAL, 0,
					       "the command's supervisor was lost");
	} else if (process->state == PROCESS_RUNNING) {
		/* Its children are aether's now; what nobody keeps any more is not left running. */
		process->keeper_lost = true;
		process->next = processes;
		processes = process;
		kill(process->leader_pid, SIGKILL);
	}
}

static void take_report(struct process *process, const struct report *report)
{
	char message[256];

	switch (report->kind) {
	case REPORT_STARTED:
		process->state = PROCESS_RUNNING;
		process->leader_pid = report->leader;
		process->owner->started(process);
		break;
	case REPORT_FAILED:
		process->state = PROCESS_NONE;
		failure_start_message(&report->failure, message, sizeof(message));
		process->owner->failed(process, failure_start_code(&report->failure),
				       report->failure.error, message);
		break;
	case REPORT_ENDED:
		process->state = PROCESS_ENDED;
		process->owner->ended(process,
				      &(struct ending){ report->status, report->user_us,
							report->system_us, report->peak_bytes });
		break;
	default:
		break;
	}
}

static void on_report(struct watch *watch, uint32_t events)
{
	struct process *process = container_of(watch, struct process, keeper);
	struct report report;

	ssize_t bytes = recv(watch->fd, &report, sizeof(report), MSG_DONTWAIT);

	(void)events;
	/* Of a keeper that ended before it took an order: what it said before comes next. */
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return;
	/* One at a time: the owner may free the process when it hears of its end. */
	if (bytes == sizeof(report))
		take_report(process, &report);
	else
		keeper_lost(process);
}

void process_order(struct process *process, enum order_kind kind, int signal)
{
	struct order order = { kind, signal };

	/* Its keeper waits for the exec, which whoever has the command's id can hold up. */
	if (process->state == PROCESS_STARTING && kind == ORDER_KILL_TREE)
		tree_signal(process->keeper_pid, SIGKILL, 0);
	/* A keeper that cannot take it is gone or about to go: its tree is empty. */
	if (process->keeper.fd >= 0 &&
	    send(process->keeper.fd, &order, sizeof(order), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	if (kind != ORDER_DRAIN && kind != ORDER_RELEASE)
		crash_point(CRASH_KILL_ORDERED);
}

void process_signal_leader(struct process *process, int signal)
{
	pid_t group;

	if (process->input.is_terminal && process->outputs[0].watch.fd >= 0 &&
	    !ioctl(process->outputs[0].watch.fd, TIOCGPGRP, &group) && group > 1)
		kill(-group, signal);
	else
		process_order(process, ORDER_SIGNAL_LEADER, signal);
}

int process_resize(struct process *process, struct process_size size)
{
	struct winsize window = { .ws_row = size.rows, .ws_col = size.columns };

	if (!process->input.is_terminal)
		return -ENOTTY;
	if (process->outputs[0].watch.fd >= 0)
		ioctl(process->outputs[0].watch.fd, TIOCSWINSZ, &window);
	return 0;
}

void process_release(struct process *process)
{
	if (process->state == PROCESS_NONE && process->keeper.fd < 0)
		return;
	process_order(process, ORDER_RELEASE, 0);
	unlink_process(process);
	watch_close(&process->keeper);
	watch_close(&process->status);
	if (process->script_fd >= 0)
		close(process->script_fd);
	process->script_fd = -1;
	inlet_close(&process->input);
	for (int i = 0; i < 2; i++)
		source_close(&process->outputs[i]);
	process->state = PROCESS_NONE;
}

static bool has_told_end(const struct process *process)
{
	struct report report;
	ssize_t bytes = recv(process->keeper.fd, &report, sizeof(report), MSG_DONTWAIT | MSG_PEEK);

	return bytes == sizeof(report) && report.kind == REPORT_ENDED;
}

/* The leader's parent is its keeper: whose child it is no more, that keeper is dead. */
void process_child_ended(pid_t pid, int status)
{
	for (struct process *process = processes; process; process = process->next) {
		if (process->state != PROCESS_RUNNING || process->leader_pid != pid)
			continue;
		/* The keeper reaped the leader itself, and this is another with its number. */
		if (!process->keeper_lost && has_told_end(process))
			return;
		watch_close(&process->keeper);
		unlink_process(process);
		process->keeper_lost = false;
		process->state = PROCESS_ENDED;
		process->owner->ended(process, &(struct ending){ .status = status });
		return;
	}
}
