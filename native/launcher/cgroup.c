#include "cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "host.h"
#include "kernel.h"
#include "loop.h"

enum {
	FILE_BYTES_MAX = 4096,
};

static void (*events_changed)(struct object *object);
static struct watch inotify = { .fd = -1 };

/* Reads a small file of a cgroup as text. Returns its length or a negative errno. */
static int read_file(int directory, const char *path, char text[FILE_BYTES_MAX])
{
	AUTO_CLOSE fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -errno;
	length = read(fd, text, FILE_BYTES_MAX - 1);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	return (int)length;
}

static int write_file(int directory, const char *path, const void *value, size_t length)
{
	AUTO_CLOSE fd = openat(directory, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, value, length) < 0 ? -errno : 0;
}

/* A name for a directory below the edge's: no path, and nothing hidden. */
static bool is_directory_name(struct dsec_bytes name)
{
	for (uint32_t i = 0; i < name.length; i++) {
		uint8_t byte = name.data[i];

		if (!((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-'))
			return false;
	}
	return name.length < sizeof(((struct place *)0)->directory);
}

bool cgroup_is_setting(struct dsec_bytes name)
{
	static const char *const refused[] = { "cgroup.procs",		"cgroup.threads",
					       "cgroup.type",		"tasks",
					       "cgroup.kill",		"release_agent",
					       "notify_on_release",	"cgroup.event_control",
					       "cgroup.subtree_control" };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (name.length == strlen(refused[i]) &&
		    !memcmp(name.data, refused[i], name.length))
			return false;
	}
	for (uint32_t i = 0; i < name.length; i++) {
		uint8_t byte = name.data[i];

		if (!((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' ||
		      (byte == '.' && i > 0)))
			return false;
	}
	return true;
}

int cgroup_note(struct object *object, struct dsec_list cgroups)
{
	struct dsec_bytes item;

	object->place_count = 0;
	while (dsec_list_next(&cgroups, &item)) {
		struct place *place = &object->places[object->place_count++];
		struct dsec_msg_cgroup cgroup;
		char name[33];
		bool pooled;

		dsec_message_decode(&dsec_msg_cgroup, item, &cgroup);
		snprintf(name, sizeof(name), "%.*s", (int)cgroup.hierarchy.length,
			 cgroup.hierarchy.data);
		place->hierarchy = host_hierarchy(name);
		if (!place->hierarchy || !is_directory_name(cgroup.directory))
			return -EINVAL;
		snprintf(place->directory, sizeof(place->directory), "%.*s",
			 (int)cgroup.directory.length, cgroup.directory.data);
		pooled = !strncmp(place->directory, "pool-", 5) &&
			 place->hierarchy != host.hierarchies;
		if (!pooled && strcmp(place->directory, object->key))
			return -EINVAL;
		if ((place == object->places) != (place->hierarchy == host.hierarchies))
			return -EINVAL;
	}
	return 0;
}

int cgroup_write(const struct place *place, struct dsec_list settings, char step[STEP_BYTES_MAX])
{
	struct dsec_bytes item;

	while (dsec_list_next(&settings, &item)) {
		struct dsec_msg_assignment setting;
		char path[sizeof(place->directory) + 129];
		int err;

		dsec_message_decode(&dsec_msg_assignment, item, &setting);
		snprintf(step, STEP_BYTES_MAX, "cgroup:%s:%.*s", place->hierarchy->name,
			 (int)setting.name.length, setting.name.data);
		snprintf(path, sizeof(path), "%s/%.*s", place->directory, (int)setting.name.length,
			 setting.name.data);
		err = write_file(place->hierarchy->directory, path, setting.value.data,
				 setting.value.length);
		if (err)
			return err;
	}
	return 0;
}

/* The settings of the next cgroup of a list that cgroup_note() has checked. */
static struct dsec_list next_settings(struct dsec_list *cgroups)
{
	struct dsec_msg_cgroup cgroup;
	struct dsec_bytes item;

	dsec_list_next(cgroups, &item);
	dsec_message_decode(&dsec_msg_cgroup, item, &cgroup);
	return cgroup.settings;
}

int cgroup_make(struct object *object, struct dsec_list cgroups, char step[STEP_BYTES_MAX])
{
	const struct place *life = &object->places[0];
	int err;

	snprintf(step, STEP_BYTES_MAX, "cgroup:%s", life->hierarchy->name);
	/* One that is there already may hold processes that nobody knows of. */
	if (mkdirat(life->hierarchy->directory, life->directory, 0755))
		return -errno;
	err = cgroup_write(life, next_settings(&cgroups), step);
	if (err)
		return err;
	strcpy(step, "cgroup:watch");
	object->oom_kills_before = cgroup_oom_kills(object);
	return cgroup_watch(object);
}

int cgroup_furnish(const struct object *object, struct dsec_list cgroups, char step[STEP_BYTES_MAX])
{
	int err = 0;

	next_settings(&cgroups);
	for (int i = 1; i < object->place_count && !err; i++) {
		const struct place *place = &object->places[i];

		snprintf(step, STEP_BYTES_MAX, "cgroup:%s", place->hierarchy->name);
		if (mkdirat(place->hierarchy->directory, place->directory, 0755) && errno != EEXIST)
			return -errno;
		err = cgroup_write(place, next_settings(&cgroups), step);
	}
	return err;
}

int cgroup_join(const struct object *object, const char *pid, char step[STEP_BYTES_MAX])
{
	int err = 0;

	for (int i = 1; i < object->place_count && !err; i++) {
		const struct place *place = &object->places[i];
		char path[sizeof(place->directory) + 16];

		snprintf(step, STEP_BYTES_MAX, "cgroup:%s", place->hierarchy->name);
		snprintf(path, sizeof(path), "%s/cgroup.procs", place->directory);
		err = write_file(place->hierarchy->directory, path, pid, strlen(pid));
	}
	return err;
}

int cgroup_open_life(const char *key)
{
	int fd = openat(host.hierarchies[0].directory, key, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Some changes were lost: each object may be one that has ended. */
static void check_all(void)
{
	struct object **objects;
	int count = object_sorted(&objects);

	/* Without memory the next change of an object tells, or the edge that asks for it. */
	if (count < 0)
		return;
	for (int i = 0; i < count; i++)
		events_changed(objects[i]);
	free(objects);
}

static void inotify_ready(struct watch *watch, uint32_t events)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t length;

	(void)events;
	length = read(watch->fd, buffer, sizeof(buffer));
	for (ssize_t at = 0; at < length;) {
		const struct inotify_event *event = (const void *)(buffer + at);
		struct object *object = object_of_watch(event->wd);

		at += (ssize_t)(sizeof(*event) + event->len);
		if (event->mask & IN_Q_OVERFLOW)
			check_all();
		if (object && (event->mask & IN_MODIFY))
			events_changed(object);
	}
}

int cgroup_watch_init(void (*changed)(struct object *object))
{
	events_changed = changed;
	inotify.ready = inotify_ready;
	inotify.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return inotify.fd < 0 ? -errno : watch_add(&inotify, EPOLLIN);
}

int cgroup_watch(struct object *object)
{
	char path[KEY_BYTES_MAX + 16];
	int watch;

	if (object->watch >= 0)
		return 0;
	snprintf(path, sizeof(path), "%s/cgroup.events", object->key);
	if (fchdir(host.hierarchies[0].directory))
		return -errno;
	watch = inotify_add_watch(inotify.fd, path, IN_MODIFY);
	if (watch < 0)
		return -errno;
	object_set_watch(object, watch);
	return chdir("/") ? -errno : 0;
}

void cgroup_unwatch(struct object *object)
{
	if (object->watch >= 0)
		inotify_rm_watch(inotify.fd, object->watch);
	object_forget_watch(object);
}

/* The number behind `key ` at the start of some line, 0 without. */
static uint64_t number_of(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, length) && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
		if (!*line)
			break;
	}
	return 0;
}

int cgroup_populated(const char *key)
{
	char path[KEY_BYTES_MAX + 16], text[FILE_BYTES_MAX];
	int length;

	snprintf(path, sizeof(path), "%s/cgroup.events", key);
	length = read_file(host.hierarchies[0].directory, path, text);
	if (length < 0)
		return length == -ENODEV ? -ENOENT : length;
	return number_of(text, "populated") != 0;
}

static bool is_told_to_freeze(const struct object *object)
{
	char path[KEY_BYTES_MAX + 16], text[FILE_BYTES_MAX];

	snprintf(path, sizeof(path), "%s/cgroup.freeze", object->key);
	return read_file(host.hierarchies[0].directory, path, text) > 0 && text[0] == '1';
}

void cgroup_note_frozen(struct object *object, struct dsec_list settings)
{
	static const char freeze[] = "cgroup.freeze";
	struct dsec_bytes item;

	while (dsec_list_next(&settings, &item)) {
		struct dsec_msg_assignment setting;

		dsec_message_decode(&dsec_msg_assignment, item, &setting);
		if (setting.name.length == strlen(freeze) &&
		    !memcmp(setting.name.data, freeze, setting.name.length))
			object->frozen = setting.value.length > 0 && setting.value.data[0] == '1';
	}
}

void cgroup_find_frozen(struct object *object)
{
	object->frozen = is_told_to_freeze(object);
}

void cgroup_keep_frozen(const struct object *object)
{
	char path[KEY_BYTES_MAX + 16];

	if (is_told_to_freeze(object) == object->frozen)
		return;
	snprintf(path, sizeof(path), "%s/cgroup.freeze", object->key);
	/* Where that fails the next change is another occasion, and recovery the last. */
	write_file(host.hierarchies[0].directory, path, object->frozen ? "1" : "0", 1);
}

int cgroup_kill(const char *key)
{
	char path[KEY_BYTES_MAX + 16];

	snprintf(path, sizeof(path), "%s/cgroup.kill", key);
	return write_file(host.hierarchies[0].directory, path, "1", 1);
}

int cgroup_remove(const char *key)
{
	for (int i = host.hierarchy_count - 1; i >= 0; i--) {
		if (unlinkat(host.hierarchies[i].directory, key, AT_REMOVEDIR) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

uint64_t cgroup_oom_kills(const struct object *object)
{
	uint64_t kills = 0;

	for (int i = 0; i < object->place_count; i++) {
		const struct place *place = &object->places[i];
		bool version_2 = place->hierarchy == host.hierarchies;
		char path[sizeof(place->directory) + 32], text[FILE_BYTES_MAX];

		if (!version_2 && strcmp(place->hierarchy->name, "memory"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", place->directory,
			 version_2 ? "memory.events" : "memory.oom_control");
		if (read_file(place->hierarchy->directory, path, text) > 0)
			kills += number_of(text, "oom_kill");
	}
	return kills;
}
