#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "platform.h"
#include "rules.h"

enum {
	FILE_BYTES_MAX = 256 * 1024,
	CAPABILITY_VERSION_3 = 0x20080522,
	CAPABILITY_LAST = 63,
};

/*
 * CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, SETFCAP:
 * what Docker gives, less MKNOD, NET_RAW, SYS_CHROOT and AUDIT_WRITE.
 */
#define SESSION_CAPABILITIES UINT64_C(0x800005fb)

const struct account account_root = { .name = "root", .home = "/root", .shell = "/bin/sh" };

static uint8_t passwd_text[FILE_BYTES_MAX];
static uint8_t group_text[FILE_BYTES_MAX];

/*
 * The file may be anything that somebody inside could think of, so it is opened without waiting,
 * must be a regular one, and no more than its first part is read. A missing one is empty.
 */
static struct dsec_bytes read_file(const char *path, uint8_t *buffer)
{
	struct kernel_open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS_BIT,
	};
	struct dsec_bytes text = { buffer, 0 };
	int fd = kernel_openat2(AT_FDCWD, path, &how);
	struct stat status;
	ssize_t bytes;

	if (fd < 0)
		return text;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode)) {
		while (text.length < FILE_BYTES_MAX &&
		       (bytes = read(fd, buffer + text.length, FILE_BYTES_MAX - text.length)) > 0)
			text.length += (uint32_t)bytes;
	}
	close(fd);
	return text;
}

int identity_find(struct dsec_bytes user, bool whole, struct account *account)
{
	if (user.length == 0 && !whole) {
		*account = account_root;
		return 0;
	}
	if (user.length == 0)
		user = (struct dsec_bytes){ (const uint8_t *)"0", 1 };
	return account_find(read_file("/etc/passwd", passwd_text),
			    read_file("/etc/group", group_text), user, account);
}

uint32_t identity_outside(uint32_t inside)
{
	if (session_ids.namespace_fd < 0)
		return inside;
	return inside - session_ids.inside + session_ids.outside;
}

static int drop_bounding_set(uint64_t kept)
{
	for (int capability = 0; capability <= CAPABILITY_LAST; capability++) {
		if (kept >> capability & 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) {
			/* The first number that this kernel does not know. */
			if (errno == EINVAL)
				break;
			return -errno;
		}
	}
	return 0;
}

/* Leaves of the permitted capabilities those that are in `mask`. */
static int limit_capabilities(uint64_t mask)
{
	struct {
		uint32_t version;
		int32_t pid;
	} header = { CAPABILITY_VERSION_3, 0 };
	struct {
		uint32_t effective, permitted, inheritable;
	} sets[2];

	if (syscall(SYS_capget, &header, sets))
		return -errno;
	for (int i = 0; i < 2; i++) {
		sets[i].permitted &= (uint32_t)(mask >> (32 * i));
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, sets) ? -errno : 0;
}

int identity_open_score(void)
{
	int fd;

	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return -errno;
	fd = openat(proc_fd, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : fd;
}

int identity_yield_memory(int score_fd, const char *score)
{
	return write(score_fd, score, strlen(score)) < 0 ? -errno : 0;
}

int identity_assume(const struct account *account)
{
	const uint64_t kept = SESSION_CAPABILITIES & rules_capabilities();
	gid_t groups[ACCOUNT_GROUPS_MAX];
	int err;

	if (session_ids.namespace_fd >= 0 && setns(session_ids.namespace_fd, CLONE_NEWUSER))
		return -errno;
	err = drop_bounding_set(kept);
	if (err)
		return err;
	for (uint32_t i = 0; i < account->group_count; i++)
		groups[i] = account->groups[i];
	/*
	 * The plain calls: musl's setgroups and set*id functions walk the list of threads, which a
	 * child that shares nothing with its parent has no need of.
	 */
	if (syscall(SYS_setgroups, (size_t)account->group_count, groups) ||
	    syscall(SYS_setresgid, account->gid, account->gid, account->gid) ||
	    syscall(SYS_setresuid, account->uid, account->uid, account->uid))
		return -errno;
	err = limit_capabilities(account->uid == 0 ? kept : 0);
	if (err)
		return err;
	/* A change of ids resets it to the system's default. */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0;
}
