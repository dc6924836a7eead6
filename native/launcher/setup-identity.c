/*
 * Who a sandbox is. PID 1 is the root of a user namespace whose ids are a range of the host's that
 * no other sandbox has. Sessions live in a namespace below it that lacks the id of PID 1, so that
 * nothing in them can signal, trace, limit or even name it. All other namespaces belong to the
 * host's: root inside has no capability over them.
 *
 * The namespaces are joined last, but made first, as layers are shifted by that of sessions. Two
 * helpers bring them into being, since a process cannot leave one again. Who makes a namespace owns
 * it: that is whose limits (inotify, ...) it counts against, and it gives aether power over its
 * sessions without any capability.
 */
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kernel.h"
#include "setup.h"
#include "spec.h"

enum {
	CAPABILITY_VERSION_3 = 0x20080522,
	CAPABILITY_LAST = 63,
	HELPER_STACK_BYTES = 16 * 1024,
	/* They share memory and descriptors with the set-up: a copy of a launcher is dear. */
	HELPER_FLAGS = CLONE_NEWUSER | CLONE_VM | CLONE_FILES | SIGCHLD,
};

static _Alignas(16) char outer_stack[HELPER_STACK_BYTES];
static _Alignas(16) char inner_stack[HELPER_STACK_BYTES];

static int set_ids(uid_t uid, gid_t gid)
{
	/* The plain calls: the library's would want to change every thread. */
	return syscall(SYS_setresgid, gid, gid, gid) || syscall(SYS_setresuid, uid, uid, uid)
		       ? -errno
		       : 0;
}

static int set_effective_ids(uid_t uid, gid_t gid)
{
	if (syscall(SYS_setresgid, -1, gid, -1) || syscall(SYS_setresuid, -1, uid, -1))
		return -errno;
	return 0;
}

static int write_map(int proc, pid_t pid, const char *name, struct dsec_list maps)
{
	struct dsec_bytes item;
	char path[32], text[256];
	AUTO_CLOSE fd = -1;
	int length = 0;

	while (dsec_list_next(&maps, &item)) {
		struct dsec_msg_id_map map;

		dsec_message_decode(&dsec_msg_id_map, item, &map);
		length += snprintf(text + length, sizeof(text) - (size_t)length, "%u %u %u\n",
				   map.inside, map.outside, map.count);
	}
	snprintf(path, sizeof(path), "%d/%s", pid, name);
	fd = openat(proc, path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text, (size_t)length) != length ? -errno : 0;
}

/* Maps ids into the new namespace of a helper. Returns a descriptor of it or a negative errno. */
static int take_namespace(int proc, pid_t pid, struct dsec_list maps)
{
	char path[32];
	int err = write_map(proc, pid, "uid_map", maps);
	int fd;

	if (!err)
		err = write_map(proc, pid, "gid_map", maps);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%d/ns/user", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int inner_helper(void *nothing)
{
	(void)nothing;
	return pause();
}

/* Runs in the namespace of PID 1, as it. Its result is a positive errno. */
static int outer_helper(void *context)
{
	struct setup *setup = context;
	char byte;
	pid_t inner;
	int err;

	/* Once ids are mapped. */
	if (read(setup->helper_order, &byte, 1) != 1)
		return 0;
	err = set_ids(setup->spec->uid, setup->spec->gid);
	if (err)
		return -err;
	/* A change of ids hides /proc/PID, through which the maps are written. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return errno;
	inner = clone(inner_helper, inner_stack + HELPER_STACK_BYTES, HELPER_FLAGS, NULL);
	if (inner < 0)
		return errno;
	setup->session_namespace = take_namespace(setup->proc, inner, setup->spec->session_id_maps);
	kill(inner, SIGKILL);
	waitpid(inner, NULL, 0);
	return setup->session_namespace < 0 ? -setup->session_namespace : 0;
}

/* With the effective ids of PID 1, which is then the owner. */
static pid_t start_helper(struct setup *setup)
{
	int err = set_effective_ids(spec_host_id(setup->spec, setup->spec->uid),
				    spec_host_id(setup->spec, setup->spec->gid));
	pid_t pid;

	if (err)
		return err;
	pid = clone(outer_helper, outer_stack + HELPER_STACK_BYTES, HELPER_FLAGS, setup);
	if (pid < 0)
		return -errno;
	err = set_effective_ids(0, 0);
	return err ? err : pid;
}

int setup_user_namespaces(struct setup *setup)
{
	int order[2], status = 0;
	pid_t helper;

	setup->root_uid = setup->root_gid = spec_session_host_id(setup->spec, 0);
	if (pipe2(order, O_CLOEXEC))
		return -errno;
	setup->helper_order = order[0];
	helper = start_helper(setup);
	if (helper < 0)
		return helper;
	setup->user_namespace = take_namespace(setup->proc, helper, setup->spec->id_maps);
	if (setup->user_namespace < 0 || write(order[1], "", 1) != 1)
		return setup->user_namespace < 0 ? setup->user_namespace : -EIO;
	strcpy(setup->step, "session-namespace");
	if (waitpid(helper, &status, 0) < 0)
		return -errno;
	close(order[0]);
	close(order[1]);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int setup_user(struct setup *setup)
{
	if (setns(setup->user_namespace, CLONE_NEWUSER) || syscall(SYS_setgroups, 0, NULL))
		return -errno;
	return set_ids(setup->spec->uid, setup->spec->gid);
}

/*
 * Bounding, inheritable, permitted and effective set alike, and the ambient one too, without which
 * a process that is not root would lose them all at the exec.
 */
int setup_capabilities(struct setup *setup)
{
	uint64_t kept = setup->spec->capabilities;
	struct {
		uint32_t version;
		int pid;
	} header = { CAPABILITY_VERSION_3, 0 };
	struct {
		uint32_t effective, permitted, inheritable;
	} sets[2];

	for (int capability = 0; capability <= CAPABILITY_LAST; capability++) {
		if (!(kept >> capability & 1) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) {
			/* The first number that this kernel does not know. */
			if (errno == EINVAL)
				break;
			return -errno;
		}
	}
	for (int half = 0; half < 2; half++) {
		uint32_t set = (uint32_t)(kept >> (32 * half));

		sets[half].effective = sets[half].permitted = sets[half].inheritable = set;
	}
	if (syscall(SYS_capset, &header, sets))
		return -errno;
	for (int capability = 0; capability <= CAPABILITY_LAST; capability++) {
		if ((kept >> capability & 1) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))
			return -errno;
	}
	return 0;
}
