#include "layers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "layer-mount.h"
#include "worker.h"

enum {
	WORKERS_MAX = 16,
	PAGE_ITEMS_MAX = 512,
	PAGE_BYTES_MAX = 60 * 1024,
};

static int workers;

static bool are_hex(const uint8_t *text, uint32_t count)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < count; i++) {
		if (!memchr(digits, text[i], sizeof(digits) - 1))
			return false;
	}
	return true;
}

bool layer_name(struct dsec_bytes id, char name[LAYER_NAME_BYTES_MAX + 1])
{
	const uint8_t *text = id.data + LAYER_ID_PREFIX;
	uint32_t length = id.length - LAYER_ID_PREFIX;

	if (id.length < LAYER_ID_PREFIX + LAYER_DIGEST_BYTES ||
	    memcmp(id.data, "sha256:", LAYER_ID_PREFIX) || !are_hex(text, LAYER_DIGEST_BYTES))
		return false;
	if (length != LAYER_DIGEST_BYTES &&
	    (length != LAYER_NAME_BYTES_MAX || text[LAYER_DIGEST_BYTES] != '.' ||
	     !are_hex(text + LAYER_DIGEST_BYTES + 1, LAYER_MARK_BYTES - 1)))
		return false;
	memcpy(name, text, length);
	name[length] = '\0';
	return true;
}

static void layer_done(struct worker *worker)
{
	struct origin *origin = worker->context;
	struct failure failure = worker->failures[0];

	workers--;
	if (!worker->succeeded && !failure.code)
		failure = failure_of(DSEC_ERROR_INTERNAL, "the worker died");
	if (failure.code)
		link_fail(*origin, &failure);
	else
		link_done(*origin);
	free(origin);
}

static _Noreturn void work(const struct dsec_msg_layer_mount *message, const char *name, int report)
{
	const char *step = "layer";
	int err = message ? layer_mount(message, name, &step) : layer_unmount(name, &step);

	if (err)
		worker_fail(report, 0, step, -err);
	else
		worker_succeed(report);
	_exit(0);
}

/* Without a message the layer is unmounted. */
static int start(struct origin origin, const struct dsec_msg_layer_mount *message, const char *name)
{
	struct origin *kept = malloc(sizeof(*kept));
	struct worker *worker;
	int report;
	pid_t pid;

	if (!kept)
		return -ENOMEM;
	*kept = origin;
	worker = workers < WORKERS_MAX ? worker_new(layer_done, kept, 1, &report) : NULL;
	if (!worker) {
		free(kept);
		return -EAGAIN;
	}
	pid = fork();
	if (pid == 0)
		work(message, name, report);
	if (pid < 0) {
		int err = -errno;

		worker_drop(worker, report);
		free(kept);
		return err;
	}
	workers++;
	worker_start(worker, pid, report);
	return 0;
}

static void start_or_fail(struct origin origin, const struct dsec_msg_layer_mount *message,
			  struct dsec_bytes id)
{
	char name[LAYER_NAME_BYTES_MAX + 1];
	int err = layer_name(id, name) ? start(origin, message, name) : -EINVAL;
	struct failure failure;

	if (!err)
		return;
	failure = failure_at("layer", -err);
	link_fail(origin, &failure);
}

void layers_mount(struct origin origin, const struct dsec_msg_layer_mount *message)
{
	start_or_fail(origin, message, message->layer_id);
}

void layers_unmount(struct origin origin, const struct dsec_msg_layer_unmount *message)
{
	start_or_fail(origin, NULL, message->layer_id);
}

struct page {
	char names[PAGE_ITEMS_MAX + 1][LAYER_NAME_BYTES_MAX + 1]; /* the first of all, in order */
	int count;
};

static int compare(const void *left, const void *right)
{
	return strcmp(left, right);
}

/* Keeps the first that come after `after`, and one more to tell that there is another page. */
static void read_page(struct page *page, const char *after)
{
	DIR *layers = opendir("/layers");
	struct dirent *entry;

	while (layers && (entry = readdir(layers))) {
		char *place = page->names[page->count];

		if (strlen(entry->d_name) > LAYER_NAME_BYTES_MAX ||
		    strcmp(entry->d_name, after) <= 0 || !layer_is_mounted(entry->d_name))
			continue;
		if (page->count > PAGE_ITEMS_MAX) {
			qsort(page->names, (size_t)page->count, sizeof(page->names[0]), compare);
			place = page->names[PAGE_ITEMS_MAX];
			if (strcmp(entry->d_name, place) >= 0)
				continue;
			page->count--;
		}
		strcpy(place, entry->d_name);
		page->count++;
	}
	if (layers)
		closedir(layers);
	qsort(page->names, (size_t)page->count, sizeof(page->names[0]), compare);
}

static uint32_t count_users(const char *name)
{
	char path[LAYER_PATH_BYTES];
	struct dirent *entry;
	uint32_t users = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/layers/%s/users", name);
	directory = opendir(path);
	while (directory && (entry = readdir(directory)))
		users += entry->d_name[0] != '.';
	if (directory)
		closedir(directory);
	return users;
}

static void put_page(struct dsec_msg_layers_listed *message, struct page *page, uint8_t *buffer)
{
	for (int i = 0; i < page->count && i < PAGE_ITEMS_MAX; i++) {
		char id[LAYER_ID_PREFIX + LAYER_NAME_BYTES_MAX + 1];
		int length = snprintf(id, sizeof(id), "sha256:%s", page->names[i]);
		struct dsec_msg_mounted_layer layer = {
			.layer_id = { (const uint8_t *)id, (uint32_t)length },
			.users = count_users(page->names[i]),
		};

		if (dsec_list_put_message(&message->layers, buffer, PAGE_BYTES_MAX,
					  &dsec_msg_mounted_layer, &layer)) {
			message->more = true;
			return;
		}
	}
	message->more = page->count > PAGE_ITEMS_MAX;
}

void layers_list(struct origin origin, const struct dsec_msg_layer_list *message)
{
	static uint8_t buffer[PAGE_BYTES_MAX];
	static struct page page;
	struct dsec_msg_layers_listed listed = { .more = false };
	char after[LAYER_NAME_BYTES_MAX + 1] = "";
	struct failure failure;
	int err;

	if (message->present & DSEC_LAYER_LIST_HAS_AFTER && !layer_name(message->after, after))
		after[0] = '\0';
	memset(&page, 0, sizeof(page));
	err = host_visit();
	if (err) {
		failure = failure_at("layer-list", -err);
		link_fail(origin, &failure);
		return;
	}
	read_page(&page, after);
	put_page(&listed, &page, buffer);
	if (host_return())
		abort();
	link_answer(origin, DSEC_LAUNCHER_LAYERS_LISTED, &listed);
}
