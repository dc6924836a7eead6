#include "spec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ALL_NAMESPACES = DSEC_NAMESPACE_MOUNT | DSEC_NAMESPACE_PID | DSEC_NAMESPACE_UTS |
			 DSEC_NAMESPACE_IPC | DSEC_NAMESPACE_NET | DSEC_NAMESPACE_CGROUP |
			 DSEC_NAMESPACE_USER,
	LAST_ID = 65535,
};

bool spec_is(struct dsec_bytes bytes, const char *text)
{
	return bytes.length == strlen(text) && !memcmp(bytes.data, text, bytes.length);
}

bool spec_starts_with(struct dsec_bytes bytes, const char *text)
{
	return bytes.length >= strlen(text) && !memcmp(bytes.data, text, strlen(text));
}

static uint32_t mapped(struct dsec_list maps, uint32_t inside)
{
	struct dsec_bytes item;

	while (dsec_list_next(&maps, &item)) {
		struct dsec_msg_id_map map;

		dsec_message_decode(&dsec_msg_id_map, item, &map);
		if (inside >= map.inside && inside - map.inside < map.count)
			return map.outside + (inside - map.inside);
	}
	return (uint32_t)-1;
}

uint32_t spec_host_id(const struct dsec_msg_spawn *spec, uint32_t inside)
{
	return mapped(spec->id_maps, inside);
}

uint32_t spec_session_host_id(const struct dsec_msg_spawn *spec, uint32_t inside)
{
	uint32_t id = mapped(spec->session_id_maps, inside);

	return id == (uint32_t)-1 ? id : spec_host_id(spec, id);
}

static const char *check_kind(const struct dsec_msg_spawn *spec)
{
	return spec->kind == DSEC_SPAWN_KIND_SANDBOX ? NULL : "this launcher starts sandboxes only";
}

static const char *check_namespaces(const struct dsec_msg_spawn *spec)
{
	return spec->namespaces == ALL_NAMESPACES ? NULL
						  : "a sandbox has every namespace of its own";
}

/* All from one range, so that no two sandboxes can ever share an id. */
static const char *check_id_maps(const struct dsec_msg_spawn *spec)
{
	struct dsec_list maps = spec->id_maps;
	uint32_t range = 0, total = 0;
	struct dsec_bytes item;

	while (dsec_list_next(&maps, &item)) {
		struct dsec_msg_id_map map;
		uint32_t own;

		dsec_message_decode(&dsec_msg_id_map, item, &map);
		own = map.outside / DSEC_SANDBOX_ID_COUNT;
		total += map.count;
		if (map.outside < DSEC_SANDBOX_ID_FIRST || (range && own != range) ||
		    (map.outside + (map.count - 1)) / DSEC_SANDBOX_ID_COUNT != own ||
		    map.inside > LAST_ID || total > DSEC_SANDBOX_ID_COUNT)
			return "ids are those of one range of sandboxes";
		range = own;
	}
	return spec_host_id(spec, 0) == (uint32_t)-1 ? "id 0 must be mapped" : NULL;
}

/* The root of its namespace, as that is who the kernel gives the files of an undumpable process to:
 * whoever else had that id could write /proc/1/oom_score_adj. */
static const char *check_ids(const struct dsec_msg_spawn *spec)
{
	return spec->uid == 0 && spec->gid == 0 ? NULL : "the ids of PID 1 are 0";
}

static const char *check_session_ids(const struct dsec_msg_spawn *spec)
{
	struct dsec_list maps = spec->session_id_maps;
	struct dsec_bytes item;

	if (maps.count == 0)
		return "sessions need a user namespace of their own";
	while (dsec_list_next(&maps, &item)) {
		struct dsec_msg_id_map map;

		dsec_message_decode(&dsec_msg_id_map, item, &map);
		if (map.outside > LAST_ID || map.count > LAST_ID + 1 - map.outside)
			return "sessions have ids of PID 1's namespace";
		if (map.outside == 0)
			return "the id of PID 1 must not be mapped for sessions";
	}
	return spec_session_host_id(spec, 0) == (uint32_t)-1 ? "sessions have an id 0" : NULL;
}

static const char *check_root(const struct dsec_msg_spawn *spec)
{
	return spec->present & DSEC_SPAWN_HAS_ROOT ? NULL : "a sandbox has a root of layers";
}

/* Empty, `.` or `..`. */
static bool is_odd_part(const uint8_t *part, uint32_t length)
{
	return length == 0 || (length <= 2 && part[0] == '.' && part[length - 1] == '.');
}

/* One name for one place, so that what is asked for a place holds for it. */
static bool is_plain_path(struct dsec_bytes path)
{
	uint32_t part = 1;

	if (path.data[0] != '/')
		return false;
	for (uint32_t i = 1; i <= path.length; i++) {
		if (i < path.length && path.data[i] != '/')
			continue;
		if (is_odd_part(path.data + part, i - part))
			return false;
		part = i + 1;
	}
	return true;
}

static const char *check_mount(const struct dsec_msg_mount *mount)
{
	bool needs_source =
		mount->kind == DSEC_MOUNT_KIND_BIND || mount->kind == DSEC_MOUNT_KIND_LAYER;

	if (!is_plain_path(mount->target))
		return "the target of a mount is an absolute path without empty or dotted parts";
	if (needs_source != !!(mount->present & DSEC_MOUNT_HAS_SOURCE))
		return "binds and layers, and no other mounts, have a source";
	if (mount->flags & DSEC_MOUNT_POLICY && mount->kind != DSEC_MOUNT_KIND_MASK &&
	    mount->kind != DSEC_MOUNT_KIND_READONLY)
		return "a policy covers, or makes read-only";
	if (mount->kind == DSEC_MOUNT_KIND_PROC && !spec_is(mount->target, "/proc"))
		return "procfs belongs at /proc";
	if (mount->kind == DSEC_MOUNT_KIND_TMPFS && !(mount->present & DSEC_MOUNT_HAS_SIZE_BYTES &&
						      mount->present & DSEC_MOUNT_HAS_INODES_MAX))
		return "a tmpfs has a limit on bytes and on inodes";
	return NULL;
}

const char *spec_check_covers(struct dsec_list mounts)
{
	struct dsec_bytes item;

	while (dsec_list_next(&mounts, &item)) {
		struct dsec_msg_mount mount;
		const char *problem;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		problem = check_mount(&mount);
		if (problem)
			return problem;
		if (!(mount.flags & DSEC_MOUNT_POLICY))
			return "only what was made for a policy is made again";
	}
	return NULL;
}

static const char *check_mounts(const struct dsec_msg_spawn *spec)
{
	struct dsec_list mounts = spec->mounts;
	struct dsec_bytes item;
	int layers = 0, binds = 0;

	while (dsec_list_next(&mounts, &item)) {
		struct dsec_msg_mount mount;
		const char *problem;

		dsec_message_decode(&dsec_msg_mount, item, &mount);
		problem = check_mount(&mount);
		if (problem)
			return problem;
		layers += mount.kind == DSEC_MOUNT_KIND_LAYER;
		binds += mount.kind == DSEC_MOUNT_KIND_BIND;
	}
	return layers > SPEC_SOURCES_MAX || binds > SPEC_SOURCES_MAX
		       ? "at most 16 layers beside the root, and as many binds"
		       : NULL;
}

/* Only those that belong to the new namespaces. */
static const char *check_sysctls(const struct dsec_msg_spawn *spec)
{
	static const char *const allowed[] = { "net.", "kernel.shm", "kernel.msg", "kernel.sem",
					       "fs.mqueue." };
	struct dsec_list sysctls = spec->sysctls;
	struct dsec_bytes item;

	while (dsec_list_next(&sysctls, &item)) {
		struct dsec_msg_assignment sysctl;
		bool known = false;

		dsec_message_decode(&dsec_msg_assignment, item, &sysctl);
		for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
			known |= spec_starts_with(sysctl.name, allowed[i]);
		if (!known || memchr(sysctl.name.data, '/', sysctl.name.length) ||
		    memmem(sysctl.name.data, sysctl.name.length, "..", 2))
			return "a sysctl that does not belong to the sandbox's namespaces";
	}
	return NULL;
}

static const char *check_privileges(const struct dsec_msg_spawn *spec)
{
	if (spec->capabilities & ~SPEC_CAPABILITIES)
		return "a capability that no sandbox may have";
	if (!(spec->present & DSEC_SPAWN_HAS_SECCOMP) || spec->seccomp.length % 8)
		return "a sandbox has a filter of system calls";
	if (spec->oom_score_adj < 0)
		return "a sandbox is not spared by the kernel's memory killer";
	return NULL;
}

/* Limits that a process would else inherit from the launcher. */
static const char *check_rlimits(const struct dsec_msg_spawn *spec)
{
	enum {
		CORE = 4,
		NPROC = 6,
		NOFILE = 7,
		MEMLOCK = 8,
		MSGQUEUE = 12
	};
	uint32_t needed = 1u << CORE | 1u << NPROC | 1u << NOFILE | 1u << MEMLOCK | 1u << MSGQUEUE;
	struct dsec_list rlimits = spec->rlimits;
	struct dsec_bytes item;
	uint32_t seen = 0;

	while (dsec_list_next(&rlimits, &item)) {
		struct dsec_msg_rlimit rlimit;

		dsec_message_decode(&dsec_msg_rlimit, item, &rlimit);
		seen |= 1u << rlimit.resource;
	}
	return needed & ~seen ? "CORE, NPROC, NOFILE, MEMLOCK and MSGQUEUE must be limited" : NULL;
}

static const char *check_program(const struct dsec_msg_spawn *spec)
{
	if (spec->present & DSEC_SPAWN_HAS_PROGRAM)
		return "PID 1 of a sandbox is aether";
	return spec->env.count ? "PID 1 of a sandbox has no environment" : NULL;
}

/* 0, 1 and 2 lead nowhere; 3 is the listening socket, at the name that is derived from the
 * object's. */
static struct failure check_descriptors(const struct dsec_msg_spawn *spec, const char *key)
{
	struct dsec_list descriptors = spec->descriptors;
	struct dsec_bytes item;
	uint32_t seen = 0;
	char name[96];
	bool sound = true;

	snprintf(name, sizeof(name), "run/sb/%s.sock", key);
	while (dsec_list_next(&descriptors, &item)) {
		struct dsec_msg_descriptor descriptor;

		dsec_message_decode(&dsec_msg_descriptor, item, &descriptor);
		if (descriptor.number == 3)
			sound &= descriptor.kind == DSEC_DESCRIPTOR_KIND_LISTENER &&
				 descriptor.present & DSEC_DESCRIPTOR_HAS_NAME &&
				 spec_is(descriptor.name, name);
		else
			sound &= descriptor.kind == DSEC_DESCRIPTOR_KIND_NULL;
		sound &= !(seen >> descriptor.number & 1);
		seen |= 1u << descriptor.number;
	}
	if (sound && seen == 0xf)
		return (struct failure){ 0 };
	return failure_of(DSEC_ERROR_PERMISSION_DENIED,
			  "descriptors are 0 to 3: three of kind null, and the listener");
}

bool spec_is_address(uint32_t address)
{
	uint32_t network = address >> 24;

	return network > 0 && network != 127 && network < 224;
}

static const char *check_link(const struct dsec_msg_spawn *spec)
{
	const struct dsec_msg_link *link = &spec->link;

	if (!(spec->present & DSEC_SPAWN_HAS_LINK))
		return NULL;
	return spec_is_address(link->address) && spec_is_address(link->gateway) &&
			       link->address != link->gateway
		       ? NULL
		       : "a link has the address of a host, and that of another";
}

static const struct {
	const char *step;
	const char *code;
	/* What is wrong, or NULL. */
	const char *(*check)(const struct dsec_msg_spawn *spec);
} checks[] = {
	{ "spec:kind", DSEC_ERROR_UNSUPPORTED, check_kind },
	{ "spec:namespaces", DSEC_ERROR_PERMISSION_DENIED, check_namespaces },
	{ "spec:idMaps", DSEC_ERROR_PERMISSION_DENIED, check_id_maps },
	{ "spec:ids", DSEC_ERROR_PERMISSION_DENIED, check_ids },
	{ "spec:sessionIdMaps", DSEC_ERROR_PERMISSION_DENIED, check_session_ids },
	{ "spec:root", DSEC_ERROR_INVALID_ARGUMENT, check_root },
	{ "spec:mounts", DSEC_ERROR_INVALID_ARGUMENT, check_mounts },
	{ "spec:proc", DSEC_ERROR_PERMISSION_DENIED, spec_check_proc },
	{ "spec:sysctls", DSEC_ERROR_PERMISSION_DENIED, check_sysctls },
	{ "spec:privileges", DSEC_ERROR_PERMISSION_DENIED, check_privileges },
	{ "spec:rlimits", DSEC_ERROR_PERMISSION_DENIED, check_rlimits },
	{ "spec:link", DSEC_ERROR_INVALID_ARGUMENT, check_link },
	{ "spec:program", DSEC_ERROR_PERMISSION_DENIED, check_program },
};

struct failure spec_check(const struct dsec_msg_spawn *spec, const char *key)
{
	struct failure failure;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		const char *problem = checks[i].check(spec);

		if (!problem)
			continue;
		failure = failure_of(checks[i].code, problem);
		snprintf(failure.step, sizeof(failure.step), "%s", checks[i].step);
		return failure;
	}
	failure = check_descriptors(spec, key);
	if (failure.code)
		snprintf(failure.step, sizeof(failure.step), "spec:descriptors");
	return failure;
}
