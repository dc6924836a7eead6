/* The launcher's own part of a spawn: what the child cannot make, or must not. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cgroup.h"
#include "crash.h"
#include "host.h"
#include "kernel.h"
#include "lifecycle.h"
#include "router.h"
#include "setup.h"
#include "spec.h"
#include "upper-pool.h"
#include "veth.h"
#include "worker.h"

enum {
	AETHER_BACKLOG = 64,
};

static void tell_spawned(const struct object *object, struct origin origin)
{
	struct dsec_msg_spawned message = {
		OBJECT_KEY_FIELDS(object),
		.pid = (uint32_t)object->pid,
		.start_ticks = object->start_ticks,
	};

	link_answer(origin, DSEC_LAUNCHER_SPAWNED, &message);
}

/* The edge reaches aether here at any time, and nobody else does. */
static int open_listener(const char *key)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mode_t mask;
	int err;

	if (fd < 0 || fchdir(host.sockets))
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s.sock", key);
	mask = umask(0177);
	err = bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (err || lchown(address.sun_path, host.edge_uid, (gid_t)-1) || listen(fd, AETHER_BACKLOG))
		err = -errno;
	if (chdir("/") && !err)
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* The router first, as whoever takes an address must find it there to give it back. */
static int claim_link(const struct object *object, const struct dsec_msg_spawn *spec)
{
	int err;

	if (!(spec->present & DSEC_SPAWN_HAS_LINK))
		return 0;
	err = router_need(spec->link.gateway);
	if (!err)
		err = veth_claim(object->key, spec->link.address);
	crash_point(CRASH_LINK_CLAIMED);
	return err;
}

static void spawn_done(struct worker *worker)
{
	struct object *object = worker->context;

	if (worker->failures[0].code || !worker->succeeded) {
		object->failure = worker->failures[0].code ? worker->failures[0]
							   : failure_of(DSEC_ERROR_INTERNAL,
									"PID 1 died unfinished");
		cgroup_kill(object->key);
		/* It never ran: nothing is left to tell of it but why. */
		object->state = OBJECT_RUNNING;
		lifecycle_check(object);
		return;
	}
	crash_point(CRASH_SPAWN_READY);
	*object->ready = '\0';
	object->state = OBJECT_RUNNING;
	object_tell(object, WAITS_SPAWN, tell_spawned);
	lifecycle_check(object);
}

/* The child must find everything of its own by the time it runs, so all is opened before. */
static int clone_child(struct object *object, struct setup *setup, const char **step)
{
	AUTO_CLOSE life = cgroup_open_life(object->key);
	struct kernel_clone_args args = {
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET |
			 KERNEL_CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)life,
	};
	struct worker *worker = worker_new(spawn_done, object, 1, &setup->report);
	pid_t pid;

	*step = "clone";
	if (life < 0 || !worker)
		return life < 0 ? life : -ENOMEM;
	worker->reaped_elsewhere = true;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		setup_run(setup);
	if (pid < 0) {
		int err = -errno;

		worker_drop(worker, setup->report);
		return err;
	}
	object->pid = pid;
	object->own_child = true;
	worker_start(worker, pid, setup->report);
	crash_point(CRASH_SPAWN_CLONED);
	return lifecycle_start_ticks(pid, &object->start_ticks);
}

static int start(struct object *object, const struct dsec_msg_spawn *spec,
		 char step[STEP_BYTES_MAX])
{
	struct setup setup = {
		.spec = spec,
		.object = object,
		.listener = -1,
	};
	const char *name = "link";
	int err = cgroup_make(object, spec->cgroups, step);

	if (err)
		return err;
	crash_point(CRASH_SPAWN_CGROUP);
	if (spec->root.upper.driver == DSEC_UPPER_DRIVER_IMAGE)
		upper_pool_take(object, &spec->root.upper);
	err = claim_link(object, spec);
	if (err >= 0) {
		name = "listener";
		err = setup.listener = open_listener(object->key);
	}
	crash_point(CRASH_SPAWN_SOCKET);
	if (err >= 0)
		err = clone_child(object, &setup, &name);
	close_fd(&setup.listener);
	strcpy(step, name);
	return err < 0 ? err : 0;
}

/* A repeated spawn is answered as the first was. */
static void spawn_again(struct object *object, struct origin origin)
{
	struct failure failure = failure_of(DSEC_ERROR_STATE_CONFLICT, "this object has ended");

	if (object->state == OBJECT_STARTING && !object_await(object, WAITS_SPAWN, origin))
		return;
	if (object->state == OBJECT_RUNNING && !object->failure.code && object->pid)
		tell_spawned(object, origin);
	else
		link_fail(origin, &failure);
}

void lifecycle_spawn(struct origin origin, const struct dsec_msg_spawn *spec)
{
	struct failure failure;
	struct object *object;
	char key[KEY_BYTES_MAX + 1];
	char step[STEP_BYTES_MAX] = "";
	int err = object_key(spec->name, spec->generation, key);

	object = err ? NULL : object_find(key);
	if (object) {
		spawn_again(object, origin);
		return;
	}
	failure =
		err ? failure_of(DSEC_ERROR_INVALID_ARGUMENT, "not a name") : spec_check(spec, key);
	if (!failure.code && cgroup_populated(key) != -ENOENT)
		failure = failure_of(DSEC_ERROR_STATE_CONFLICT,
				     "an earlier launcher made it: adopt or release it");
	object = failure.code ? NULL : object_new(key);
	if (!object) {
		if (!failure.code)
			failure = failure_of(DSEC_ERROR_OVERLOADED, "too many objects");
		link_fail(origin, &failure);
		return;
	}
	crash_point(CRASH_SPAWN_CHECKED);
	strcpy(step, "cgroup");
	err = cgroup_note(object, spec->cgroups);
	if (err) {
		failure = failure_at(step, -err);
		link_fail(origin, &failure);
		object_free(object);
		return;
	}
	object_await(object, WAITS_SPAWN, origin);
	err = start(object, spec, step);
	if (!err)
		return;
	object->failure = failure_at(step, -err);
	object->state = OBJECT_RUNNING;
	cgroup_kill(key);
	lifecycle_check(object);
}
