/* What aether knows about the place that it runs in. */
#ifndef AETHER_PLATFORM_H
#define AETHER_PLATFORM_H

#include <stdint.h>
#include <sys/resource.h>

#define AETHER_VERSION "0.1.0"

/* Descriptors that the launcher gives to aether. */
enum {
	LISTENER_FD = 3,
	SESSION_NAMESPACE_FD = 4,
};

/*
 * Where commands run. With a session namespace (`--session-ids INSIDE:OUTSIDE:COUNT`) descriptor 4
 * is a user namespace below aether's own, whose ids from INSIDE on are aether's from OUTSIDE on;
 * the id that aether runs under is not among them, so that nothing inside can signal, trace or
 * limit it. Without, commands share aether's namespace.
 */
struct session_ids {
	int namespace_fd; /* -1: none */
	uint32_t inside;
	uint32_t outside;
	uint32_t count;
};

extern struct session_ids session_ids;
/* The limit on open files that commands are given; aether raises its own. */
extern struct rlimit session_files;
/* A directory descriptor of /proc, -1 when there is none. */
extern int proc_fd;

/* Sets all of the above up and makes the process safe from what runs beside it. 0 or a negative
 * errno. */
int platform_init(int argc, char **argv);

/* 16 random bytes drawn when aether started. */
const uint8_t *platform_instance(void);

#endif
