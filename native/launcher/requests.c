#include "requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup.h"
#include "host.h"
#include "layers.h"
#include "lifecycle.h"
#include "object.h"
#include "remount.h"
#include "router.h"
#include "settings.h"
#include "spec.h"

enum {
	LIST_ITEMS_MAX = 512,
	LIST_BYTES_MAX = 60 * 1024,
};

union message {
	struct dsec_msg_spawn spawn;
	struct dsec_msg_adopt adopt;
	struct dsec_msg_kill kill;
	struct dsec_msg_release release;
	struct dsec_msg_list list;
	struct dsec_msg_layer_mount layer_mount;
	struct dsec_msg_layer_unmount layer_unmount;
	struct dsec_msg_layer_list layer_list;
	struct dsec_msg_cgroup_write cgroup_write;
	struct dsec_msg_router router;
	struct dsec_msg_remount remount;
};

static int put_object(struct dsec_msg_listed *message, uint8_t *buffer, const struct object *object)
{
	struct dsec_msg_listed_object item = {
		OBJECT_KEY_FIELDS(object),
		.pid = (uint32_t)object->pid,
		.start_ticks = object->start_ticks,
		.exit_code = object->exit.code,
		.signal = object->exit.signal,
		.oom_killed = object->exit.oom_killed,
		.running = object->state != OBJECT_ENDED,
	};

	if (object->exit.has_code)
		item.present |= DSEC_LISTED_OBJECT_HAS_EXIT_CODE;
	if (object->exit.has_signal)
		item.present |= DSEC_LISTED_OBJECT_HAS_SIGNAL;
	return dsec_list_put_message(&message->objects, buffer, LIST_BYTES_MAX,
				     &dsec_msg_listed_object, &item);
}

/* A page ends between names, never between two generations of one. */
static int page_end(struct object **objects, int count, int from, struct dsec_msg_listed *message,
		    uint8_t *buffer)
{
	int end = from;

	while (end < count && message->objects.count < LIST_ITEMS_MAX) {
		struct dsec_list before = message->objects;
		int next = end;

		while (next < count && !strcmp(objects[next]->name, objects[end]->name)) {
			if (objects[next]->pid && (message->objects.count == LIST_ITEMS_MAX ||
						   put_object(message, buffer, objects[next]))) {
				message->objects = before;
				return end;
			}
			next++;
		}
		end = next;
	}
	return end;
}

static void list(struct origin origin, const struct dsec_msg_list *request)
{
	static uint8_t buffer[LIST_BYTES_MAX];
	struct dsec_msg_listed message = { .more = false };
	struct object **objects;
	char after[NAME_BYTES_MAX + 1] = "";
	int count = object_sorted(&objects);
	struct failure failure;
	int from = 0;

	if (count < 0) {
		failure = failure_at("list", -count);
		link_fail(origin, &failure);
		return;
	}
	if (request->present & DSEC_LIST_HAS_AFTER)
		memcpy(after, request->after.data, request->after.length);
	while (from < count && strcmp(objects[from]->name, after) <= 0)
		from++;
	message.more = page_end(objects, count, from, &message, buffer) < count;
	free(objects);
	link_answer(origin, DSEC_LAUNCHER_LISTED, &message);
}

static bool may_write(struct dsec_list settings)
{
	struct dsec_bytes item;

	while (dsec_list_next(&settings, &item)) {
		struct dsec_msg_assignment setting;

		dsec_message_decode(&dsec_msg_assignment, item, &setting);
		if (!cgroup_is_setting(setting.name))
			return false;
	}
	return true;
}

static void cgroup_settings(struct origin origin, const struct dsec_msg_cgroup_write *request)
{
	struct failure failure =
		failure_of(DSEC_ERROR_NOT_FOUND, "no such object, or it has no such cgroup");
	char key[KEY_BYTES_MAX + 1], hierarchy[33];
	struct object *object =
		object_key(request->name, request->generation, key) ? NULL : object_find(key);
	const struct place *place = NULL;

	snprintf(hierarchy, sizeof(hierarchy), "%.*s", (int)request->hierarchy.length,
		 (const char *)request->hierarchy.data);
	if (object && !object->releasing)
		place = object_place(object, host_hierarchy(hierarchy));
	if (place && may_write(request->settings)) {
		if (place == object->places)
			cgroup_note_frozen(object, request->settings);
		settings_write(object, place, origin, request->settings);
		return;
	}
	if (place)
		failure = failure_of(DSEC_ERROR_PERMISSION_DENIED, "not a setting of a cgroup");
	link_fail(origin, &failure);
}

static void router(struct origin origin, const struct dsec_msg_router *request)
{
	int err = spec_is_address(request->gateway) ? router_need(request->gateway) : -EINVAL;
	struct failure failure;

	if (!err) {
		link_done(origin);
		return;
	}
	failure = failure_at("router", -err);
	link_fail(origin, &failure);
}

void request_handle(struct origin origin, const struct dsec_frame *frame)
{
	union message message;

	/* It was checked when the frame was decoded. */
	dsec_message_decode(frame->type->message, frame->payload, &message);
	switch (frame->type->code) {
	case DSEC_LAUNCHER_SPAWN:
		lifecycle_spawn(origin, &message.spawn);
		break;
	case DSEC_LAUNCHER_ADOPT:
		lifecycle_adopt(origin, &message.adopt);
		break;
	case DSEC_LAUNCHER_KILL:
		lifecycle_kill(origin, &message.kill);
		break;
	case DSEC_LAUNCHER_RELEASE:
		lifecycle_release(origin, &message.release);
		break;
	case DSEC_LAUNCHER_LIST:
		list(origin, &message.list);
		break;
	case DSEC_LAUNCHER_LAYER_MOUNT:
		layers_mount(origin, &message.layer_mount);
		break;
	case DSEC_LAUNCHER_LAYER_UNMOUNT:
		layers_unmount(origin, &message.layer_unmount);
		break;
	case DSEC_LAUNCHER_LAYER_LIST:
		layers_list(origin, &message.layer_list);
		break;
	case DSEC_LAUNCHER_REMOUNT:
		remount(origin, &message.remount);
		break;
	case DSEC_LAUNCHER_ROUTER:
		router(origin, &message.router);
		break;
	case DSEC_LAUNCHER_CGROUP_WRITE:
		cgroup_settings(origin, &message.cgroup_write);
		break;
	}
}
