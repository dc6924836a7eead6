#include "crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	KILL_US = 100000,
};

static const char *const names[CRASH_POINTS] = {
	[CRASH_SPAWN_CHECKED] = "spawn-checked",   [CRASH_SPAWN_CGROUP] = "spawn-cgroup",
	[CRASH_SPAWN_SOCKET] = "spawn-socket",	   [CRASH_SPAWN_CLONED] = "spawn-cloned",
	[CRASH_SPAWN_READY] = "spawn-ready",	   [CRASH_KILL_WRITTEN] = "kill-written",
	[CRASH_EXIT_SEEN] = "exit-seen",	   [CRASH_RELEASE_SOCKET] = "release-socket",
	[CRASH_RELEASE_CGROUP] = "release-cgroup", [CRASH_RELEASE_MOUNT] = "release-mount",
	[CRASH_RELEASE_UPPER] = "release-upper",   [CRASH_LAYER_COPIED] = "layer-copied",
	[CRASH_LAYER_PLACED] = "layer-placed",	   [CRASH_LAYER_MOUNTED] = "layer-mounted",
	[CRASH_LAYER_UNUSED] = "layer-unused",	   [CRASH_UPPER_READY] = "upper-ready",
	[CRASH_ROUTER_MADE] = "router-made",	   [CRASH_LINK_CLAIMED] = "link-claimed",
	[CRASH_LINK_MADE] = "link-made",	   [CRASH_LINK_READY] = "link-ready",
	[CRASH_RELEASE_LINK] = "release-link",	   [CRASH_REMOUNT_BARE] = "remount-bare",
	[CRASH_REMOUNT_DONE] = "remount-done",
};

static int armed = -1;
static unsigned long hits_left;
static pid_t launcher;
/* To who kills the launcher for a process that cannot see it. */
static int trigger = -1;

static void start_killer(void)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return;
	trigger = ends[1];
	if (fork())
		return;
	close(trigger);
	if (read(ends[0], &byte, 1) == 1)
		kill(launcher, SIGKILL);
	_exit(0);
}

void crash_arm(void)
{
	const char *wanted = getenv("DSEC_CRASH_POINT");
	size_t length;

	launcher = getpid();
	if (!wanted)
		return;
	length = strcspn(wanted, ":");
	for (int i = 0; i < CRASH_POINTS; i++) {
		if (strlen(names[i]) == length && !strncmp(names[i], wanted, length))
			armed = i;
	}
	hits_left = wanted[length] ? strtoul(wanted + length + 1, NULL, 10) : 1;
	if (armed == CRASH_LINK_MADE || armed == CRASH_LINK_READY)
		start_killer();
}

void crash_point(enum crash_point point)
{
	if (armed != (int)point || --hits_left > 0)
		return;
	if (trigger >= 0) {
		(void)!write(trigger, "", 1);
		/* After the launcher, who would clean up. */
		usleep(KILL_US);
		_exit(1);
	}
	kill(launcher, SIGKILL);
	kill(getpid(), SIGKILL);
}

int crash_print(void)
{
	for (int i = 0; i < CRASH_POINTS; i++)
		puts(names[i]);
	return fflush(stdout) ? 1 : 0;
}
