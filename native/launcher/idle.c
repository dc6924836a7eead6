#include "idle.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "claim.h"
#include "kernel.h"
#include "link.h"
#include "loop.h"
#include "object.h"

enum {
	/* Longer than an edge takes to come back. */
	LINGER_S = 10,
};

static void linger_over(struct watch *watch, uint32_t events);

static struct watch linger = { .fd = -1, .ready = linger_over };

static void linger_over(struct watch *watch, uint32_t events)
{
	uint64_t ticks;

	(void)events;
	if (read(watch->fd, &ticks, sizeof(ticks)) == sizeof(ticks) && !link_is_used() &&
	    idle_is_empty())
		loop_stop();
}

bool idle_is_empty(void)
{
	return object_none() && !claim_is_populated();
}

void idle_begin(void)
{
	/* Again and again, as what is left may end by itself. */
	struct itimerspec later = { .it_value.tv_sec = LINGER_S, .it_interval.tv_sec = LINGER_S };

	timerfd_settime(linger.fd, 0, &later, NULL);
}

int idle_init(void)
{
	linger.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (linger.fd < 0)
		return -errno;
	idle_begin();
	return watch_add(&linger, EPOLLIN);
}
