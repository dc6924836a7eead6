/* What all sandboxes of a machine share: takes as much of one kind as it gets, says how much, and
 * holds it. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* One more; -1 with errno when there is none. */
typedef long (*take_one)(int number);

static long take_aio(int number)
{
	unsigned long context = 0;

	(void)number;
	return syscall(SYS_io_setup, 64, &context);
}

static long take_terminal(int number)
{
	(void)number;
	return open("/dev/ptmx", O_RDWR | O_NOCTTY);
}

static long take_inotify(int number)
{
	(void)number;
	return inotify_init1(0);
}

static long take_watch(int number)
{
	static int queue = -1;
	char path[64];

	if (queue < 0)
		queue = inotify_init1(0);
	snprintf(path, sizeof(path), "/tmp/watch-%d", number);
	mkdir(path, 0700);
	return inotify_add_watch(queue, path, IN_ALL_EVENTS);
}

static long take_file(int number)
{
	(void)number;
	return open("/", O_RDONLY);
}

static long take_key(int number)
{
	char name[32];

	snprintf(name, sizeof(name), "dsec-probe-%d", number);
	return syscall(SYS_add_key, "user", name, "x", 1, -2);
}

static long take_shared(int number)
{
	(void)number;
	return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

static long take_semaphores(int number)
{
	(void)number;
	return semget(IPC_PRIVATE, 250, IPC_CREAT | 0600);
}

static long take_messages(int number)
{
	struct {
		long type;
		char text[4096];
	} message = { 1, { 0 } };
	int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	(void)number;
	return queue < 0 ? -1 : msgsnd(queue, &message, sizeof(message.text), IPC_NOWAIT);
}

static long take_queue(int number)
{
	char name[32];

	snprintf(name, sizeof(name), "/probe-%d", number);
	return mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
}

static long take_pipe(int number)
{
	int ends[2];

	(void)number;
	if (pipe(ends) < 0)
		return -1;
	/* As large as it gets: the pages of pipes are counted for each user. */
	fcntl(ends[1], 1031, 1 << 20);
	return 0;
}

static long take_sockets(int number)
{
	int ends[2];

	(void)number;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static long take_timer(int number)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	(void)number;
	return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

static long take_epoll(int number)
{
	static int queue = -1;
	struct epoll_event event = { .events = EPOLLIN };

	(void)number;
	if (queue < 0)
		queue = epoll_create1(0);
	return epoll_ctl(queue, EPOLL_CTL_ADD, eventfd(0, 0), &event);
}

static long take_lock(int number)
{
	static int file = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (file < 0)
		file = open("/tmp/locked", O_CREAT | O_RDWR, 0600);
	lock.l_start = (off_t)number * 2;
	lock.l_len = 1;
	return fcntl(file, F_SETLK, &lock);
}

static long take_signal(int number)
{
	union sigval value = { .sival_int = number };

	return sigqueue(getpid(), SIGRTMIN, value);
}

static long take_locked_memory(int number)
{
	void *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)number;
	return mlock(page, 65536);
}

static long take_memory_file(int number)
{
	(void)number;
	return syscall(SYS_memfd_create, "probe", 0);
}

static const struct {
	const char *name;
	take_one take;
} pools[] = {
	{ "aio", take_aio },
	{ "terminals", take_terminal },
	{ "inotify", take_inotify },
	{ "watches", take_watch },
	{ "files", take_file },
	{ "keys", take_key },
	{ "shm", take_shared },
	{ "semaphores", take_semaphores },
	{ "messages", take_messages },
	{ "queues", take_queue },
	{ "pipes", take_pipe },
	{ "sockets", take_sockets },
	{ "timers", take_timer },
	{ "epoll", take_epoll },
	{ "locks", take_lock },
	{ "signals", take_signal },
	{ "locked-memory", take_locked_memory },
	{ "memory-files", take_memory_file },
};

/* `pool <kind> <most>`: as many processes as it may have would take as many times more. */
int run_pool(int argc, char **argv)
{
	sigset_t blocked;
	int most = argc > 1 ? atoi(argv[1]) : 0, taken = 0;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]) && argc > 0; i++) {
		if (strcmp(pools[i].name, argv[0]) != 0)
			continue;
		errno = 0;
		while (taken < most && pools[i].take(taken) >= 0)
			taken++;
		dprintf(STDOUT_FILENO, "end-of-pool %d\n", taken < most ? errno : 0);
		dprintf(STDOUT_FILENO, "taken %d\n", taken);
		hold();
		return 0;
	}
	return 2;
}
