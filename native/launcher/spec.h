/*
 * What the launcher insists on, whatever an edge asks: every namespace new, ids from a range of
 * sandboxes alone, no capability beyond a fixed set, a filter of system calls, /proc without what
 * leads out. A request that lacks any of it is refused before anything is made.
 */
#ifndef LAUNCHER_SPEC_H
#define LAUNCHER_SPEC_H

#include "failure.h"
#include "frame.h"

/* docker's default capabilities without MKNOD, NET_RAW, SYS_CHROOT and AUDIT_WRITE. */
#define SPEC_CAPABILITIES                                                                          \
	(UINT64_C(1) << 0 /* CHOWN */ | UINT64_C(1) << 1 /* DAC_OVERRIDE */ |                      \
	 UINT64_C(1) << 3 /* FOWNER */ | UINT64_C(1) << 4 /* FSETID */ |                           \
	 UINT64_C(1) << 5 /* KILL */ | UINT64_C(1) << 6 /* SETGID */ |                             \
	 UINT64_C(1) << 7 /* SETUID */ | UINT64_C(1) << 8 /* SETPCAP */ |                          \
	 UINT64_C(1) << 10 /* NET_BIND_SERVICE */ | UINT64_C(1) << 31 /* SETFCAP */)

/* Longest argv and env of a spawn, as pointers. */
enum {
	SPEC_ARGV_MAX = 256,
	SPEC_PTYS_MAX = 32,
	/* Mounts of layers, and of files below the state root. */
	SPEC_SOURCES_MAX = 16,
};

/* Returns a failure whose code is NULL when the spec is acceptable. */
struct failure spec_check(const struct dsec_msg_spawn *spec, const char *key);

/* The host's id for id `inside` of PID 1's namespace, or (uint32_t)-1. */
uint32_t spec_host_id(const struct dsec_msg_spawn *spec, uint32_t inside);

/* The same for an id of sessions. */
uint32_t spec_session_host_id(const struct dsec_msg_spawn *spec, uint32_t inside);

/* Of one host: neither unspecified, loopback, multicast nor broadcast. */
bool spec_is_address(uint32_t address);

/* True when `bytes` is exactly this text, or begins with it. */
bool spec_is(struct dsec_bytes bytes, const char *text);
bool spec_starts_with(struct dsec_bytes bytes, const char *text);

/* What is wrong with mounts for a policy, or NULL. */
const char *spec_check_covers(struct dsec_list mounts);

/* Part of spec_check(): what is wrong with the parts of procfs that a sandbox sees, or NULL. */
const char *spec_check_proc(const struct dsec_msg_spawn *spec);

#endif
