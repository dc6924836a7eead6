/*
 * Stands in aether's place in tests of the launcher. It answers one line on each connection: what
 * it, or a process of a session, may do. What a test believes it checks from the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LISTENER_FD = 3,
	SESSION_FD = 4,
};

static int result(long value)
{
	return value < 0 ? errno : 0;
}

static int opened_and_written(const char *path, bool written)
{
	int fd = open(path, O_RDWR);

	return result(fd >= 0 && written ? write(fd, "1", 1) : fd);
}

/* What a session may try on another process; each attempt is answered with its errno. */
static void attack_process(FILE *answer, pid_t pid)
{
	static const char *const files[] = { "oom_score_adj", "timerslack_ns", "mem", "environ" };
	char byte, path[64];
	struct iovec own = { &byte, 1 }, theirs = { (void *)files, 1 };
	struct sched_param parameter = { 0 };
	struct rlimit limit = { 64, 64 };
	cpu_set_t cpus;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	sched_getaffinity(0, sizeof(cpus), &cpus);
	fprintf(answer, "kill=%d ", result(kill(pid, SIGURG)));
	fprintf(answer, "prlimit=%d ", result(prlimit(pid, RLIMIT_NOFILE, &limit, NULL)));
	fprintf(answer, "priority=%d ", result(setpriority(PRIO_PROCESS, (id_t)pid, 5)));
	fprintf(answer, "affinity=%d ", result(sched_setaffinity(pid, sizeof(cpus), &cpus)));
	fprintf(answer, "scheduler=%d ",
		result(syscall(SYS_sched_setscheduler, pid, SCHED_BATCH, &parameter)));
	fprintf(answer, "ioprio=%d ", result(syscall(SYS_ioprio_set, 1, pid, 3 << 13)));
	fprintf(answer, "getfd=%d ", result(syscall(SYS_pidfd_getfd, pidfd, 0, 0)));
	fprintf(answer, "readv=%d ", result(process_vm_readv(pid, &own, 1, &theirs, 1, 0)));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		fprintf(answer, "%s=%d ", files[i], opened_and_written(path, i < 2));
	}
	fprintf(answer, "ptrace=%d", result(ptrace(PTRACE_ATTACH, pid, NULL, NULL)));
}

/* The same on a process of its own: that these attempts can succeed at all. */
static void attack_own(FILE *answer)
{
	pid_t child;

	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	attack_process(answer, child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* The attempts of a session on what is around it: each must fail with the errno that the test
 * expects. */
static void attack(FILE *answer)
{
	fprintf(answer, "hostname=%d ", result(sethostname("x", 1)));
	fprintf(answer, "mount=%d ", result(mount("none", "/", "tmpfs", 0, NULL)));
	fprintf(answer, "unshare=%d ", result(unshare(CLONE_NEWUSER)));
	fprintf(answer, "mknod=%d ", result(mknod("/tmp-node", S_IFBLK | 0600, 0x0700)));
	fprintf(answer, "aio=%d ", result(syscall(SYS_io_setup, 1, answer)));
	fprintf(answer, "sysctl=%d",
		result(open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY)));
}

/* How many could be made. */
static int make_files(int wanted)
{
	char name[64];

	mkdir("/files", 0755);
	for (int i = 0; i < wanted; i++) {
		snprintf(name, sizeof(name), "/files/%d", i);
		if (mknod(name, S_IFREG | 0644, 0))
			return i;
	}
	return wanted;
}

/* How many could be made; they stay. */
static int make_children(int connection, int wanted)
{
	for (int i = 0; i < wanted; i++) {
		pid_t child = fork();

		if (child < 0)
			return i;
		if (child == 0)
			close(connection);
		while (child == 0)
			pause();
	}
	return wanted;
}

static int make_levels(int wanted)
{
	if (chdir("/"))
		return errno;
	for (int i = 0; i < wanted; i++) {
		if (mkdir("d", 0755) || chdir("d"))
			return errno;
	}
	return 0;
}

/* As aether's commands are: before PID 1, which may be spared, when memory is short. */
static int yield_memory(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, "1000", 4) != 4 || close(fd) ? -1 : 0;
}

static void as_session(FILE *answer, const char *argument)
{
	if (yield_memory()) {
		fprintf(answer, "oom_score_adj: %s", strerror(errno));
		return;
	}
	if (setns(SESSION_FD, CLONE_NEWUSER) || setgid(0) || setuid(0)) {
		fprintf(answer, "setns: %s", strerror(errno));
		return;
	}
	close(SESSION_FD);
	if (!strcmp(argument, "attack")) {
		attack(answer);
	} else if (!strcmp(argument, "attack-first")) {
		attack_process(answer, 1);
	} else if (!strcmp(argument, "attack-own")) {
		attack_own(answer);
	} else if (!strcmp(argument, "processors")) {
		cpu_set_t cpus;

		fprintf(answer, "%d",
			sched_getaffinity(0, sizeof(cpus), &cpus) ? -1 : CPU_COUNT(&cpus));
	} else if (!strncmp(argument, "write ", 6)) {
		int fd = open(argument + 6, O_CREAT | O_WRONLY, 0644);

		fprintf(answer, "%d", result(fd < 0 ? fd : write(fd, "x", 1)));
	} else if (!strncmp(argument, "read ", 5)) {
		char text[256];
		int fd = open(argument + 5, O_RDONLY);
		ssize_t length = fd < 0 ? fd : read(fd, text, sizeof(text));

		if (length < 0)
			fprintf(answer, "error %d", errno);
		else
			fwrite(text, 1, (size_t)length, answer);
	} else if (!strncmp(argument, "fill ", 5)) {
		static char block[65536];
		int fd = open("/filled", O_CREAT | O_WRONLY, 0644);
		int blocks = atoi(argument + 5);

		while (blocks-- > 0 && write(fd, block, sizeof(block)) > 0)
			;
		fprintf(answer, "%d", blocks < 0 ? 0 : errno);
	} else if (!strcmp(argument, "terminals")) {
		int opened = 0;

		while (opened < 1000 && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
			opened++;
		fprintf(answer, "%d %d", opened, errno);
	} else if (!strncmp(argument, "files ", 6)) {
		int wanted = atoi(argument + 6);
		int made = make_files(wanted);

		fprintf(answer, "%d %d", made, made < wanted ? errno : 0);
	} else if (!strncmp(argument, "wide ", 5)) {
		int wanted = atoi(argument + 5);

		fprintf(answer, "%d", make_files(wanted) < wanted ? errno : 0);
	} else if (!strncmp(argument, "deep ", 5)) {
		fprintf(answer, "%d", make_levels(atoi(argument + 5)));
	}
}

static void serve(int fd)
{
	FILE *stream = fdopen(fd, "r+");
	char line[512];

	if (!stream || !fgets(line, sizeof(line), stream))
		return;
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "exit ", 5))
		_exit(atoi(line + 5));
	if (!strncmp(line, "session ", 8)) {
		pid_t child = fork();

		if (child == 0) {
			as_session(stream, line + 8);
			fflush(stream);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	} else if (!strcmp(line, "children")) {
		/* Two that nothing but the cgroup holds together. */
		for (int i = 0; i < 2; i++) {
			if (fork() == 0) {
				close(fd);
				setsid();
				for (;;)
					pause();
			}
		}
		fprintf(stream, "forked");
	} else if (!strncmp(line, "forks ", 6)) {
		fprintf(stream, "%d", make_children(fd, atoi(line + 6)));
	}
	fclose(stream);
}

/* Whether it may go after the agent when memory is short. */
static int spare_own(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);

	return result(fd < 0 ? fd : write(fd, "-1", 2));
}

int main(int argc, char **argv)
{
	/* As a command of a session, below the real aether. */
	if (argc == 2) {
		if (!strcmp(argv[1], "attack-own"))
			attack_own(stdout);
		else if (!strcmp(argv[1], "attack-first"))
			attack_process(stdout, 1);
		else if (!strcmp(argv[1], "spare"))
			printf("%d", spare_own());
		else if (!strcmp(argv[1], "wait"))
			pause();
		else
			printf("%d %d", result(open(argv[1], O_WRONLY)), isatty(1));
		return 0;
	}
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (;;) {
		int fd = accept(LISTENER_FD, NULL, NULL);

		if (fd < 0)
			return 3;
		serve(fd);
	}
}
