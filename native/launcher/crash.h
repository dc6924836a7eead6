/*
 * Named places where a test makes the launcher die: DSEC_CRASH_POINT=name[:n] in its environment
 * kills it with SIGKILL when the place is reached for the n-th time (1 without n).
 */
#ifndef LAUNCHER_CRASH_H
#define LAUNCHER_CRASH_H

enum crash_point {
	CRASH_SPAWN_CHECKED,
	CRASH_SPAWN_CGROUP,
	CRASH_SPAWN_SOCKET,
	CRASH_SPAWN_CLONED,
	CRASH_SPAWN_READY,
	CRASH_KILL_WRITTEN,
	CRASH_EXIT_SEEN,
	CRASH_RELEASE_SOCKET,
	CRASH_RELEASE_CGROUP,
	CRASH_RELEASE_MOUNT,
	CRASH_RELEASE_UPPER,
	CRASH_LAYER_COPIED,
	CRASH_LAYER_PLACED,
	CRASH_LAYER_MOUNTED,
	CRASH_LAYER_UNUSED,
	CRASH_UPPER_READY,
	CRASH_ROUTER_MADE,
	CRASH_LINK_CLAIMED,
	CRASH_LINK_MADE,
	CRASH_LINK_READY,
	CRASH_RELEASE_LINK,
	CRASH_REMOUNT_BARE,
	CRASH_REMOUNT_DONE,
	CRASH_POINTS,
};

/* Reads the environment, and remembers which process is the launcher. */
void crash_arm(void);
/* In a child this kills the launcher too, so that nobody is left to clean up. */
void crash_point(enum crash_point point);
/* Prints the names, one on each line. */
int crash_print(void);

#endif
