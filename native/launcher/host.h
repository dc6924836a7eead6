/*
 * What the launcher holds of its host: a root of its own with one unmasked procfs, the pinned
 * namespace of layers and uppers, the edge's cgroups, and aether's sealed copy. Filled in once, at
 * the start.
 */
#ifndef LAUNCHER_HOST_H
#define LAUNCHER_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LAUNCHER_VERSION "0.1.0"

enum {
	HIERARCHIES_MAX = 24,
	LAYERS_MAX = 64,
	PATH_TEXT_MAX = 4096,
};

struct hierarchy {
	char name[32]; /* `unified`, or a controller of version 1 */
	int directory; /* the edge's own cgroup */
};

struct host {
	const char *state_path;
	const char *aether_path;
	const char *edge_id;
	uid_t edge_uid;
	/*
	 * The state root, where the launcher was started: what is mounted below it later is seen
	 * through this descriptor, from whatever namespace.
	 */
	int state;
	int sockets;  /* run/sb below it */
	int listener; /* run/launcher.sock */
	int proc;     /* of the host, unmasked */
	int start;    /* the mount namespace that the launcher was started in */
	int home;     /* the launcher's own mount namespace */
	int pinned;   /* the mount namespace of layers and uppers */
	int aether;   /* a sealed copy, to be executed */
	int router;   /* the network namespace of host ends, -1: not needed yet */
	int links;    /* who has which, see veth.h */
	struct hierarchy hierarchies[HIERARCHIES_MAX]; /* the first is version 2 */
	int hierarchy_count;
};

extern struct host host;

/*
 * Places in the launcher's own root, which every sandbox sees a copy of until it has a root of its
 * own. HOST_LAYERS is a directory for each layer of a root, by number.
 */
#define HOST_DEV    "/dev"
#define HOST_SYS    "/sys"
#define HOST_LAYERS "/l"
#define HOST_UPPER  "/u"
#define HOST_ROOT   "/m"
#define HOST_EMPTY  "/empty"
#define HOST_NULL   "/null"
/* The same for what a policy covers: told apart by these names in the mount table. */
#define HOST_COVER	"/cover"
#define HOST_COVER_NULL "/cover-null"
#define HOST_LOOPS	"/loop"

/* Longest path of a device below HOST_LOOPS. */
enum {
	HOST_LOOP_BYTES_MAX = 24,
};

/* How every path that the edge names is walked. */
#define HOST_RESOLVE                                                                               \
	(KERNEL_RESOLVE_BENEATH | KERNEL_RESOLVE_NO_SYMLINKS | KERNEL_RESOLVE_NO_MAGICLINKS)

/* Takes the host in; says on standard error what failed. Returns 0 or a negative errno. */
int host_init(int argc, char **argv);

/* The hierarchy of this name, or NULL. */
const struct hierarchy *host_hierarchy(const char *name);

/* Changes the calling process to the pinned namespace, and back. */
int host_visit(void);
int host_return(void);

/* For a path below the state root, without symlinks. Returns a descriptor or a negative errno. */
int host_open(const char *path, uint64_t flags);

#endif
