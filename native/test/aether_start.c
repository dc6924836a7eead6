/*
 * Starts aether as the launcher does, for tests: a listening socket as descriptor 3 and, with
 * --sessions, as a user of a namespace of its own with the sessions' namespace as descriptor 4.
 *
 *     aether_start [--sessions] SOCKET PROGRAM [ARGUMENT...]
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LISTENER_FD = 3,
	NAMESPACE_FD = 4,
	RANGE_FIRST = 1 << 30,
	RANGE_COUNT = 65536,
	BACKLOG = 64, /* as the launcher has it */
};

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(2);
}

/* The name appears when connections can be made. */
static void listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path);

	if (length >= (int)sizeof(address.sun_path)) {
		fprintf(stderr, "the path of the socket is too long\n");
		exit(2);
	}
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, BACKLOG) || rename(address.sun_path, path))
		die("socket");
	if (fd != LISTENER_FD && dup2(fd, LISTENER_FD) < 0)
		die("dup2");
}

static void write_map(pid_t pid, const char *file, const char *map)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, map, strlen(map)) != (ssize_t)strlen(map))
		die(path);
	close(fd);
}

/* Forks a child that makes a new user namespace, as the effective user, and stays in it. */
static pid_t make_namespace(void)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (pid == 0) {
		/* A change of user hides the maps from all but the host's root. */
		if (unshare(CLONE_NEWUSER) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || write(ready[1], &byte, 1) != 1)
			die("unshare");
		pause();
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		die("namespace");
	close(ready[0]);
	return pid;
}

/* Maps the child's namespace, ends the child, and returns a descriptor of the namespace. */
static int take_namespace(pid_t pid, const char *map)
{
	char path[64];
	int fd;

	write_map(pid, "uid_map", map);
	write_map(pid, "gid_map", map);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd;
}

/*
 * The outer namespace has one id more than the sessions' namespace in it: aether's. It is the outer
 * root, as the files in /proc of a process that hides belong to the root of the namespace that it
 * was started in.
 */
static void enter_namespaces(void)
{
	char map[128];
	int fd;

	snprintf(map, sizeof(map), "0 %d 1\n1 %d %d\n", RANGE_FIRST + RANGE_COUNT, RANGE_FIRST,
		 RANGE_COUNT);
	fd = take_namespace(make_namespace(), map);
	if (setns(fd, CLONE_NEWUSER) || setgroups(0, NULL) || setresgid(0, 0, 0) ||
	    setresuid(0, 0, 0))
		die("outer namespace");
	close(fd);
	snprintf(map, sizeof(map), "0 1 %d\n", RANGE_COUNT);
	fd = take_namespace(make_namespace(), map);
	if (dup2(fd, NAMESPACE_FD) < 0 || fcntl(NAMESPACE_FD, F_SETFD, 0))
		die("dup2");
}

int main(int argc, char **argv)
{
	bool sessions = argc > 1 && !strcmp(argv[1], "--sessions");

	argv += sessions ? 2 : 1;
	if (argc < (sessions ? 4 : 3)) {
		fprintf(stderr, "usage: aether_start [--sessions] SOCKET PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	listen_at(argv[0]);
	if (sessions)
		enter_namespaces();
	/* A change of ids forgets it, so only now: a test run that was killed leaves nothing. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		die("prctl");
	execv(argv[1], argv + 1);
	die(argv[1]);
}
