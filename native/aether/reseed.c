#include "reseed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "failure.h"
#include "link.h"

enum {
	ENTROPY_BYTES_MAX = 512,
	MACHINE_ID_BYTES = 16,
};

/* linux/random.h: adds to the pool and counts it; then the generator takes from the pool at once.
 */
#define RANDOM_ADD_ENTROPY _IOW('R', 0x03, int[2])
#define RANDOM_RESEED	   _IO('R', 0x07)

static int mix_entropy(const struct dsec_msg_reseed *message)
{
	struct {
		int bits;
		int bytes;
		uint8_t data[ENTROPY_BYTES_MAX];
	} pool = { (int)message->entropy.length * 8, (int)message->entropy.length, { 0 } };
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC | O_NOCTTY);
	int err = 0;

	if (fd < 0)
		return -errno;
	memcpy(pool.data, message->entropy.data, message->entropy.length);
	if (ioctl(fd, RANDOM_ADD_ENTROPY, &pool) || ioctl(fd, RANDOM_RESEED))
		err = -errno;
	close(fd);
	return err;
}

static int set_clock(const struct dsec_msg_reseed *message)
{
	struct timespec now = {
		.tv_sec = (time_t)(message->wall_ms / 1000),
		.tv_nsec = (long)(message->wall_ms % 1000) * 1000000,
	};

	if (!(message->present & DSEC_RESEED_HAS_WALL_MS))
		return 0;
	return clock_settime(CLOCK_REALTIME, &now) ? -errno : 0;
}

static int set_hostname(const struct dsec_msg_reseed *message)
{
	if (!(message->present & DSEC_RESEED_HAS_HOSTNAME))
		return 0;
	return sethostname((const char *)message->hostname.data, message->hostname.length) ? -errno
											   : 0;
}

static int set_machine_id(const struct dsec_msg_reseed *message)
{
	char text[2 * MACHINE_ID_BYTES + 2];
	int err = 0;
	int fd;

	if (!(message->present & DSEC_RESEED_HAS_MACHINE_ID))
		return 0;
	for (int i = 0; i < MACHINE_ID_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", message->machine_id.data[i]);
	text[2 * MACHINE_ID_BYTES] = '\n';
	/* Written beside and renamed: what lies there may be a link to anywhere. */
	unlink("/etc/.dsec-machine-id");
	fd = open("/etc/.dsec-machine-id", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	if (write(fd, text, 2 * MACHINE_ID_BYTES + 1) != 2 * MACHINE_ID_BYTES + 1)
		err = -EIO;
	close(fd);
	if (!err && rename("/etc/.dsec-machine-id", "/etc/machine-id"))
		err = -errno;
	return err;
}

static const struct {
	const char *name;
	int (*run)(const struct dsec_msg_reseed *message);
} steps[] = {
	{ "random pool", mix_entropy },
	{ "clock", set_clock },
	{ "hostname", set_hostname },
	{ "machine id", set_machine_id },
};

int reseed(const struct dsec_frame *frame)
{
	struct dsec_msg_reseed message;

	dsec_message_decode(frame->type->message, frame->payload, &message);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		char text[256];
		int err = steps[i].run(&message);

		if (!err)
			continue;
		snprintf(text, sizeof(text), "reseed: %s: %s", steps[i].name, strerror(-err));
		link_put_error(0, failure_code(-err), -err, text);
		return -ECONNABORTED;
	}
	link_put(DSEC_AETHER_RESEEDED, 0, &(struct dsec_msg_empty){ 0 });
	return 0;
}
