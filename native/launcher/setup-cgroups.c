/*
 * The cgroups of version 1 that hold a sandbox's limits. To move a process into one takes a grace
 * period of the kernel, often longer than all the rest: so a helper moves it, while it goes on, and
 * is waited for before anything of the sandbox can run.
 */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "ceiling.h"
#include "cgroup.h"
#include "kernel.h"
#include "setup.h"

enum {
	JOINER_STACK_BYTES = 16 * 1024,
};

static _Alignas(16) char joiner_stack[JOINER_STACK_BYTES];

/*
 * Shares memory and descriptors, as a copy of a launcher is dear; and so errno, which a call that
 * succeeds leaves alone. When one fails here the spawn does, whatever number it is told with. The
 * result is that number.
 */
static int join(void *context)
{
	struct setup *setup = context;
	/* The first process of the namespace that both are in. */
	int err = cgroup_join(setup->object, "1", setup->joiner_step);

	if (err)
		return -err;
	strcpy(setup->joiner_step, "ceiling");
	return -ceiling_check();
}

int setup_cgroups(struct setup *setup)
{
	int err = cgroup_furnish(setup->object, setup->spec->cgroups, setup->step);

	if (err || setup->object->place_count == 1)
		return err;
	strcpy(setup->step, "cgroup");
	setup->joiner = clone(join, joiner_stack + JOINER_STACK_BYTES,
			      CLONE_VM | CLONE_FILES | SIGCHLD, setup);
	return setup->joiner < 0 ? -errno : 0;
}

/* Only now, so that the sandbox sees its own cgroups as the root. */
int setup_cgroup_namespace(struct setup *setup)
{
	int status = 0;

	if (setup->joiner && waitpid(setup->joiner, &status, 0) < 0)
		return -errno;
	if (status) {
		strcpy(setup->step, setup->joiner_step);
		return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
	}
	strcpy(setup->step, "cgroup-namespace");
	return unshare(CLONE_NEWCGROUP) ? -errno : 0;
}
