/* System calls that act on the machine, by name: each refused in a sandbox, each shown to be
 * reached outside. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static uint64_t zeros[64];

static void try_loading(void)
{
	report(syscall(SYS_init_module, NULL, 0, ""), "init-module");
	report(syscall(SYS_finit_module, -1, "", 0), "finit-module");
	report(syscall(SYS_delete_module, "none", O_NONBLOCK), "delete-module");
	report(syscall(SYS_kexec_load, 0, 0, NULL, ~0ul), "kexec-load");
	report(syscall(SYS_kexec_file_load, -1, -1, 0, "", ~0ul), "kexec-file-load");
	/* Without its magic number it does nothing; who may not is told before. */
	report(syscall(SYS_reboot, 0, 0, 0, NULL), "reboot");
	report(syscall(SYS_acct, NULL), "acct");
	report(syscall(SYS_swapon, "/none", 0), "swapon");
	report(syscall(SYS_swapoff, "/none"), "swapoff");
	report(syscall(SYS_syslog, 10, NULL, 0), "syslog");
	report(syscall(SYS_quotactl, 0x800001, NULL, 0, NULL), "quotactl");
}

/* To what it is: where it is allowed, nothing changes. */
static void try_clocks(void)
{
	struct timespec now;
	struct timeval day;
	struct timex adjust = { .modes = ADJ_TICK };

	clock_gettime(CLOCK_REALTIME, &now);
	report(syscall(SYS_clock_settime, CLOCK_REALTIME, &now), "clock-settime");
	gettimeofday(&day, NULL);
	report(syscall(SYS_settimeofday, &day, NULL), "settimeofday");
	adjust.tick = 10000;
	report(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &adjust), "clock-adjtime");
	adjust.modes = ADJ_TICK;
	report(syscall(SYS_adjtimex, &adjust), "adjtimex");
}

static void try_keys(void)
{
	report(syscall(SYS_add_key, "user", "dsec-probe", "x", 1, -2), "add-key");
	report(syscall(SYS_request_key, "user", "dsec-probe", NULL, 0), "request-key");
	report(syscall(SYS_keyctl, 0, -3, 1), "keyctl-session");
	report(syscall(SYS_keyctl, 1, NULL), "keyctl-join");
}

static void try_tracing(void)
{
	uint32_t map[18] = { 2, 4, 4, 1 };
	uint64_t event[16] = { 1 | (128ull << 32) };

	report(syscall(SYS_bpf, 0, map, sizeof(map)), "bpf-map");
	report(syscall(SYS_bpf, 99, map, sizeof(map)), "bpf-other");
	event[5] = 0x20;
	report(syscall(SYS_perf_event_open, event, 0, -1, -1, 0), "perf-event");
	report(syscall(SYS_userfaultfd, 0x80000), "userfaultfd");
	report(syscall(SYS_fanotify_init, 0, O_RDONLY), "fanotify");
	report(syscall(SYS_lookup_dcookie, 0ull, NULL, 0), "dcookie");
}

static void try_rings(void)
{
	unsigned long context = 0;
	uint32_t ring[30] = { 0 };
	int ends[2] = { -1, -1 };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec pages = { page, 4096 };

	report(syscall(SYS_io_uring_setup, 4, ring), "io-uring");
	report(syscall(SYS_io_setup, 1, &context), "io-setup");
	if (context != 0)
		syscall(SYS_io_destroy, context);
	if (pipe(ends) < 0)
		return;
	report(syscall(SYS_vmsplice, ends[1], &pages, 1, 8), "vmsplice");
	report(prctl(67, 1, 0, 0, 0), "memory-merge");
}

/* What the machine's page cache tells of others: of a file that all share. */
int run_spy(int argc, char **argv)
{
	const char *path = argc > 0 ? argv[0] : "/bin/probe";
	int fd = open(path, O_RDONLY);
	uint64_t range[2] = { 0, 0 }, stat[5];
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), byte;
	struct iovec own = { &byte, 1 };
	unsigned char vector = 0;

	report(syscall(SYS_mincore, page, 4096, &vector), "mincore");
	report(syscall(451, fd, range, stat, 0), "cachestat");
	report(syscall(SYS_preadv2, fd, &own, 1, 0, 0, 8), "read-nowait");
	return 0;
}

static const char *const inode_paths[] = { "/tmp/probe-a", "/tmp/probe-b" };

/* Flags that outlast permissions, and calls that swap the blocks of files, by both of their ways.
 */
int run_inode_flags(int argc, char **argv)
{
	int flags = 0x10, a = open(inode_paths[0], O_CREAT | O_RDWR, 0600);
	int b = open(inode_paths[1], O_CREAT | O_RDWR, 0600);
	uint32_t attributes[7] = { 0x10 };
	uint64_t attr[3] = { 0x10 }, swap[27] = { 0 }, exchange[8] = { 0 }, move[5] = { 0 };

	(void)argc;
	(void)argv;
	swap[1] = (uint64_t)a;
	swap[2] = (uint64_t)b;
	report(ioctl(a, 0x40086602, &flags), "setflags-immutable");
	flags = 0x20;
	report(ioctl(a, 0x40046602, &flags), "setflags-append-32");
	flags = 0;
	ioctl(a, 0x40086602, &flags);
	report(ioctl(a, 0x401c5820, attributes), "fssetxattr");
	report(syscall(469, AT_FDCWD, inode_paths[0], attr, sizeof(attr), 0), "file-setattr");
	report(ioctl(a, 0xc0c0586d, swap), "swapext");
	report(ioctl(a, 0x40405881, exchange), "exchange-range");
	report(ioctl(a, 0xc028660f, move), "move-ext");
	report(ioctl(a, 0x40049409, b), "ficlone");
	flags = 0;
	ioctl(a, 0x40086602, &flags);
	unlink(inode_paths[0]);
	unlink(inode_paths[1]);
	return 0;
}

int run_kernel(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	try_loading();
	try_clocks();
	try_keys();
	try_tracing();
	try_rings();
#if defined(__x86_64__)
	report(syscall(SYS_iopl, 3), "iopl");
	report(syscall(SYS_ioperm, 0x80, 1, 1), "ioperm");
	report(syscall(SYS_modify_ldt, 0, zeros, sizeof(zeros)), "modify-ldt");
#endif
	report(syscall(SYS_vhangup), "vhangup");
	report(sethostname("other", 5), "sethostname");
	report(syscall(SYS_setdomainname, "other", 5), "setdomainname");
	report(prctl(62, 0, 0, 0, 0), "core-scheduling");
	return 0;
}

/*
 * By the way of 32-bit programs (int 0x80) and with the bit of the x32 ABI. Prints what came back;
 * where the way is closed the process is killed instead.
 */
int run_foreign_abi(int argc, char **argv)
{
	long result;

	if (argc > 0 && strcmp(argv[0], "x32") == 0) {
		report(syscall(0x40000000 | SYS_getpid), "x32");
		return 0;
	}
#if defined(__x86_64__)
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(20L)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = result < 0 ? (int)-result : 0;
	report(result < 0 ? -1 : 0, "i386");
#else
	(void)result;
#endif
	return 0;
}
