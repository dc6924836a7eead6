#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

void (*loop_child_ended)(void);

static int epoll_fd = -1;
static bool stopping;

static void signals_ready(struct watch *watch, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			loop_child_ended();
		else
			stopping = true;
	}
}

static struct watch signals = { .fd = -1, .ready = signals_ready };

int loop_init(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (epoll_fd < 0 || signals.fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	return watch_add(&signals, EPOLLIN);
}

void loop_stop(void)
{
	stopping = true;
}

int watch_add(struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
}

int watch_change(struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) ? -errno : 0;
}

void watch_close(struct watch *watch)
{
	if (watch->fd < 0)
		return;
	/* A child that was just forked may hold a copy, which would keep the descriptor in the set.
	 */
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	close(watch->fd);
	watch->fd = -1;
}

int loop_run(void)
{
	struct epoll_event event;

	while (!stopping) {
		struct watch *watch;

		if (epoll_wait(epoll_fd, &event, 1, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		watch = event.data.ptr;
		watch->ready(watch, event.events);
	}
	return 0;
}
