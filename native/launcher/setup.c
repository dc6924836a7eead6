#include "setup.h"

#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "kernel.h"
#include "place.h"
#include "spec.h"
#include "worker.h"

#define KEYCTL_JOIN_SESSION_KEYRING 1
#define SECCOMP_SET_MODE_FILTER	    1

enum {
	OWN_FD_MIN = 64, /* clear of those that aether is given */
	LISTENER_FD = 3,
	SESSION_NAMESPACE_FD = 4,
};

void setup_step(struct setup *setup, const char *kind, struct dsec_bytes name)
{
	snprintf(setup->step, sizeof(setup->step), "%s:%.*s", kind, (int)name.length,
		 (const char *)name.data);
}

/* The launcher blocks some signals and ignores others; aether decides for itself. */
static int signals(struct setup *setup)
{
	sigset_t none;

	(void)setup;
	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	return sigprocmask(SIG_SETMASK, &none, NULL) ? -errno : 0;
}

static int network(struct setup *setup)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	AUTO_CLOSE fd = -1;

	(void)setup;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) ? -errno : 0;
}

static int write_text(int directory, const char *path, const void *text, size_t length)
{
	AUTO_CLOSE fd = openat(directory, path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, length) < 0 ? -errno : 0;
}

/*
 * In the launcher's procfs the entries of all sandboxes would lie in one chain, to be searched by
 * each lookup; but a procfs of processes alone has none.
 */
int setup_sysctl(struct setup *setup, const char *path, const void *value, size_t length)
{
	int err = write_text(setup->proc, path, value, length);

	return err == -ENOENT ? write_text(host.proc, path, value, length) : err;
}

static int sysctls(struct setup *setup)
{
	struct dsec_list sysctls = setup->spec->sysctls;
	struct dsec_bytes item;

	while (dsec_list_next(&sysctls, &item)) {
		struct dsec_msg_assignment sysctl;
		char path[256];
		int err;

		dsec_message_decode(&dsec_msg_assignment, item, &sysctl);
		setup_step(setup, "sysctl", sysctl.name);
		snprintf(path, sizeof(path), "sys/%.*s", (int)sysctl.name.length,
			 (const char *)sysctl.name.data);
		for (char *at = path; *at; at++)
			*at = *at == '.' ? '/' : *at;
		err = setup_sysctl(setup, path, sysctl.value.data, sysctl.value.length);
		if (err)
			return err;
	}
	return 0;
}

static int hostname(struct setup *setup)
{
	struct dsec_bytes name = setup->spec->hostname;

	if (!(setup->spec->present & DSEC_SPAWN_HAS_HOSTNAME))
		name = (struct dsec_bytes){ (const uint8_t *)"sandbox", 7 };
	return sethostname((const char *)name.data, name.length) ? -errno : 0;
}

/*
 * PID 1 is spared, as with it the whole sandbox ends; what it starts gives itself a score of its
 * own. A launcher that may not (without CAP_SYS_RESOURCE) leaves it the score of the spec, and so
 * does a kernel without the older file. That one alone leaves the lowest score that others may go
 * back to where it was: at the spec's, so that nothing inside can spare itself.
 */
static int oom_score(struct setup *setup)
{
	static const char never[] = "-17";
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", setup->spec->oom_score_adj);
	int err = write_text(AT_FDCWD, "/proc/self/oom_score_adj", text, (size_t)length);

	if (!err)
		(void)write_text(AT_FDCWD, "/proc/self/oom_adj", never, sizeof(never) - 1);
	return err;
}

static int rlimits(struct setup *setup)
{
	struct dsec_list rlimits = setup->spec->rlimits;
	struct dsec_bytes item;

	while (dsec_list_next(&rlimits, &item)) {
		struct dsec_msg_rlimit rlimit;
		struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

		dsec_message_decode(&dsec_msg_rlimit, item, &rlimit);
		if (rlimit.present & DSEC_RLIMIT_HAS_SOFT)
			limit.rlim_cur = rlimit.soft;
		if (rlimit.present & DSEC_RLIMIT_HAS_HARD)
			limit.rlim_max = rlimit.hard;
		if (setrlimit(rlimit.resource, &limit))
			return -errno;
	}
	return 0;
}

/* Sessions start with the same. */
static int processors(struct setup *setup)
{
	struct dsec_bytes cpus = setup->spec->cpus;

	if (!(setup->spec->present & DSEC_SPAWN_HAS_CPUS))
		return 0;
	return syscall(SYS_sched_setaffinity, 0, (size_t)cpus.length, cpus.data) < 0 ? -errno : 0;
}

static int own_descriptors(struct setup *setup)
{
	setup->null = open(HOST_DEV "/null", O_RDWR | O_CLOEXEC);
	setup->home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return setup->null < 0 || setup->home < 0 ? -errno : 0;
}

/* From here on nothing of the host is in sight; what the launcher had goes with the old root. */
static int pivot(struct setup *setup)
{
	int err;

	if (fchdir(setup->root))
		return -errno;
	err = kernel_pivot_root(".", ".");
	if (err)
		return err;
	return umount2(".", MNT_DETACH) || chdir("/") ? -errno : 0;
}

static int keyring(struct setup *setup)
{
	(void)setup;
	return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ? -errno : 0;
}

/* A copy high enough not to be in the way of the descriptors that aether is given. */
static int lift(int *fd)
{
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, OWN_FD_MIN);
	return *fd < 0 ? -errno : 0;
}

/* All others are closed by the exec, by this range and not by their flags. */
static int descriptors(struct setup *setup)
{
	const struct {
		int from, to;
	} given[] = {
		{ setup->null, 0 },
		{ setup->null, 1 },
		{ setup->null, 2 },
		{ setup->listener, LISTENER_FD },
		{ setup->session_namespace, SESSION_NAMESPACE_FD },
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		if (dup2(given[i].from, given[i].to) < 0)
			return -errno;
	}
	return kernel_close_range(SESSION_NAMESPACE_FD + 1, ~0u, KERNEL_CLOSE_RANGE_CLOEXEC);
}

static int lift_descriptors(struct setup *setup)
{
	int *own[] = { &setup->null, &setup->listener, &setup->session_namespace, &setup->report,
		       &host.aether };
	int err = 0;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && !err; i++)
		err = lift(own[i]);
	return err;
}

/* Before the capabilities go: without no_new_privs a filter needs one. */
static int seccomp(struct setup *setup)
{
	struct {
		unsigned short length;
		const void *instructions;
	} program = { (unsigned short)(setup->spec->seccomp.length / 8),
		      setup->spec->seccomp.data };

	if (setup->spec->no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}

static const struct {
	const char *name;
	int (*run)(struct setup *setup);
} steps[] = {
	{ "signals", signals },
	/* Before anything shares memory with it: the kernel would look through all processes. */
	{ "oom-score", oom_score },
	{ "cgroup", setup_cgroups },
	{ "network", network },
	/* Before it has a place, as id maps and sysctls are written through it. */
	{ "proc", setup_proc },
	{ "sysctl", sysctls },
	{ "link", setup_link },
	{ "hostname", hostname },
	{ "own-descriptors", own_descriptors },
	{ "user-namespace", setup_user_namespaces },
	{ "layers", setup_layers },
	{ "overlay", setup_overlay },
	{ "mount", setup_mounts },
	{ "cgroup", setup_cgroup_namespace },
	/* Not before: they are meant for the sandbox, not for what makes its files. */
	{ "rlimits", rlimits },
	{ "processors", processors },
	{ "pivot", pivot },
	{ "user", setup_user },
	{ "keyring", keyring },
	{ "descriptors", lift_descriptors },
	{ "descriptors", descriptors },
	{ "seccomp", seccomp },
	{ "capabilities", setup_capabilities },
};

/* The message's arguments as the kernel wants them: pointers to texts that end with NUL. */
static void read_arguments(struct dsec_list list, char *texts, char **pointers)
{
	struct dsec_bytes item;

	while (dsec_list_next(&list, &item)) {
		*pointers++ = texts;
		memcpy(texts, item.data, item.length);
		texts += item.length;
		*texts++ = '\0';
	}
	*pointers = NULL;
}

_Noreturn void setup_run(struct setup *setup)
{
	static char texts[64 * 1024];
	static char *arguments[SPEC_ARGV_MAX + 1];
	static char *environment[] = { NULL };
	int err = 0;

	umask(022);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !err; i++) {
		strcpy(setup->step, steps[i].name);
		err = steps[i].run(setup);
	}
	if (!err) {
		read_arguments(setup->spec->argv, texts, arguments);
		worker_succeed(setup->report);
		strcpy(setup->step, "exec");
		syscall(SYS_execveat, host.aether, "", arguments, environment,
			KERNEL_AT_EMPTY_PATH);
		err = -errno;
	}
	worker_fail(setup->report, 0, setup->step, -err);
	_exit(1);
}
