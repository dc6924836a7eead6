/*
 * Setting a sandbox up: what its first process does between clone3 and the start of aether, as a
 * table of steps. The process is host root until the last steps, in namespaces of its own, and
 * nothing of the sandbox runs before the end. Nothing here allocates, as the process is a copy of
 * the launcher.
 */
#ifndef LAUNCHER_SETUP_H
#define LAUNCHER_SETUP_H

#include <sys/types.h>

#include "failure.h"
#include "frame.h"
#include "host.h"
#include "object.h"
#include "spec.h"

struct setup {
	const struct dsec_msg_spawn *spec;
	const struct object *object;
	int report;   /* where the launcher learns how it went */
	int listener; /* aether's socket */
	/* What the steps have made so far. */
	uid_t root_uid; /* the host's ids of root in sessions, who owns what is made for them */
	gid_t root_gid;
	int proc; /* the new procfs, also before it is at /proc */
	int user_namespace;
	int session_namespace;
	int root;
	int null;
	int home; /* its mount namespace, to come back to from others */
	int upper;
	int layers[LAYERS_MAX];
	int layer_count;
	/* Copies of mounts that lie elsewhere, in the order of the spec. */
	int layer_mounts[SPEC_SOURCES_MAX];
	int layer_mount_count;
	int layer_mounts_placed;
	int binds[SPEC_SOURCES_MAX];
	int bind_count;
	int binds_placed;
	int helper_order; /* that ids are mapped */
	pid_t joiner;	  /* of cgroups; 0: none */
	char joiner_step[STEP_BYTES_MAX];
	char step[STEP_BYTES_MAX];
};

/* Never returns: becomes aether, or reports the step that failed and ends. */
_Noreturn void setup_run(struct setup *setup);

/* Steps, in the order of the table in setup.c. All return 0 or a negative errno. */
int setup_cgroups(struct setup *setup);
int setup_cgroup_namespace(struct setup *setup);
int setup_proc(struct setup *setup);
int setup_link(struct setup *setup);
int setup_user_namespaces(struct setup *setup);
int setup_user(struct setup *setup);
int setup_capabilities(struct setup *setup);
int setup_layers(struct setup *setup);
int setup_overlay(struct setup *setup);
int setup_mounts(struct setup *setup);

/* Parts of it. A descriptor of the target of a mount, made as a directory where missing. */
int setup_target(struct setup *setup, struct dsec_bytes target);
/* What covers it, of the launcher's own root; and itself, made read-only. */
int setup_mask(int target, const struct dsec_msg_mount *mount);
int setup_readonly(int target, const struct dsec_msg_mount *mount);

/* Of the new namespaces; `path` is below /proc. Returns 0 or a negative errno. */
int setup_sysctl(struct setup *setup, const char *path, const void *value, size_t length);

/* Writes a name into the step that is reported on failure. */
void setup_step(struct setup *setup, const char *kind, struct dsec_bytes name);

#endif
