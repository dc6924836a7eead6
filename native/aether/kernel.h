/* What musl's headers do not declare of the Linux interface. */
#ifndef AETHER_KERNEL_H
#define AETHER_KERNEL_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1u << 0)
#endif

enum {
	RESOLVE_NO_MAGICLINKS_BIT = 0x02,
	RESOLVE_NO_SYMLINKS_BIT = 0x04,
	RESOLVE_IN_ROOT_BIT = 0x10,
	/* The kernel's highest signal; musl's own limit hides three of them. */
	SIGNAL_MAX = 64,
};

struct kernel_open_how {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

static inline int kernel_openat2(int directory, const char *path, struct kernel_open_how *how)
{
	return (int)syscall(SYS_openat2, directory, path, how, sizeof(*how));
}

static inline int kernel_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

struct kernel_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* Sets the disposition of any signal, also of the three that musl keeps for itself. */
static inline int kernel_sigaction(int signal, void (*handler)(int))
{
	struct kernel_sigaction action = { .handler = handler };

	return (int)syscall(SYS_rt_sigaction, signal, &action, NULL, sizeof(uint64_t));
}

/* Blocks exactly the signals of `mask`; bit n-1 stands for signal n. */
static inline int kernel_sigmask(uint64_t mask)
{
	return (int)syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, NULL, sizeof(mask));
}

#endif
