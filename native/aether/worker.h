/*
 * Workers: short-lived children that do one file or port request as the session's user. They
 * allocate nothing; their memory is static and untouched in aether.
 */
#ifndef AETHER_WORKER_H
#define AETHER_WORKER_H

#include "frame.h"

struct worker_task {
	uint8_t code; /* of the request's frame */
	struct dsec_bytes payload;
	int control;
	/* Pipes, or -1; all bytes go through `raw` where there is one. None of them blocks. */
	int input;
	int output;
	int raw;
};

enum {
	/*
	 * In place of a frame's code: the bytes of a file have ended. Their number follows, a
	 * uint64_t. The file gets its name with aether's word.
	 */
	WORKER_READY = 0xff,
	/* aether's answer. */
	WORKER_COMMIT = 'c',
};

/* From the worker to aether: the answer's frame. */
struct worker_packet {
	uint8_t code;
	uint8_t payload[DSEC_FRAME_DATA_BYTES_MAX];
};

_Noreturn void worker_run(const struct worker_task *task);

/* Of the worker's parts: */

extern struct worker_task worker_task;

/* Ends with an answer, or with the error of a negative errno. */
_Noreturn void worker_answer(uint8_t code, const void *message);
_Noreturn void worker_fail(int err, const char *what);
/* Waits until `fd` is ready; ends the worker when the request was cancelled. */
void worker_wait(int fd, short events);
/* Writes all of it to a descriptor that does not block. Returns 0 or a negative errno. */
int worker_write(int fd, const uint8_t *data, size_t length);
/* Says how many bytes came and waits for the word. Returns false when it never comes. */
bool worker_may_commit(uint64_t bytes);

/* Opens a path from the sandbox's root; see openat2(2). Returns a descriptor or a negative errno.
 */
int worker_open(struct dsec_bytes path, uint64_t flags);
/*
 * Opens the directory that holds the path's last name, and copies that name out. With `create`,
 * missing directories are made. Returns a descriptor or a negative errno.
 */
int worker_open_parent(struct dsec_bytes path, bool create, char name[256]);
struct dsec_bytes worker_last_name(struct dsec_bytes path);

void worker_read(const struct dsec_msg_file_read *message);
void worker_write_file(const struct dsec_msg_file_write *message);
void worker_stat(const struct dsec_msg_file_stat *message);
void worker_list(const struct dsec_msg_file_list *message);
void worker_mkdir(const struct dsec_msg_file_mkdir *message);
void worker_move(const struct dsec_msg_file_move *message);
void worker_remove(const struct dsec_msg_file_remove *message);
void worker_port(const struct dsec_msg_port_open *message);

#endif
