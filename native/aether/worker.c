#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptors.h"
#include "failure.h"
#include "identity.h"
#include "kernel.h"
#include "platform.h"
#include "rules.h"

enum {
	PATH_BYTES_MAX = 4096,
};

struct worker_task worker_task;

static struct worker_packet packet;
static int root_fd = -1;

void worker_answer(uint8_t code, const void *message)
{
	const struct dsec_frame_type *type = dsec_frame_type(&dsec_aether_protocol, code);
	int length =
		dsec_message_encode(type->message, message, packet.payload, sizeof(packet.payload));

	packet.code = code;
	if (length < 0)
		_exit(1);
	/* aether reads it, or has cancelled the request. */
	_exit(send(worker_task.control, &packet, (size_t)length + 1, MSG_NOSIGNAL) < 0);
}

void worker_fail(int err, const char *what)
{
	const char *code = failure_code(-err);
	char text[256];
	struct dsec_msg_error error = {
		.code = { (const uint8_t *)code, (uint32_t)strlen(code) },
		.message.data = (const uint8_t *)text,
		.errno_value = -err,
		.present = DSEC_ERROR_HAS_ERRNO_VALUE,
	};

	snprintf(text, sizeof(text), "%s: %s", what, strerror(-err));
	error.message.length = (uint32_t)strlen(text);
	worker_answer(DSEC_AETHER_ERROR, &error);
}

void worker_wait(int fd, short events)
{
	struct pollfd polls[2] = {
		{ .fd = fd, .events = events },
		{ .fd = worker_task.control, .events = 0 },
	};

	while (poll(polls, 2, -1) < 0)
		;
	if (polls[1].revents)
		_exit(1);
}

int worker_write(int fd, const uint8_t *data, size_t length)
{
	while (length > 0) {
		ssize_t bytes = write(fd, data, length);

		if (bytes >= 0) {
			data += bytes;
			length -= (size_t)bytes;
		} else if (errno == EAGAIN) {
			worker_wait(fd, POLLOUT);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

bool worker_may_commit(uint64_t bytes)
{
	char word = 0;

	packet.code = WORKER_READY;
	memcpy(packet.payload, &bytes, sizeof(bytes));
	if (send(worker_task.control, &packet, 1 + sizeof(bytes), MSG_NOSIGNAL) < 0)
		return false;
	return recv(worker_task.control, &word, 1, 0) == 1 && word == WORKER_COMMIT;
}

static const char *terminated(struct dsec_bytes path)
{
	static char text[PATH_BYTES_MAX];

	memcpy(text, path.data, path.length);
	text[path.length] = 0;
	return text;
}

int worker_open(struct dsec_bytes path, uint64_t flags)
{
	struct kernel_open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT_BIT | RESOLVE_NO_MAGICLINKS_BIT,
	};
	int fd;

	/* A name that moves while it is looked up is looked up again. */
	do {
		fd = kernel_openat2(root_fd, terminated(path), &how);
	} while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : fd;
}

/* The path without the slashes at its end. */
static struct dsec_bytes trimmed(struct dsec_bytes path)
{
	while (path.length > 1 && path.data[path.length - 1] == '/')
		path.length--;
	return path;
}

struct dsec_bytes worker_last_name(struct dsec_bytes path)
{
	uint32_t at;

	path = trimmed(path);
	at = path.length;
	while (at > 0 && path.data[at - 1] != '/')
		at--;
	return (struct dsec_bytes){ path.data + at, path.length - at };
}

/* Makes each missing directory on the way to `path`, which is opened. */
static int open_or_make(struct dsec_bytes path)
{
	for (uint32_t at = 1; at <= path.length; at++) {
		struct dsec_bytes part = { path.data, at };
		struct dsec_bytes name;
		char text[256];
		int parent, err;

		if (at < path.length && path.data[at] != '/')
			continue;
		name = worker_last_name(part);
		parent = worker_open(part, O_PATH | O_DIRECTORY);
		if (parent >= 0) {
			close(parent);
			continue;
		}
		if (parent != -ENOENT)
			return parent;
		parent = worker_open_parent(part, false, text);
		if (parent < 0)
			return parent;
		err = mkdirat(parent, text, 0755) && errno != EEXIST ? -errno : 0;
		close(parent);
		if (err || name.length == 0)
			return err ? err : -EINVAL;
	}
	return worker_open(path, O_PATH | O_DIRECTORY);
}

int worker_open_parent(struct dsec_bytes path, bool create, char name[256])
{
	static const uint8_t root[] = { '/' };
	struct dsec_bytes last = worker_last_name(path);
	struct dsec_bytes parent = { path.data, trimmed(path).length - last.length };

	if (last.length == 0 || (last.length == 1 && last.data[0] == '.') ||
	    (last.length == 2 && last.data[0] == '.' && last.data[1] == '.'))
		return -EINVAL;
	if (last.length > 255)
		return -ENAMETOOLONG;
	memcpy(name, last.data, last.length);
	name[last.length] = 0;
	if (parent.length == 0)
		parent = (struct dsec_bytes){ root, 1 };
	return create ? open_or_make(parent) : worker_open(parent, O_PATH | O_DIRECTORY);
}

/* Any request's message; the user is at a place of its own in each. */
union message {
	struct dsec_msg_file_read file_read;
	struct dsec_msg_file_write file_write;
	struct dsec_msg_file_stat file_stat;
	struct dsec_msg_file_list file_list;
	struct dsec_msg_file_mkdir file_mkdir;
	struct dsec_msg_file_move file_move;
	struct dsec_msg_file_remove file_remove;
	struct dsec_msg_port_open port_open;
};

static struct dsec_bytes user_of(uint8_t code, const union message *message)
{
	switch (code) {
	case DSEC_AETHER_FILE_READ:
		return message->file_read.user;
	case DSEC_AETHER_FILE_WRITE:
		return message->file_write.user;
	case DSEC_AETHER_FILE_STAT:
		return message->file_stat.user;
	case DSEC_AETHER_FILE_LIST:
		return message->file_list.user;
	case DSEC_AETHER_FILE_MKDIR:
		return message->file_mkdir.user;
	case DSEC_AETHER_FILE_MOVE:
		return message->file_move.user;
	case DSEC_AETHER_FILE_REMOVE:
		return message->file_remove.user;
	default:
		return (struct dsec_bytes){ 0 };
	}
}

static void act(uint8_t code, const union message *message)
{
	switch (code) {
	case DSEC_AETHER_FILE_READ:
		worker_read(&message->file_read);
		break;
	case DSEC_AETHER_FILE_WRITE:
		worker_write_file(&message->file_write);
		break;
	case DSEC_AETHER_FILE_STAT:
		worker_stat(&message->file_stat);
		break;
	case DSEC_AETHER_FILE_LIST:
		worker_list(&message->file_list);
		break;
	case DSEC_AETHER_FILE_MKDIR:
		worker_mkdir(&message->file_mkdir);
		break;
	case DSEC_AETHER_FILE_MOVE:
		worker_move(&message->file_move);
		break;
	case DSEC_AETHER_FILE_REMOVE:
		worker_remove(&message->file_remove);
		break;
	default:
		worker_port(&message->port_open);
		break;
	}
}

static int yield_memory(void)
{
	int score = identity_open_score();
	int err = score < 0 ? score : identity_yield_memory(score, YIELD_KEEPER);

	if (score >= 0)
		close(score);
	return err;
}

void worker_run(const struct worker_task *task)
{
	int kept[] = { task->control, task->input, task->output, task->raw,
		       session_ids.namespace_fd };
	struct account account;
	union message message;
	int err;

	worker_task = *task;
	err = yield_memory();
	if (err)
		worker_fail(err, "its place when memory is short");
	prctl(PR_SET_NAME, "aether-worker", 0, 0, 0);
	dsec_message_decode(dsec_frame_type(&dsec_aether_protocol, task->code)->message,
			    task->payload, &message);
	err = descriptors_keep(kept, sizeof(kept) / sizeof(kept[0]));
	if (!err)
		err = identity_find(user_of(task->code, &message), false, &account);
	if (err)
		worker_fail(err, "no such user or group");
	err = identity_assume(&account);
	if (err)
		worker_fail(err, "change of user");
	err = rules_confine();
	if (err)
		worker_fail(err, "rules of the policy");
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		worker_fail(-errno, "root directory");
	umask(022);
	act(task->code, &message);
	_exit(1);
}
