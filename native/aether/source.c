#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "crash.h"
#include "outlet.h"
#include "stream.h"

enum {
	/* Linux gives a pipe so much, and one that fills it gets more: fewer turns for much output.
	 */
	PIPE_BYTES = 65536,
	PIPE_BYTES_WIDE = 512 * 1024,
};

static void end(struct source *source)
{
	struct outlet *outlet = source->outlet;

	if (!outlet)
		return;
	outlet->ended = true;
	source->outlet = NULL;
	source->cut = false;
	stream_mark_ready(source->stream);
	source->ended(source);
}

static void drop_bytes(struct source *source)
{
	static uint8_t scratch[16384];
	ssize_t bytes = read(source->watch.fd, scratch, sizeof(scratch));

	if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR))
		watch_close(&source->watch);
}

/* Shortens the pieces to `limit` bytes. */
static int shorten(struct iovec pieces[2], int count, uint64_t limit)
{
	for (int i = 0; i < count; i++) {
		if (pieces[i].iov_len >= limit) {
			pieces[i].iov_len = (size_t)limit;
			return i + 1;
		}
		limit -= pieces[i].iov_len;
	}
	return count;
}

static void on_ready(struct watch *watch, uint32_t events)
{
	struct source *source = container_of(watch, struct source, watch);
	struct iovec pieces[2];
	ssize_t bytes;
	int count;

	if (!source->outlet) {
		drop_bytes(source);
		return;
	}
	if ((events & EPOLLHUP) && !(events & EPOLLIN)) {
		watch_close(watch);
		end(source);
		return;
	}
	count = outlet_space(source->outlet, pieces);
	if (count == 0) {
		/* Full: the command waits, until the host acknowledges. */
		watch_set(watch, 0);
		return;
	}
	if (source->cut)
		count = shorten(pieces, count, source->cut_left);
	bytes = readv(watch->fd, pieces, count);
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		/* A terminal says EIO when its last user is gone. */
		watch_close(watch);
		end(source);
		return;
	}
	if (bytes >= PIPE_BYTES && !source->is_wide) {
		source->is_wide = true;
		/* A terminal, or a user beyond the share of pipe memory, keeps what it has. */
		fcntl(watch->fd, F_SETPIPE_SZ, PIPE_BYTES_WIDE);
	}
	outlet_add(source->outlet, (uint64_t)bytes);
	stream_mark_ready(source->stream);
	crash_point(CRASH_OUTPUT_TAKEN);
	if (source->cut) {
		source->cut_left -= (uint64_t)bytes;
		if (source->cut_left == 0)
			end(source);
	}
}

int source_open(struct source *source, int fd)
{
	source->watch = (struct watch){ .fd = fd, .ready = on_ready };
	return watch_set(&source->watch, EPOLLIN);
}

void source_resume(struct source *source)
{
	watch_set(&source->watch, EPOLLIN);
}

void source_cut(struct source *source)
{
	int waiting = 0;

	if (!source->outlet || source->cut)
		return;
	if (source->watch.fd >= 0 && ioctl(source->watch.fd, FIONREAD, &waiting))
		waiting = 0;
	source->cut = true;
	source->cut_left = (uint64_t)waiting;
	if (waiting == 0)
		end(source);
}

void source_close(struct source *source)
{
	watch_close(&source->watch);
	source->outlet = NULL;
}
