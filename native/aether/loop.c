#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH_MAX = 32,
	/* How often the running clock is looked at, and how late a look may be and still count. */
	TICK_MS = 1000,
	LATE_MS = 500,
	/* Descriptors of aether itself stay clear of those that children are given. */
	OWN_FD_MIN = 32,
};

void (*loop_settle)(void);
void (*loop_child_ended)(pid_t pid, int status);
void (*loop_children_ended)(void);

static int epoll_fd = -1;
static struct epoll_event batch[BATCH_MAX];
static int batch_count;
static struct timer *timers; /* sorted by due_ms */
static uint64_t seen_ms;
static uint64_t counted_ms;
static unsigned int holders;

static uint64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t running_ms(void)
{
	uint64_t now = monotonic_ms();
	uint64_t passed = now - seen_ms;

	seen_ms = now;
	counted_ms += passed < TICK_MS + LATE_MS ? passed : TICK_MS + LATE_MS;
	return counted_ms;
}

void running_hold(void)
{
	if (holders++ == 0)
		running_ms();
}

void running_release(void)
{
	holders--;
}

void timer_start(struct timer *timer, uint64_t delay_ms)
{
	uint64_t due_ms = running_ms() + delay_ms;
	struct timer **at = &timers;

	timer_stop(timer);
	while (*at && (*at)->due_ms <= due_ms)
		at = &(*at)->next;
	timer->due_ms = due_ms;
	timer->armed = true;
	timer->next = *at;
	*at = timer;
}

void timer_stop(struct timer *timer)
{
	struct timer **at = &timers;

	if (!timer->armed)
		return;
	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	timer->armed = false;
}

/* An event that was fetched before its watch changed must not be delivered: the watch may be gone.
 */
static void forget_fetched(struct watch *watch)
{
	for (int i = 0; i < batch_count; i++) {
		if (batch[i].data.ptr == watch)
			batch[i].data.ptr = NULL;
	}
}

int watch_set(struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };
	int operation = events == 0 ? EPOLL_CTL_DEL : watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (watch->events == events || watch->fd < 0)
		return 0;
	/*
	 * A hang-up is reported even when nothing was asked for, so a watch without interest leaves
	 * the set altogether instead of waking the loop for ever.
	 */
	if (epoll_ctl(epoll_fd, operation, watch->fd, &event))
		return -errno;
	watch->events = events;
	if (events == 0)
		forget_fetched(watch);
	return 0;
}

void watch_close(struct watch *watch)
{
	if (watch->fd < 0)
		return;
	watch_set(watch, 0);
	close(watch->fd);
	watch->fd = -1;
}

static void reap(struct watch *watch, uint32_t events)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (loop_child_ended)
			loop_child_ended(pid, status);
	}
	if (loop_children_ended)
		loop_children_ended();
}

static struct watch children = { .fd = -1, .ready = reap };

static int raised(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD_MIN);

	close(fd);
	return moved;
}

int loop_init(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	seen_ms = monotonic_ms();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	children.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (epoll_fd < 0 || children.fd < 0)
		return -errno;
	epoll_fd = raised(epoll_fd);
	children.fd = raised(children.fd);
	if (epoll_fd < 0 || children.fd < 0)
		return -errno;
	return watch_set(&children, EPOLLIN);
}

static int wait_ms(void)
{
	uint64_t wait = TICK_MS;
	uint64_t now;

	if (!timers && holders == 0)
		return -1;
	now = running_ms();
	if (timers && timers->due_ms < now + wait)
		wait = timers->due_ms > now ? timers->due_ms - now : 0;
	return (int)wait;
}

static void fire_due(void)
{
	uint64_t now;

	if (!timers)
		return;
	now = running_ms();
	while (timers && timers->due_ms <= now) {
		struct timer *timer = timers;

		timer_stop(timer);
		timer->fire(timer);
	}
}

void loop_run(void)
{
	for (;;) {
		int count = epoll_wait(epoll_fd, batch, BATCH_MAX, wait_ms());

		batch_count = count > 0 ? count : 0;
		for (int i = 0; i < batch_count; i++) {
			struct watch *watch = batch[i].data.ptr;

			if (watch)
				watch->ready(watch, batch[i].events);
		}
		batch_count = 0;
		fire_due();
		loop_settle();
	}
}
