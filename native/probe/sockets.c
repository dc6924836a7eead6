/* Families and options of sockets that reach kernel code which no job needs. */
#include "probe.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
	const char *name;
	int family, type, protocol;
} sockets[] = {
	{ "alg", 38, SOCK_SEQPACKET, 0 },
	{ "packet", 17, SOCK_RAW, 0x300 },
	{ "packet-dgram", 17, SOCK_DGRAM, 0x300 },
	{ "key", 15, SOCK_RAW, 2 },
	{ "rxrpc", 33, SOCK_DGRAM, 2 },
	{ "vsock", 40, SOCK_STREAM, 0 },
	{ "raw4", 2, SOCK_RAW, 1 },
	{ "raw6", 10, SOCK_RAW, 58 },
	{ "raw4-any", 2, SOCK_RAW, 255 },
	{ "xfrm", 16, SOCK_RAW, 6 },
	{ "netfilter", 16, SOCK_RAW, 12 },
	{ "generic", 16, SOCK_RAW, 16 },
	{ "crypto", 16, SOCK_RAW, 21 },
	{ "connector", 16, SOCK_RAW, 11 },
	{ "rdma", 16, SOCK_RAW, 20 },
	{ "xdp", 44, SOCK_RAW, 0 },
	{ "bluetooth", 31, SOCK_RAW, 0 },
	{ "can", 29, SOCK_RAW, 1 },
	{ "tipc", 30, SOCK_DGRAM, 0 },
	{ "smc", 43, SOCK_STREAM, 0 },
	{ "kcm", 41, SOCK_DGRAM, 0 },
	{ "qipcrtr", 42, SOCK_DGRAM, 0 },
	{ "mctp", 45, SOCK_DGRAM, 0 },
	{ "sctp", 2, SOCK_SEQPACKET, 132 },
	{ "dccp", 2, 6, 33 },
	{ "unix", 1, SOCK_STREAM, 0 },
	{ "tcp", 2, SOCK_STREAM, 0 },
	{ "route", 16, SOCK_RAW, 0 },
};

static void try_option(const char *name, int type, int level, int option, const void *value,
		       socklen_t length)
{
	int fd = socket(AF_INET, type, 0);

	report(setsockopt(fd, level, option, value, length), "%s", name);
	close(fd);
}

int run_sockets(int argc, char **argv)
{
	int on = 1, encapsulation = 2;

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		int fd = socket(sockets[i].family, sockets[i].type, sockets[i].protocol);

		report(fd, "socket-%s", sockets[i].name);
		close(fd);
	}
	try_option("tcp-ulp", SOCK_STREAM, 6, 31, "tls", 3);
	try_option("udp-encap", SOCK_DGRAM, 17, 100, &encapsulation, sizeof(encapsulation));
	try_option("zero-copy", SOCK_STREAM, 1, 60, &on, sizeof(on));
	try_option("mark", SOCK_STREAM, 1, 36, &on, sizeof(on));
	try_option("force-buffer", SOCK_STREAM, 1, 33, &on, sizeof(on));
	return 0;
}
