/*
 * The launcher: the one part of DSec that is root. It makes namespaces, mounts, cgroups and first
 * processes for an edge, and undoes them by name. What it is asked is described in
 * packages/protocol/src/launcher-messages.ts; what it refuses whatever it is asked, in spec.c.
 * Sandboxes outlive it: a launcher that starts again finds them by their names.
 */
#include <stdio.h>
#include <string.h>

#include "crash.h"
#include "host-roots.h"
#include "host.h"
#include "idle.h"
#include "lifecycle.h"
#include "link.h"
#include "loop.h"
#include "pools.h"
#include "requests.h"
#include "upper-pool.h"

int main(int argc, char **argv)
{
	int err;

	if (argc == 2 && !strcmp(argv[1], "--crash-points"))
		return crash_print();
	if (host_init(argc, argv))
		return 2;
	crash_arm();
	upper_pool_sweep();
	err = loop_init();
	if (!err)
		err = lifecycle_init();
	if (!err)
		err = link_init(request_handle);
	if (!err)
		err = idle_init();
	if (!err)
		err = loop_run();
	if (!err) {
		upper_pool_sweep();
		if (idle_is_empty())
			remove_roots();
		pools_remove();
	}
	if (err)
		fprintf(stderr, "launcher: %s\n", strerror(-err));
	return err ? 1 : 0;
}
