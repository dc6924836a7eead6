#include "worker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dsec_protocol.gen.h"

/* Shorter than PIPE_BUF, so that it arrives whole. */
struct report {
	int item; /* -1: the end */
	int err;
	char step[STEP_BYTES_MAX];
};

static struct worker *ending;

static void finish(struct worker *worker)
{
	worker->done(worker);
	free(worker);
}

static void report_ready(struct watch *watch, uint32_t events)
{
	struct worker *worker = container_of(watch, struct worker, watch);
	struct report report;
	ssize_t length = read(watch->fd, &report, sizeof(report));

	(void)events;
	if (length == sizeof(report)) {
		if (report.item < 0)
			worker->succeeded = true;
		else if (report.item < worker->item_count)
			worker->failures[report.item] = failure_at(report.step, report.err);
		return;
	}
	watch_close(watch);
	if (worker->reaped_elsewhere) {
		finish(worker);
		return;
	}
	worker->next = ending;
	ending = worker;
	worker_reap();
}

struct worker *worker_new(void (*done)(struct worker *worker), void *context, int items,
			  int *report)
{
	struct worker *worker =
		calloc(1, sizeof(*worker) + sizeof(worker->failures[0]) * (size_t)items);
	int ends[2];

	if (!worker)
		return NULL;
	if (pipe2(ends, O_CLOEXEC)) {
		free(worker);
		return NULL;
	}
	*report = ends[1];
	worker->watch = (struct watch){ ends[0], report_ready };
	worker->done = done;
	worker->context = context;
	worker->item_count = items;
	if (watch_add(&worker->watch, EPOLLIN)) {
		worker_drop(worker, ends[1]);
		return NULL;
	}
	return worker;
}

void worker_start(struct worker *worker, pid_t pid, int report)
{
	worker->pid = pid;
	close(report);
}

void worker_drop(struct worker *worker, int report)
{
	watch_close(&worker->watch);
	close(report);
	free(worker);
}

static void send_report(int fd, int item, const char *step, int err)
{
	struct report report = { .item = item, .err = err };

	strncpy(report.step, step, sizeof(report.step) - 1);
	(void)!write(fd, &report, sizeof(report));
}

void worker_fail(int report, int item, const char *step, int err)
{
	send_report(report, item, step, err);
}

void worker_succeed(int report)
{
	send_report(report, -1, "", 0);
}

void worker_reap(void)
{
	struct worker **link = &ending;

	while (*link) {
		struct worker *worker = *link;

		if (waitpid(worker->pid, NULL, WNOHANG) == 0) {
			link = &worker->next;
			continue;
		}
		*link = worker->next;
		finish(worker);
		link = &ending;
	}
}
