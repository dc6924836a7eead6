/*
 * Workers: children that do what the loop must not wait for, and report through a pipe. A child
 * that ends without a report has died.
 */
#ifndef LAUNCHER_WORKER_H
#define LAUNCHER_WORKER_H

#include "failure.h"
#include "loop.h"

#include <sys/types.h>

struct worker {
	struct watch watch;
	struct worker *next; /* of those that have reported but not ended */
	pid_t pid;
	bool reaped_elsewhere;
	bool succeeded;
	/* Called once; `worker` is freed after it. */
	void (*done)(struct worker *worker);
	void *context;
	int item_count;
	struct failure failures[]; /* by item */
};

/* A new worker for so many items, whose report pipe's writing end is put in `report`; or NULL. */
struct worker *worker_new(void (*done)(struct worker *worker), void *context, int items,
			  int *report);
/* Waits for the report of `pid`; the writing end is closed here. */
void worker_start(struct worker *worker, pid_t pid, int report);
/* Undoes worker_new() when no child came of it. */
void worker_drop(struct worker *worker, int report);

/* In the child: the item failed at `step`; `err` is a positive errno. */
void worker_fail(int report, int item, const char *step, int err);
/* In the child: all that did not fail is done. */
void worker_succeed(int report);

/* Collects children that have ended. */
void worker_reap(void);

#endif
