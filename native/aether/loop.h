/*
 * The event loop: descriptors through epoll, deadlines on the running clock, and children that
 * ended.
 *
 * The running clock advances with CLOCK_MONOTONIC, but by no more than a tick between two looks at
 * it. While a cgroup is frozen aether is frozen with it, so a pause of any length counts as at most
 * one tick: that is what makes a timeout a limit on running time. The price is a look at the clock
 * every tick while something is timed; without, the loop sleeps until a descriptor is ready.
 */
#ifndef AETHER_LOOP_H
#define AETHER_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define container_of(pointer, type, member)                                                        \
	((type *)(void *)((char *)(pointer) - __builtin_offsetof(type, member)))

/* A descriptor in the loop; `fd` is -1 when there is none. */
struct watch {
	int fd;
	uint32_t events;
	void (*ready)(struct watch *watch, uint32_t events);
};

struct timer {
	struct timer *next;
	bool armed;
	uint64_t due_ms;
	void (*fire)(struct timer *timer);
};

int loop_init(void);
/* Never returns. */
void loop_run(void);

/* Waits for `events` from now on; 0 takes the descriptor out. Returns 0 or a negative errno. */
int watch_set(struct watch *watch, uint32_t events);
/* Takes the descriptor out and closes it. */
void watch_close(struct watch *watch);

/* Milliseconds that aether has been running; see above. */
uint64_t running_ms(void);
/* Keeps the running clock exact while something is measured by it. */
void running_hold(void);
void running_release(void);

void timer_start(struct timer *timer, uint64_t delay_ms);
void timer_stop(struct timer *timer);

/* Called after each round of events, to send what they left to say and to tear down what they
 * ended. */
extern void (*loop_settle)(void);
/* Called for each child that ended, after it was reaped. */
extern void (*loop_child_ended)(pid_t pid, int status);
/* Called when no further one has ended. */
extern void (*loop_children_ended)(void);

#endif
