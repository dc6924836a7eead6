#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"
#include "identity.h"
#include "kernel.h"
#include "platform.h"
#include "start.h"
#include "tree.h"

enum {
	/* A tree is stopped in so many walks at most before it is killed. */
	STOP_WALKS_MAX = 16,
	/* Between walks that kill; longer each time, for a process that the kernel cannot let go.
	 */
	KILL_PAUSE_MS_MAX = 100,
	/* How long the leader's end is not told because others of its tree are still dying. */
	KILL_WAIT_MS = 5000,
};

static struct {
	int control;
	int drain[2];
	bool draining;
	bool released;
	bool leader_ended;
	bool killing;	     /* the end is told once nothing is left */
	struct report ended; /* of kind REPORT_ENDED when it was held back */
	pid_t leader;
} keeper;

static struct program program;

static void report(const struct report *what)
{
	/* aether reads all reports, or is gone, which take_orders() will see. */
	if (keeper.control >= 0)
		(void)!send(keeper.control, what, sizeof(*what), MSG_NOSIGNAL);
}

static void tell_end(void)
{
	if (keeper.ended.kind == REPORT_ENDED)
		report(&keeper.ended);
	keeper.ended.kind = REPORT_NONE;
}

static _Noreturn void fail(const struct start_failure *failure)
{
	report(&(struct report){ .kind = REPORT_FAILED, .failure = *failure });
	_exit(1);
}

static uint64_t microseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* Reaps what ended. Ends the keeper when nothing is left. */
static void reap(void)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (pid != keeper.leader)
			continue;
		keeper.leader_ended = true;
		keeper.ended = (struct report){
			.kind = REPORT_ENDED,
			.leader = pid,
			.status = status,
			.user_us = microseconds(usage.ru_utime),
			.system_us = microseconds(usage.ru_stime),
			.peak_bytes = (uint64_t)usage.ru_maxrss * 1024,
		};
		if (!keeper.killing)
			tell_end();
	}
	if (pid < 0 && errno == ECHILD) {
		tell_end();
		_exit(0);
	}
}

/*
 * First everything is stopped, so that nothing starts anew what dies, until a walk meets no more
 * than the walk before. Then all are killed; those that lose their parent become the keeper's own
 * children, so that it sees the end of every one, and reap() ends the keeper after the last.
 */
static void kill_tree(pid_t spared)
{
	int before = -1;
	int pause_ms = 0;
	int waited_ms = 0;

	keeper.killing = !spared;

	for (int walk = 0; walk < STOP_WALKS_MAX; walk++) {
		int alive = tree_signal(getpid(), SIGSTOP, spared);

		if (alive <= before)
			break;
		before = alive;
	}
	for (;;) {
		int alive = tree_signal(getpid(), SIGKILL, spared);

		if (alive < 0 && !spared && !keeper.leader_ended)
			kill(keeper.leader, SIGKILL);
		reap();
		if (alive <= 0 && (spared || alive < 0))
			break;
		/* Death takes its time: a process may have much memory to give back. */
		poll(NULL, 0, pause_ms);
		waited_ms += pause_ms;
		if (waited_ms > KILL_WAIT_MS)
			tell_end();
		pause_ms = pause_ms < KILL_PAUSE_MS_MAX / 2 ? 2 * pause_ms + 1 : KILL_PAUSE_MS_MAX;
	}
	keeper.killing = false;
	tell_end();
}

static void obey(const struct order *order)
{
	switch (order->kind) {
	case ORDER_SIGNAL_LEADER:
		/* Not yet waited for, so the number is still the leader's. */
		if (!keeper.leader_ended)
			kill(keeper.leader, order->signal);
		break;
	case ORDER_SIGNAL_TREE:
		if (order->signal == SIGKILL)
			kill_tree(0);
		else
			tree_signal(getpid(), order->signal, 0);
		break;
	case ORDER_SIGNAL_BELOW:
		tree_signal(getpid(), order->signal, keeper.leader);
		break;
	case ORDER_KILL_TREE:
		kill_tree(0);
		break;
	case ORDER_KILL_BELOW:
		kill_tree(keeper.leader);
		break;
	case ORDER_DRAIN:
		keeper.draining = true;
		break;
	case ORDER_RELEASE:
		keeper.draining = true;
		keeper.released = true;
		break;
	default:
		break;
	}
}

static void take_orders(void)
{
	struct order order;
	ssize_t bytes;

	while ((bytes = recv(keeper.control, &order, sizeof(order), MSG_DONTWAIT)) == sizeof(order))
		obey(&order);
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* aether is gone. Without a word before, nothing is left that could ask for this command.
	 */
	close(keeper.control);
	keeper.control = -1;
	if (!keeper.released)
		kill_tree(0);
}

/* Keeps a background process from stopping at a full pipe, or dying of one that nobody reads. */
static void drop_output(int *fd)
{
	char scratch[16384];
	ssize_t bytes = read(*fd, scratch, sizeof(scratch));

	if (bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	close(*fd);
	*fd = -1;
}

static _Noreturn void keep(void)
{
	sigset_t none;

	sigemptyset(&none);
	for (;;) {
		struct pollfd polls[3] = {
			{ .fd = keeper.control, .events = POLLIN },
			{ .fd = keeper.draining ? keeper.drain[0] : -1, .events = POLLIN },
			{ .fd = keeper.draining ? keeper.drain[1] : -1, .events = POLLIN },
		};
		/* SIGCHLD is let in only here, so none is missed between reap() and the wait. */
		int count = ppoll(polls, 3, NULL, &none);

		reap();
		if (count <= 0)
			continue;
		if (polls[0].revents)
			take_orders();
		for (int i = 0; i < 2; i++) {
			if (polls[1 + i].revents)
				drop_output(&keeper.drain[i]);
		}
	}
}

static void on_child(int signal)
{
	(void)signal;
}

static int become_keeper(const struct start *start)
{
	struct sigaction action = { .sa_handler = on_child };
	int kept[] = {
		start->control,	 start->stdio[0],	   start->stdio[1],
		start->stdio[2], start->terminal,	   start->script,
		start->status,	 start->drain[0],	   start->drain[1],
		proc_fd,	 session_ids.namespace_fd,
	};

	prctl(PR_SET_NAME, "aether-keeper", 0, 0, 0);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) || sigaction(SIGCHLD, &action, NULL))
		return -errno;
	return descriptors_keep(kept, sizeof(kept) / sizeof(kept[0]));
}

/* /dev/stderr and the like open the pipe or terminal anew, which asks for its owner. */
static void own_stdio(const struct start *start)
{
	uint32_t uid = identity_outside(program.account.uid);
	uint32_t gid = identity_outside(program.account.gid);

	for (int i = 0; i < 3; i++) {
		struct stat status;

		if (start->stdio[i] < 0 || fstat(start->stdio[i], &status))
			continue;
		if ((S_ISFIFO(status.st_mode) || start->terminal >= 0) &&
		    fchown(start->stdio[i], uid, start->terminal >= 0 ? (gid_t)-1 : gid)) {
			/* Not ours to give: the command can still use the descriptor itself. */
			continue;
		}
	}
	if (start->script >= 0 && fchown(start->script, uid, gid))
		return;
}

/*
 * Shares its memory with the leader until the exec, which then costs no copy, and waits for it.
 * Both go first when memory is short, until the keeper has a leader to wait for.
 */
static void start_leader(const struct start *start)
{
	static struct start_failure failure;
	int score = identity_open_score();
	int err = score < 0 ? score : identity_yield_memory(score, YIELD_LEADER);

	if (err)
		fail(&(struct start_failure){ STEP_KEEPER, -err });
	keeper.leader = vfork();
	if (keeper.leader == 0)
		leader_run(start, &program, &failure);
	if (keeper.leader < 0)
		fail(&(struct start_failure){ STEP_FORK, errno });
	if (failure.error) {
		waitpid(keeper.leader, NULL, 0);
		fail(&failure);
	}
	(void)identity_yield_memory(score, YIELD_KEEPER);
	close(score);
}

void keeper_run(const struct start *start)
{
	struct start_failure failure = { 0 };
	int err;

	keeper.control = start->control;
	keeper.drain[0] = start->drain[0];
	keeper.drain[1] = start->drain[1];
	if (program_prepare(start, &program, &failure))
		fail(&failure);
	err = become_keeper(start);
	if (err)
		fail(&(struct start_failure){ STEP_KEEPER, -err });
	own_stdio(start);
	start_leader(start);
	report(&(struct report){ .kind = REPORT_STARTED, .leader = keeper.leader });
	/* The command alone holds its ends, or aether would never see them close. */
	for (int i = 0; i < 3; i++) {
		if (start->stdio[i] > 2 && start->stdio[i] != start->control)
			close(start->stdio[i]);
	}
	if (start->script >= 0)
		close(start->script);
	if (start->status >= 0)
		close(start->status);
	keep();
}
