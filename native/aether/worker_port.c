/* The worker that connects to a port of the sandbox's loopback and carries bytes both ways. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker.h"

enum {
	BUFFER_BYTES = 64 * 1024,
};

/* One direction. */
struct flow {
	int from;
	int to;
	bool is_open;
	uint32_t used;
	uint32_t at;
	uint8_t bytes[BUFFER_BYTES];
};

static struct flow flows[2];
static uint64_t total;

static int connect_to(const struct sockaddr *address, socklen_t length)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = sizeof(int);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, address, length)) {
		if (errno != EINPROGRESS) {
			err = -errno;
		} else {
			worker_wait(fd, POLLOUT);
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
			err = -err;
		}
	}
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Loopback only, never an address from outside. */
static int connect_loopback(uint16_t port)
{
	struct sockaddr_in four = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	int fd = connect_to((const struct sockaddr *)&four, sizeof(four));
	int other;

	if (fd != -ECONNREFUSED)
		return fd;
	other = connect_to((const struct sockaddr *)&six, sizeof(six));
	return other < 0 ? fd : other;
}

static void end_flow(struct flow *flow)
{
	flow->is_open = false;
	/* Of a socket one direction ends; a pipe ends as a whole. */
	if (shutdown(flow->to, SHUT_WR))
		close(flow->to);
}

/* Returns 0 or a negative errno. */
static int move(struct flow *flow, short ready)
{
	ssize_t bytes;

	if (flow->at == flow->used) {
		if (!(ready & (POLLIN | POLLHUP | POLLERR)))
			return 0;
		bytes = read(flow->from, flow->bytes, sizeof(flow->bytes));
		if (bytes == 0)
			end_flow(flow);
		if (bytes <= 0)
			return bytes == 0 || errno == EAGAIN || errno == EINTR ? 0 : -errno;
		flow->at = 0;
		flow->used = (uint32_t)bytes;
	}
	bytes = write(flow->to, flow->bytes + flow->at, flow->used - flow->at);
	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	flow->at += (uint32_t)bytes;
	total += (uint64_t)bytes;
	return 0;
}

static int relay(void)
{
	while (flows[0].is_open || flows[1].is_open) {
		struct pollfd polls[3] = { [2] = { .fd = worker_task.control } };

		for (int i = 0; i < 2; i++) {
			bool full = flows[i].at < flows[i].used;

			polls[i].fd = !flows[i].is_open ? -1 : full ? flows[i].to : flows[i].from;
			polls[i].events = full ? POLLOUT : POLLIN;
		}
		if (poll(polls, 3, -1) < 0)
			continue;
		if (polls[2].revents)
			_exit(1);
		for (int i = 0; i < 2; i++) {
			int err = polls[i].revents ? move(&flows[i], polls[i].revents) : 0;

			if (err)
				return err;
		}
	}
	return 0;
}

void worker_port(const struct dsec_msg_port_open *message)
{
	struct dsec_msg_done done = { .present = DSEC_DONE_HAS_BYTES };
	int raw = worker_task.raw;
	int fd = connect_loopback(message->port);
	int err;

	if (fd < 0)
		worker_fail(fd, "connect");
	flows[0].from = raw >= 0 ? raw : worker_task.input;
	flows[0].to = fd;
	flows[1].from = fd;
	flows[1].to = raw >= 0 ? raw : worker_task.output;
	flows[0].is_open = flows[1].is_open = true;
	err = relay();
	if (err)
		worker_fail(err, "port");
	done.bytes = total;
	worker_answer(DSEC_AETHER_DONE, &done);
}
