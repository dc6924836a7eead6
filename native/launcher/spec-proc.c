#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spec.h"

static bool has_option(const struct dsec_msg_mount *mount, const char *option)
{
	struct dsec_list options = mount->options;
	struct dsec_bytes item;

	while (mount->present & DSEC_MOUNT_HAS_OPTIONS && dsec_list_next(&options, &item)) {
		if (spec_is(item, option))
			return true;
	}
	return false;
}

/*
 * Parts of procfs that tell of the host or act on it. The ids and namespaces of a sandbox keep it
 * from most of them already; this is the second line. What this kernel does not have need not be
 * hidden. A procfs of processes alone has none of them, and nothing can be given by name in it.
 */
#define PROC "/proc/"
static const struct {
	const char *name;
	unsigned int kinds; /* what may cover it */
} proc_parts[] = {
#define HIDDEN(name)                                                                               \
	{                                                                                          \
		name, 1u << DSEC_MOUNT_KIND_MASK                                                   \
	}
#define GUARDED(name)                                                                              \
	{                                                                                          \
		name, 1u << DSEC_MOUNT_KIND_MASK | 1u << DSEC_MOUNT_KIND_READONLY                  \
	}
#define GIVEN(name)                                                                                \
	{                                                                                          \
		name, 1u << DSEC_MOUNT_KIND_MASK | 1u << DSEC_MOUNT_KIND_BIND                      \
	}
	HIDDEN("acpi"),		  HIDDEN("asound"),	 HIDDEN("buddyinfo"),  HIDDEN("diskstats"),
	HIDDEN("interrupts"),	  HIDDEN("kcore"),	 HIDDEN("key-users"),  HIDDEN("keys"),
	HIDDEN("kmsg"),		  HIDDEN("kpagecgroup"), HIDDEN("kpagecount"), HIDDEN("kpageflags"),
	HIDDEN("locks"),	  HIDDEN("modules"),	 HIDDEN("partitions"), HIDDEN("pressure"),
	HIDDEN("sched_debug"),	  HIDDEN("schedstat"),	 HIDDEN("scsi"),       HIDDEN("softirqs"),
	HIDDEN("timer_list"),	  HIDDEN("vmallocinfo"), HIDDEN("vmstat"),     HIDDEN("zoneinfo"),
	GUARDED("bus"),		  GUARDED("fs"),	 GUARDED("irq"),       GUARDED("sys"),
	GUARDED("sysrq-trigger"), GIVEN("loadavg"),	 GIVEN("meminfo"),     GIVEN("stat"),
};

enum {
	PROC_PARTS = sizeof(proc_parts) / sizeof(proc_parts[0]),
};

/* What this kernel has does not change, so it is looked up once. */
static bool has_proc_part(int part)
{
	static signed char known[PROC_PARTS];
	char path[64];

	if (!known[part]) {
		snprintf(path, sizeof(path), PROC "%s", proc_parts[part].name);
		known[part] = access(path, F_OK) ? -1 : 1;
	}
	return known[part] > 0;
}

/* Notes what covers the part of procfs that a mount is on; the last of several counts. */
static void note_cover(const struct dsec_msg_mount *mount, bool covered[PROC_PARTS])
{
	const uint32_t prefix = sizeof(PROC) - 1;
	struct dsec_bytes name = mount->target;

	if (!spec_starts_with(name, PROC))
		return;
	name = (struct dsec_bytes){ name.data + prefix, name.length - prefix };
	for (int i = 0; i < PROC_PARTS; i++) {
		if (spec_is(name, proc_parts[i].name))
			covered[i] = proc_parts[i].kinds >> mount->kind & 1;
	}
}

const char *spec_check_proc(const struct dsec_msg_spawn *spec)
{
	struct dsec_list mounts = spec->mounts;
	bool covered[PROC_PARTS] = { false };
	bool has_proc = false, has_parts = true;
	struct dsec_bytes item;

	while (dsec_list_next(&mounts, &item)) {
		struct dsec_msg_mount mount;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		note_cover(&mount, covered);
		if (!spec_is(mount.target, "/proc"))
			continue;
		/* It covers whatever was there before. */
		memset(covered, 0, sizeof(covered));
		has_proc = mount.kind == DSEC_MOUNT_KIND_PROC;
		has_parts = !has_option(&mount, "subset=pid");
	}
	if (!has_proc)
		return "a sandbox has a procfs of its own";
	for (int i = 0; i < PROC_PARTS && has_parts; i++) {
		if (!covered[i] && has_proc_part(i))
			return "a part of procfs that must be covered is not";
	}
	return NULL;
}
