/* Workers that carry a file's bytes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel.h"
#include "worker.h"

enum {
	CHUNK_BYTES = 64 * 1024,
	SENDFILE_BYTES = 1024 * 1024,
	MODE_DEFAULT = 0644,
	TEMPORARY_BYTES = 32,
};

static uint8_t chunk[CHUNK_BYTES];

/* Only regular files have a beginning and an end; -EINVAL for others. */
static int check_regular(int fd, struct stat *status)
{
	if (fstat(fd, status))
		return -errno;
	if (S_ISDIR(status->st_mode))
		return -EISDIR;
	return S_ISREG(status->st_mode) ? 0 : -EINVAL;
}

static uint64_t least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* Copies through memory, for files that the kernel cannot send itself. Returns bytes, 0 at the end.
 */
static ssize_t copy_some(int to, int from, off_t *offset, uint64_t left)
{
	ssize_t bytes = pread(from, chunk, (size_t)least(left, CHUNK_BYTES), *offset);
	int err;

	if (bytes <= 0)
		return bytes < 0 ? -errno : 0;
	*offset += bytes;
	err = worker_write(to, chunk, (size_t)bytes);
	return err ? err : bytes;
}

static ssize_t send_some(int to, int from, off_t *offset, uint64_t left)
{
	ssize_t bytes = sendfile(to, from, offset, (size_t)least(left, SENDFILE_BYTES));

	return bytes < 0 ? -errno : bytes;
}

void worker_read(const struct dsec_msg_file_read *message)
{
	uint64_t left = message->present & DSEC_FILE_READ_HAS_LENGTH_BYTES ? message->length_bytes
									   : INT64_MAX;
	int to = worker_task.raw >= 0 ? worker_task.raw : worker_task.output;
	int from = worker_open(message->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct dsec_msg_done done = { .present = DSEC_DONE_HAS_BYTES };
	off_t offset = (off_t)message->offset;
	bool sends = true;
	struct stat status;
	int err = from < 0 ? from : check_regular(from, &status);

	if (err)
		worker_fail(err, "read");
	if (worker_task.raw >= 0)
		shutdown(worker_task.raw, SHUT_RD);
	while (left > 0) {
		ssize_t bytes = sends ? send_some(to, from, &offset, left)
				      : copy_some(to, from, &offset, left);

		if (bytes == 0)
			break;
		if (bytes > 0) {
			done.bytes += (uint64_t)bytes;
			left -= (uint64_t)bytes;
		} else if (bytes == -EAGAIN) {
			worker_wait(to, POLLOUT);
		} else if (sends && (bytes == -EINVAL || bytes == -ENOSYS)) {
			sends = false;
		} else if (bytes != -EINTR) {
			worker_fail((int)bytes, "read");
		}
	}
	close(to);
	worker_answer(DSEC_AETHER_DONE, &done);
}

/* The directory and name that the path means, links followed, so that the link itself stays. */
static int open_target(const struct dsec_msg_file_write *message, char name[256], mode_t *mode)
{
	static char real[4096];
	char link[32];
	struct stat status;
	ssize_t length;
	int fd = worker_open(message->path, O_PATH);
	int err;

	*mode = MODE_DEFAULT;
	if (fd == -ENOENT)
		return worker_open_parent(message->path, message->create_parents, name);
	if (fd < 0)
		return fd;
	err = check_regular(fd, &status);
	if (!err && message->exclusive)
		err = -EEXIST;
	if (err)
		return err;
	*mode = status.st_mode & 0777;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, real, sizeof(real) - 1);
	close(fd);
	if (length <= 0)
		return worker_open_parent(message->path, false, name);
	return worker_open_parent((struct dsec_bytes){ (uint8_t *)real, (uint32_t)length }, false,
				  name);
}

static int make_temporary(int directory, char name[TEMPORARY_BYTES])
{
	uint64_t random;
	int fd;

	do {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		snprintf(name, TEMPORARY_BYTES, ".dsec-%016llx", (unsigned long long)random);
		fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			    0600);
	} while (fd < 0 && errno == EEXIST);
	return fd < 0 ? -errno : fd;
}

/* Copies the host's bytes until their end. Returns how many, or a negative errno. */
static int64_t take_bytes(int to)
{
	int from = worker_task.raw >= 0 ? worker_task.raw : worker_task.input;
	int64_t total = 0;

	for (;;) {
		ssize_t bytes = read(from, chunk, sizeof(chunk));
		int err;

		if (bytes == 0)
			return total;
		if (bytes < 0 && errno == EAGAIN) {
			struct pollfd polls[2] = {
				{ .fd = from, .events = POLLIN },
				{ .fd = worker_task.control, .events = 0 },
			};

			poll(polls, 2, -1);
			if (polls[1].revents)
				return -ECANCELED;
			continue;
		}
		if (bytes < 0 && errno != EINTR)
			return -errno;
		if (bytes < 0)
			continue;
		err = worker_write(to, chunk, (size_t)bytes);
		if (err)
			return err;
		total += bytes;
	}
}

void worker_write_file(const struct dsec_msg_file_write *message)
{
	struct dsec_msg_done done = { .present = DSEC_DONE_HAS_BYTES };
	char temporary[TEMPORARY_BYTES];
	char name[256];
	mode_t mode;
	int directory = open_target(message, name, &mode);
	int64_t bytes;
	int fd, err;

	if (directory < 0)
		worker_fail(directory, "write");
	if (message->present & DSEC_FILE_WRITE_HAS_MODE)
		mode = message->mode;
	fd = make_temporary(directory, temporary);
	if (fd < 0)
		worker_fail(fd, "write");
	if (worker_task.raw >= 0)
		shutdown(worker_task.raw, SHUT_WR);
	bytes = take_bytes(fd);
	err = bytes < 0 ? (int)bytes : 0;
	if (!err && fchmod(fd, mode))
		err = -errno;
	if (!err && !worker_may_commit((uint64_t)bytes))
		err = -ECANCELED;
	if (!err && syscall(SYS_renameat2, directory, temporary, directory, name,
			    message->exclusive ? RENAME_NOREPLACE : 0))
		err = -errno;
	if (err) {
		unlinkat(directory, temporary, 0);
		/* What it took of the disk is there again before the answer. */
		close(fd);
		worker_fail(err, "write");
	}
	done.bytes = (uint64_t)bytes;
	worker_answer(DSEC_AETHER_DONE, &done);
}
