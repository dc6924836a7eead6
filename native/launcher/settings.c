#include "settings.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cgroup.h"
#include "lifecycle.h"
#include "worker.h"

enum {
	/* More than sandboxes that are likely to be paused at one time. */
	WRITERS_MAX = 16,
	WRITES_MAX = 1024,
};

struct write {
	struct write *next; /* in the order in which they were asked for */
	struct object *object;
	struct origin origin;
	struct place place;
	struct dsec_list settings;
	pid_t writer; /* 0: not begun */
	bool cancelled;
	uint8_t bytes[]; /* of the settings */
};

static struct write *writes;
static int write_count;
static int writers;

static void start_writers(void);

static void take_off(const struct write *write)
{
	struct write **link = &writes;

	while (*link != write)
		link = &(*link)->next;
	*link = write->next;
	write_count--;
}

/* Nothing is left of it after this. */
static void answer(struct write *write, const struct failure *failure)
{
	struct object *object = write->object;
	bool cancelled = write->cancelled;

	if (failure->code)
		link_fail(write->origin, failure);
	else
		link_done(write->origin);
	take_off(write);
	free(write);
	if (cancelled)
		lifecycle_written(object);
}

static void writer_done(struct worker *worker)
{
	struct failure failure = worker->failures[0];

	if (!worker->succeeded && !failure.code)
		failure = failure_of(DSEC_ERROR_INTERNAL, "the writer died");
	writers--;
	answer(worker->context, &failure);
	start_writers();
}

/* It goes with the launcher: the next one must not find the settings change behind its back. */
static _Noreturn void run_writer(const struct write *write, pid_t launcher, int report)
{
	char step[STEP_BYTES_MAX] = "writer";
	int err = prctl(PR_SET_PDEATHSIG, SIGKILL) ? -errno : 0;

	if (getppid() != launcher)
		_exit(1);
	if (!err)
		err = cgroup_write(&write->place, write->settings, step);
	if (err)
		worker_fail(report, 0, step, -err);
	else
		worker_succeed(report);
	_exit(0);
}

static int start_writer(struct write *write)
{
	pid_t launcher = getpid();
	struct worker *worker;
	int report;

	worker = worker_new(writer_done, write, 1, &report);
	if (!worker)
		return -ENOMEM;
	write->writer = fork();
	if (write->writer == 0)
		run_writer(write, launcher, report);
	if (write->writer < 0) {
		int err = -errno;

		worker_drop(worker, report);
		return err;
	}
	writers++;
	worker_start(worker, write->writer, report);
	return 0;
}

static bool is_first_of_object(const struct write *write)
{
	const struct write *other = writes;

	while (other->object != write->object)
		other = other->next;
	return other == write;
}

static void start_writers(void)
{
	struct write *next;

	for (struct write *write = writes; write && writers < WRITERS_MAX; write = next) {
		next = write->next;
		if (!write->writer && is_first_of_object(write)) {
			int err = start_writer(write);

			if (err) {
				struct failure failure = failure_at("writer", -err);

				answer(write, &failure);
			}
		}
	}
}

void settings_write(struct object *object, const struct place *place, struct origin origin,
		    struct dsec_list settings)
{
	struct failure failure = failure_of(DSEC_ERROR_OVERLOADED, "too many settings to write");
	struct write **end = &writes;
	struct write *write = NULL;

	if (write_count < WRITES_MAX)
		write = calloc(1, sizeof(*write) + settings.items.length);
	if (!write) {
		link_fail(origin, &failure);
		return;
	}
	memcpy(write->bytes, settings.items.data, settings.items.length);
	write->object = object;
	write->origin = origin;
	write->place = *place;
	write->settings = settings;
	write->settings.items.data = write->bytes;
	while (*end)
		end = &(*end)->next;
	*end = write;
	write_count++;
	start_writers();
}

bool settings_cancel(const struct object *object)
{
	struct failure failure = failure_of(DSEC_ERROR_NOT_FOUND, "the object is being released");
	bool is_writing = false;
	struct write *next;

	for (struct write *write = writes; write; write = next) {
		next = write->next;
		if (write->object != object)
			continue;
		if (!write->writer) {
			answer(write, &failure);
			continue;
		}
		write->cancelled = true;
		is_writing = true;
		kill(write->writer, SIGKILL);
	}
	return is_writing;
}
