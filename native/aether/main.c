/*
 * aether, the agent inside a sandbox: PID 1 of a container, or started by the init of a VM. What it
 * and the host say to each other is described in packages/protocol/src/aether-frames.ts.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "crash.h"
#include "guests.h"
#include "link.h"
#include "loop.h"
#include "platform.h"
#include "rules.h"

int main(int argc, char **argv)
{
	static char *no_environment[] = { NULL };

	if (argc == 2 && !strcmp(argv[1], "--crash-points"))
		return crash_print();
	crash_arm();
	environ = no_environment;
	if (platform_init(argc, argv))
		return 2;
	loop_settle = link_settle;
	loop_child_ended = command_child_ended;
	loop_children_ended = rules_children_ended;
	if (loop_init() || guests_init(LISTENER_FD)) {
		fprintf(stderr, "aether: descriptor 3 is not a listening socket\n");
		return 2;
	}
	loop_run();
}
