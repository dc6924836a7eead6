#include "object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUCKETS = 4096,
};

static struct object *buckets[BUCKETS];
static struct object *watched[BUCKETS];
static int object_count;

int object_key(struct dsec_bytes name, uint32_t generation, char key[KEY_BYTES_MAX + 1])
{
	for (uint32_t i = 0; i < name.length; i++) {
		uint8_t byte = name.data[i];

		if (!((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
		      (byte == '-' && i > 0)))
			return -EINVAL;
	}
	snprintf(key, KEY_BYTES_MAX + 1, "%.*s-%u", (int)name.length, (const char *)name.data,
		 generation);
	return 0;
}

static struct object **bucket_of(const char *key)
{
	uint32_t hash = 2166136261u;

	while (*key)
		hash = (hash ^ (uint8_t)*key++) * 16777619u;
	return &buckets[hash % BUCKETS];
}

struct object *object_find(const char *key)
{
	struct object *object = *bucket_of(key);

	while (object && strcmp(object->key, key))
		object = object->next;
	return object;
}

struct object *object_new(const char *key)
{
	struct object **bucket = bucket_of(key);
	const char *dash = strrchr(key, '-');
	struct object *object;

	if (object_count == OBJECTS_MAX)
		return NULL;
	object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	strcpy(object->key, key);
	memcpy(object->name, key, (size_t)(dash - key));
	object->generation = (uint32_t)strtoul(dash + 1, NULL, 10);
	object->watch = -1;
	object->next = *bucket;
	*bucket = object;
	object_count++;
	return object;
}

void object_free(struct object *object)
{
	struct object **link = bucket_of(object->key);

	while (*link != object)
		link = &(*link)->next;
	*link = object->next;
	object_forget_watch(object);
	object_count--;
	free(object);
}

bool object_none(void)
{
	return object_count == 0;
}

struct object *object_of_watch(int watch)
{
	struct object *object = watch < 0 ? NULL : watched[watch % BUCKETS];

	while (object && object->watch != watch)
		object = object->next_watched;
	return object;
}

void object_set_watch(struct object *object, int watch)
{
	struct object **bucket = &watched[watch % BUCKETS];

	object->watch = watch;
	object->next_watched = *bucket;
	*bucket = object;
}

void object_forget_watch(struct object *object)
{
	struct object **link;

	if (object->watch < 0)
		return;
	link = &watched[object->watch % BUCKETS];
	while (*link != object)
		link = &(*link)->next_watched;
	*link = object->next_watched;
	object->watch = -1;
}

const struct place *object_place(const struct object *object, const struct hierarchy *hierarchy)
{
	for (int i = 0; i < object->place_count; i++) {
		if (object->places[i].hierarchy == hierarchy)
			return &object->places[i];
	}
	return NULL;
}

int object_await(struct object *object, enum waiter_kind kind, struct origin origin)
{
	if (object->waiter_count == WAITERS_MAX)
		return -EAGAIN;
	object->waiters[object->waiter_count++] = (struct waiter){ kind, origin };
	return 0;
}

bool object_is_awaited(const struct object *object, enum waiter_kind kind)
{
	for (int i = 0; i < object->waiter_count; i++) {
		if (object->waiters[i].kind == kind)
			return true;
	}
	return false;
}

void object_tell(struct object *object, enum waiter_kind kind,
		 void (*tell)(const struct object *object, struct origin origin))
{
	int kept = 0;

	for (int i = 0; i < object->waiter_count; i++) {
		if (object->waiters[i].kind == kind)
			tell(object, object->waiters[i].origin);
		else
			object->waiters[kept++] = object->waiters[i];
	}
	object->waiter_count = kept;
}

static int compare(const void *left, const void *right)
{
	const struct object *a = *(struct object *const *)left;
	const struct object *b = *(struct object *const *)right;
	int order = strcmp(a->name, b->name);

	return order ? order : (a->generation > b->generation) - (a->generation < b->generation);
}

int object_sorted(struct object ***objects)
{
	int count = 0;

	*objects = malloc(sizeof(**objects) * ((size_t)object_count + 1));
	if (!*objects)
		return -ENOMEM;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct object *object = buckets[i]; object; object = object->next)
			(*objects)[count++] = object;
	}
	qsort(*objects, (size_t)count, sizeof(**objects), compare);
	return count;
}
