/* Kernel and user memory of every kind that a limit has to count, up to so many MiB. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MIB = 1 << 20,
	PIPES_PER_CHILD = 200,
	CHILDREN_MAX = 64,
};

/* Takes about so many MiB; the value is negative when it got less, with errno. */
typedef long (*take_memory)(long mib);

static char block[MIB];

static long take_anonymous(long mib)
{
	for (long i = 0; i < mib; i++) {
		char *page =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			return -1;
		memset(page, 1, MIB);
	}
	return 0;
}

static long take_shm(long mib)
{
	for (long i = 0; i < mib; i++) {
		int id = shmget(IPC_PRIVATE, MIB, IPC_CREAT | 0600);
		void *page = shmat(id, NULL, 0);

		if (id < 0 || page == (void *)-1)
			return -1;
		memset(page, 1, MIB);
		/* It goes with the one that has it. */
		shmctl(id, IPC_RMID, NULL);
	}
	return 0;
}

static long fill_file(int file, long mib)
{
	for (long i = 0; i < mib; i++) {
		if (write(file, block, MIB) != MIB)
			return -1;
	}
	return file < 0 ? -1 : 0;
}

static long take_memory_file(long mib)
{
	memset(block, 1, MIB);
	return fill_file(memfd_create("probe", 0), mib);
}

static long take_tmpfs(long mib)
{
	long result;

	memset(block, 1, MIB);
	result = fill_file(open("/dev/shm/probe-fill", O_CREAT | O_WRONLY, 0600), mib);
	unlink("/dev/shm/probe-fill");
	return result;
}

static long take_disk(long mib)
{
	memset(block, 1, MIB);
	return fill_file(open("/tmp/probe-fill", O_CREAT | O_WRONLY, 0600), mib);
}

/* In one child after the other, since a process has only so many descriptors. */
static long in_children(long mib, long (*take)(void), long mib_each)
{
	long children = mib / mib_each + 1;

	for (long i = 0; i < children && i < CHILDREN_MAX; i++) {
		int ready[2];
		char answer = 0;
		pid_t child;

		if (pipe(ready) < 0)
			return -1;
		child = fork();
		if (child < 0)
			return -1;
		if (child == 0) {
			long result = take();
			char said = result < 0 ? (char)errno : 0;

			if (write(ready[1], &said, 1) == 1)
				pause();
			_exit(0);
		}
		close(ready[1]);
		if (read(ready[0], &answer, 1) != 1)
			answer = ENOMEM;
		close(ready[0]);
		errno = answer;
		if (answer != 0)
			return -1;
	}
	return 0;
}

static long fill_pipes(void)
{
	for (int i = 0; i < PIPES_PER_CHILD; i++) {
		int ends[2];

		if (pipe2(ends, O_NONBLOCK) < 0)
			return -1;
		while (write(ends[1], block, 4096) > 0)
			;
	}
	return 0;
}

static long fill_sockets(void)
{
	for (int i = 0; i < PIPES_PER_CHILD; i++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) < 0)
			return -1;
		while (write(ends[1], block, 32768) > 0)
			;
	}
	return 0;
}

static long take_pipes(long mib)
{
	return in_children(mib, fill_pipes, PIPES_PER_CHILD * 64 / 1024);
}

static long take_sockets(long mib)
{
	return in_children(mib, fill_sockets, PIPES_PER_CHILD * 128 / 1024);
}

/* A page of tables for every two megabytes, of which one page is touched: all are the same one. */
static long take_page_tables(long mib)
{
	int zero = open("/dev/zero", O_RDONLY);
	size_t length = (size_t)mib * 256 * 2 * MIB;
	char *area = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, zero, 0);
	volatile char sum = 0;

	if (area == MAP_FAILED)
		return -1;
	madvise(area, length, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < length; at += 2 * MIB)
		sum = (char)(sum + area[at]);
	return 0;
}

/* Names that are not there are remembered, about 200 bytes each. */
static long take_dentries(long mib)
{
	char path[128];

	for (long i = 0; i < mib * 4096; i++) {
		snprintf(path, sizeof(path), "/tmp/%060ld", i);
		access(path, F_OK);
	}
	return 0;
}

static const struct {
	const char *name;
	take_memory take;
} kinds[] = {
	{ "anonymous", take_anonymous },
	{ "shm", take_shm },
	{ "memory-file", take_memory_file },
	{ "tmpfs", take_tmpfs },
	{ "disk", take_disk },
	{ "pipes", take_pipes },
	{ "sockets", take_sockets },
	{ "page-tables", take_page_tables },
	{ "dentries", take_dentries },
};

/* `memory <kind> <MiB>` */
int run_memory(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && argc > 1; i++) {
		if (strcmp(kinds[i].name, argv[0]) == 0) {
			report(kinds[i].take(atol(argv[1])), "all-taken");
			hold();
			return 0;
		}
	}
	return 2;
}
