/* Against another process, by default the agent: signals, looking into it, steering it, its
 * descriptors. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	F_SETSIG_NUMBER = 10,
	KCMP_FILES_TYPE = 2,
	IOPRIO_PROCESS = 1,
	IOPRIO_IDLE = 3 << 13,
};

static pid_t target_of(int argc, char **argv)
{
	return argc > 0 ? (pid_t)atoi(argv[0]) : 1;
}

/* The kernel sends a signal when a pipe becomes readable, if the one that asked for it may. */
static void signal_by_pipe(pid_t target, int number)
{
	int ends[2];

	if (pipe(ends) < 0)
		return;
	fcntl(ends[0], F_SETOWN, target);
	fcntl(ends[0], F_SETSIG_NUMBER, number);
	fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK);
	report(write(ends[1], "x", 1), "pipe-%d", number);
	close(ends[0]);
	close(ends[1]);
}

int run_signals(int argc, char **argv)
{
	pid_t target = target_of(argc, argv);
	int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
	siginfo_t info = { .si_code = SI_QUEUE };

	for (int number = 1; number <= 64; number++) {
		report(kill(target, number), "kill-%d", number);
		report(syscall(SYS_tgkill, target, target, number), "tgkill-%d", number);
		report(syscall(SYS_tkill, target, number), "tkill-%d", number);
		report(syscall(SYS_rt_sigqueueinfo, target, number, &info), "queue-%d", number);
		report(syscall(SYS_rt_tgsigqueueinfo, target, target, number, &info), "tgqueue-%d",
		       number);
		report(syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0), "pidfd-%d", number);
	}
	signal_by_pipe(target, SIGUSR1);
	return 0;
}

int run_kill_all(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	/* In a child: the signal spares the one that sends it. */
	if (fork() == 0) {
		setsid();
		for (int round = 0; round < 20; round++) {
			report(kill(-1, SIGKILL), "kill-all");
			usleep(1000);
		}
		_exit(0);
	}
	pause();
	return 0;
}

static void open_each(pid_t target)
{
	static const char *const names[] = {
		"mem",	 "maps", "environ",	"smaps",   "auxv",     "pagemap",   "syscall",
		"stack", "io",	 "personality", "fd",	   "fdinfo/0", "map_files", "exe",
		"cwd",	 "root", "ns/mnt",	"ns/user", "ns/net",   "timers",    "numa_maps",
	};
	char path[64], link[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", target, names[i]);
		report(open(path, O_RDONLY), "open-%s", names[i]);
	}
	for (int fd = 0; fd < 3; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", target, fd);
		report(readlink(path, link, sizeof(link)), "readlink-fd-%d", fd);
	}
	snprintf(path, sizeof(path), "/proc/%d/root/etc/passwd", target);
	report(open(path, O_RDONLY), "open-root/etc/passwd");
	snprintf(path, sizeof(path), "/proc/%d/exe", target);
	report(open(path, O_WRONLY), "write-exe");
	snprintf(path, sizeof(path), "/proc/%d/mem", target);
	report(open(path, O_RDWR), "write-mem");
}

int run_trace(int argc, char **argv)
{
	pid_t target = target_of(argc, argv);
	int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
	char byte = 0;
	struct iovec own = { &byte, 1 }, theirs = { (void *)argv, 1 };

	open_each(target);
	for (int fd = 0; fd < 3; fd++)
		report(syscall(SYS_pidfd_getfd, pidfd, fd, 0), "getfd-%d", fd);
	report(syscall(SYS_process_vm_readv, target, &own, 1, &theirs, 1, 0), "vm-readv");
	report(syscall(SYS_process_vm_writev, target, &own, 1, &theirs, 1, 0), "vm-writev");
	report(syscall(SYS_kcmp, target, target, KCMP_FILES_TYPE, 0, 0), "kcmp");
	report(syscall(SYS_process_madvise, pidfd, &theirs, 1, MADV_NORMAL, 0), "madvise");
	report(ptrace(PTRACE_SEIZE, target, NULL, NULL), "seize");
	return 0;
}

static void write_each(pid_t target)
{
	static const char *const settings[][2] = {
		{ "oom_score_adj", "1000" },
		{ "oom_adj", "15" },
		{ "timerslack_ns", "4000000000" },
		{ "coredump_filter", "255" },
		{ "clear_refs", "1" },
		{ "comm", "other" },
		{ "loginuid", "0" },
		{ "sched", "0" },
		{ "autogroup", "19" },
		{ "attr/current", "x" },
		{ "uid_map", "0 0 1" },
		{ "setgroups", "deny" },
		{ "make-it-fail", "1" },
	};
	char path[64];

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", target, settings[i][0]);
		fd = open(path, O_WRONLY);
		report(fd < 0 ? fd : write(fd, settings[i][1], strlen(settings[i][1])), "write-%s",
		       settings[i][0]);
		close(fd);
	}
}

int run_steer(int argc, char **argv)
{
	pid_t target = target_of(argc, argv);
	struct sched_param parameter = { 0 };
	struct rlimit old, files = { 0, 0 };
	unsigned long nodes = 1;
	cpu_set_t cpus;
	int pidfd = (int)syscall(SYS_pidfd_open, target, 0);

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	report(setpriority(PRIO_PROCESS, (id_t)target, 19), "priority");
	report(setpriority(PRIO_PGRP, (id_t)target, 19), "priority-group");
	report(sched_setaffinity(target, sizeof(cpus), &cpus), "affinity");
	report(syscall(SYS_sched_setscheduler, target, SCHED_IDLE, &parameter), "scheduler");
	report(syscall(SYS_ioprio_set, IOPRIO_PROCESS, target, IOPRIO_IDLE), "io-priority");
	report(syscall(SYS_prlimit64, target, RLIMIT_NOFILE, NULL, &old), "limit-read");
	report(syscall(SYS_migrate_pages, target, 8, &nodes, &nodes), "migrate-pages");
	report(syscall(448, pidfd, 0), "reap-memory");
	report(setpgid(target, 0), "group");
	write_each(target);
	/* Last, as it works where nothing keeps it from it: the target can open nothing more. */
	report(syscall(SYS_prlimit64, target, RLIMIT_NOFILE, &files, NULL), "limit-files");
	report(syscall(SYS_prlimit64, target, RLIMIT_CPU, &files, NULL), "limit-cpu");
	return 0;
}

/* Descriptors that are sockets, of every process that can be seen, for as long as told. */
static int steal_from(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), taken = 0;

	for (int fd = 0; fd < 64 && pidfd >= 0; fd++) {
		int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		struct stat stat;

		if (copy < 0)
			continue;
		if (fstat(copy, &stat) == 0 && S_ISSOCK(stat.st_mode))
			taken++;
		close(copy);
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0) {
		dprintf(STDOUT_FILENO, "seized-%d 0\n", pid);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	close(pidfd);
	return taken;
}

int run_steal(int argc, char **argv)
{
	int rounds = argc > 0 ? atoi(argv[0]) : 1, taken = 0;

	for (int round = 0; round < rounds; round++) {
		DIR *proc = opendir("/proc");
		struct dirent *entry;

		while (proc != NULL && (entry = readdir(proc)) != NULL) {
			char path[64], link[64] = "";
			pid_t pid = (pid_t)atoi(entry->d_name);

			if (pid <= 0 || pid == getpid())
				continue;
			taken += steal_from(pid);
			for (int fd = 0; fd < 16; fd++) {
				ssize_t length;

				snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
				length = readlink(path, link, sizeof(link) - 1);
				link[length < 0 ? 0 : length] = 0;
				if (length > 0 && strncmp(link, "socket:", 7) == 0)
					dprintf(STDOUT_FILENO, "seen-%d-%d 0\n", pid, fd);
			}
		}
		closedir(proc);
		usleep(2000);
	}
	dprintf(STDOUT_FILENO, "taken %d\n", taken);
	return 0;
}
