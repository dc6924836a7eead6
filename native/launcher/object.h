/*
 * Objects: sandboxes that run, or ran and were not released. The table is memory only. What
 * outlives the launcher is found again by name: cgroups, sockets, uppers and users of layers are
 * all called by the object's key.
 */
#ifndef LAUNCHER_OBJECT_H
#define LAUNCHER_OBJECT_H

#include <sys/types.h>

#include "link.h"

enum {
	NAME_BYTES_MAX = 40,
	KEY_BYTES_MAX = NAME_BYTES_MAX + 1 + 10,
	OBJECTS_MAX = 32768,
	PLACES_MAX = 8,
	WAITERS_MAX = 4,
	READY_BYTES_MAX = 40, /* no longer than a key */
};

enum object_state {
	OBJECT_STARTING,
	OBJECT_RUNNING,
	OBJECT_ENDED, /* nothing of it runs any more */
};

struct exit_status {
	bool has_code;
	bool has_signal;
	uint8_t code;
	uint8_t signal;
	bool oom_killed;
};

/* A cgroup of an object below the edge's own in one hierarchy. */
struct place {
	const struct hierarchy *hierarchy;
	char directory[64];
};

struct waiter {
	enum waiter_kind {
		WAITS_SPAWN,
		WAITS_KILL,
		WAITS_RELEASE
	} kind;
	struct origin origin;
};

struct object {
	struct object *next;	     /* of the same hash */
	struct object *next_watched; /* of the same hash of their watches */
	struct object *next_dying;   /* see lifecycle.c */
	char key[KEY_BYTES_MAX + 1]; /* name-generation */
	char name[NAME_BYTES_MAX + 1];
	uint32_t generation;
	enum object_state state;
	bool own_child; /* of this launcher, so that it can tell how it ended */
	bool releasing;
	bool frozen; /* as was asked last */
	pid_t pid;   /* 0: not known */
	uint64_t start_ticks;
	int watch; /* of cgroup.events, -1: none */
	uint64_t oom_kills_before;
	struct exit_status exit;
	struct failure failure;	     /* of a spawn */
	char ready[READY_BYTES_MAX]; /* the upper that was made ahead, until it bears the key */
	struct place places[PLACES_MAX];
	int place_count;
	struct waiter waiters[WAITERS_MAX];
	int waiter_count;
};

/* Checks a name, and writes the key that is made of it. Returns 0 or -EINVAL. */
int object_key(struct dsec_bytes name, uint32_t generation, char key[KEY_BYTES_MAX + 1]);

struct object *object_find(const char *key);
/* The object of an inotify watch, or NULL. */
struct object *object_of_watch(int watch);
void object_set_watch(struct object *object, int watch);
void object_forget_watch(struct object *object);
/* A new object in the table, or NULL when there are too many. */
struct object *object_new(const char *key);
void object_free(struct object *object);

bool object_none(void);

/* Its cgroup in a hierarchy, or NULL. */
const struct place *object_place(const struct object *object, const struct hierarchy *hierarchy);

/* Returns -EAGAIN when too many wait already. */
int object_await(struct object *object, enum waiter_kind kind, struct origin origin);
bool object_is_awaited(const struct object *object, enum waiter_kind kind);
/* Takes the waiters of a kind off, calling `tell` for each. */
void object_tell(struct object *object, enum waiter_kind kind,
		 void (*tell)(const struct object *object, struct origin origin));

/* All objects in the order of their names; the array is the caller's. Returns their number or
 * -ENOMEM. */
int object_sorted(struct object ***objects);

/* The name and generation of every message that has them. */
#define OBJECT_KEY_FIELDS(object)                                                                  \
	.name = { (const uint8_t *)(object)->name, (uint32_t)strlen((object)->name) },             \
	.generation = (object)->generation

#endif
