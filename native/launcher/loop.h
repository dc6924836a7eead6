/* The event loop of the launcher: descriptors through epoll, and children that ended. */
#ifndef LAUNCHER_LOOP_H
#define LAUNCHER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#define container_of(pointer, type, member)                                                        \
	((type *)(void *)((char *)(pointer) - __builtin_offsetof(type, member)))

/* One event is handled at a time, so a handler may destroy any watch. */
struct watch {
	int fd;
	void (*ready)(struct watch *watch, uint32_t events);
};

int loop_init(void);
/* Runs until SIGTERM or SIGINT. Returns 0 or a negative errno. */
int loop_run(void);
/* As SIGTERM does. */
void loop_stop(void);

int watch_add(struct watch *watch, uint32_t events);
int watch_change(struct watch *watch, uint32_t events);
/* Takes the descriptor out and closes it. */
void watch_close(struct watch *watch);

/* Called when some child may have ended. */
extern void (*loop_child_ended)(void);

#endif
