/* Processes and processor time: as many as told, or as it gets. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
	FUTEX_WAKE = 1,
};

/* Takes every number that becomes free. */
static void bomb(void)
{
	for (;;) {
		pid_t child = fork();

		while (child == 0)
			pause();
		if (child < 0)
			usleep(500);
	}
}

/*
 * `forks <most> [again]`: children that stay; the first refusal ends it, or with `again` nothing
 * does.
 */
int run_forks(int argc, char **argv)
{
	int most = argc > 0 ? atoi(argv[0]) : 0, made = 0;
	pid_t child = 0;

	if (argc > 1 && fork() == 0)
		bomb();
	while (made < most && (child = fork()) > 0)
		made++;
	if (child == 0 && made < most) {
		pause();
		_exit(0);
	}
	dprintf(STDOUT_FILENO, "end-of-pool %d\n", child < 0 ? errno : 0);
	dprintf(STDOUT_FILENO, "taken %d\n", made);
	hold();
	kill(0, SIGKILL);
	return 0;
}

static uint32_t word;

static void *keep_busy(void *argument)
{
	struct itimerspec often = { { 0, 1000 }, { 0, 1000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	uint64_t times;

	timerfd_settime(timer, 0, &often, NULL);
	for (;;) {
		syscall(SYS_futex, &word, FUTEX_WAKE, 1000, NULL, NULL, 0);
		if (read(timer, &times, sizeof(times)) < 0)
			word++;
	}
	return argument;
}

/* `storm <threads> <milliseconds>`: timers of a microsecond and calls to wake others. */
int run_storm(int argc, char **argv)
{
	int threads = argc > 0 ? atoi(argv[0]) : 1, made = 0;
	int ms = argc > 1 ? atoi(argv[1]) : 100;
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	while (made < threads && pthread_create(&thread, &attributes, keep_busy, NULL) == 0)
		made++;
	dprintf(STDOUT_FILENO, "threads %d\n", made);
	usleep((useconds_t)ms * 1000);
	_exit(0);
}
