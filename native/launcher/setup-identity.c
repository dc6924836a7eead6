/*
 * Who a sandbox is. PID 1 lives in a user namespace whose ids are a range of the host's that no
 * other sandbox has. Sessions live in a namespace below it that lacks the id of PID 1, so that
 * nothing in them can signal, trace or limit it. All other namespaces belong to the host's: root
 * inside has no capability over them.
 *
 * The namespaces are joined last, but made first, as layers are shifted by them. A helper makes
 * them: its effective ids decide who owns them, and that is whose limits (inotify, ...) they count
 * against. It is the root of the range for the first, and PID 1 itself for the second, which gives
 * aether power over its sessions without any capability.
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
};

static int set_ids(uid_t uid, gid_t gid)
{
	/* The plain calls: the library's would want to change every thread. */
	return syscall(SYS_setresgid, gid, gid, gid) || syscall(SYS_setresuid, uid, uid, uid)
		       ? -errno
		       : 0;
}

/* Waits for an order, follows it, and says how it went. */
static void obey(int orders, int answers, int (*follow)(const struct setup *setup),
		 const struct setup *setup)
{
	char byte;
	int err;

	if (read(orders, &byte, 1) != 1)
		_exit(0);
	err = follow(setup);
	byte = (char)-err;
	if (write(answers, &byte, 1) != 1 || err)
		_exit(0);
}

static int make_outer(const struct setup *setup)
{
	if (syscall(SYS_setresgid, -1, setup->root_gid, -1) ||
	    syscall(SYS_setresuid, -1, setup->root_uid, -1))
		return -errno;
	return unshare(CLONE_NEWUSER) ? -errno : 0;
}

static int make_inner(const struct setup *setup)
{
	int err = set_ids(setup->spec->uid, setup->spec->gid);

	if (err)
		return err;
	/* A change of ids hides /proc/PID, through which the maps are written. */
	return unshare(CLONE_NEWUSER) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) ? -errno : 0;
}

static int end(const struct setup *setup)
{
	(void)setup;
	_exit(0);
}

static _Noreturn void helper(const struct setup *setup, int orders, int answers)
{
	obey(orders, answers, make_outer, setup);
	obey(orders, answers, make_inner, setup);
	obey(orders, answers, end, setup);
	_exit(0);
}

static int order(const struct setup *setup)
{
	char byte = 0;

	if (write(setup->helper_orders, &byte, 1) != 1 ||
	    read(setup->helper_answers, &byte, 1) != 1)
		return -ECHILD;
	return -byte;
}

static int write_map(const struct setup *setup, const char *name, struct dsec_list maps)
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
	snprintf(path, sizeof(path), "%d/%s", setup->helper, name);
	fd = openat(setup->proc, path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text, (size_t)length) != length ? -errno : 0;
}

/* Has the helper make a namespace, and maps ids into it. Returns its descriptor or a negative
 * errno. */
static int new_user_namespace(const struct setup *setup, struct dsec_list maps)
{
	char path[32];
	int err = order(setup);
	int fd;

	if (!err)
		err = write_map(setup, "uid_map", maps);
	if (!err)
		err = write_map(setup, "gid_map", maps);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%d/ns/user", setup->helper);
	fd = openat(setup->proc, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int setup_user_namespace(struct setup *setup)
{
	int orders[2], answers[2];

	setup->root_uid = setup->root_gid = spec_host_id(setup->spec, 0);
	if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		return -errno;
	setup->helper = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (setup->helper < 0)
		return -errno;
	if (setup->helper == 0) {
		close(orders[1]);
		helper(setup, orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	setup->helper_orders = orders[1];
	setup->helper_answers = answers[0];
	setup->user_namespace = new_user_namespace(setup, setup->spec->id_maps);
	return setup->user_namespace < 0 ? setup->user_namespace : 0;
}

int setup_user(struct setup *setup)
{
	if (setns(setup->user_namespace, CLONE_NEWUSER) || syscall(SYS_setgroups, 0, NULL))
		return -errno;
	return set_ids(setup->spec->uid, setup->spec->gid);
}

int setup_session_namespace(struct setup *setup)
{
	setup->session_namespace = new_user_namespace(setup, setup->spec->session_id_maps);
	if (setup->session_namespace < 0)
		return setup->session_namespace;
	close(setup->helper_orders);
	return waitpid(setup->helper, NULL, 0) < 0 ? -errno : 0;
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
