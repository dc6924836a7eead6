#include "runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

int complain(const char *what, const char *path)
{
	fprintf(stderr, "%s %.200s: %s\n", what, path, strerror(errno));
	return 1;
}

static bool parse_id(const char *text, uint32_t *id)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*id = (uint32_t)value;
	return *text && !*end && value < 65536;
}

int main(int argc, char **argv)
{
	uint32_t uid, gid;

	/* Nobody of the same user may look into it, or hold its descriptors. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return complain("prctl", "");
	if (argc == 2 && !strcmp(argv[1], "apply"))
		return apply_solution();
	if (argc > 4 && !strcmp(argv[1], "run") && parse_id(argv[2], &uid) &&
	    parse_id(argv[3], &gid))
		return run_command(uid, gid, argv + 4);
	fprintf(stderr, "usage: runner apply | runner run UID GID COMMAND...\n");
	return 2;
}
