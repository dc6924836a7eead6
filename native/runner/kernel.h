/* Of the kernel, as this libc has no headers of it. */
#ifndef RUNNER_KERNEL_H
#define RUNNER_KERNEL_H

#include <stdint.h>
#include <sys/syscall.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum {
	KERNEL_RESOLVE_NO_MAGICLINKS = 0x02,
	KERNEL_RESOLVE_NO_SYMLINKS = 0x04,
	KERNEL_CAPABILITY_VERSION_3 = 0x20080522,
	/* NOROOT, NO_SETUID_FIXUP and KEEP_CAPS, each locked; the last unset. */
	KERNEL_SECUREBITS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5,
};

struct kernel_open_how {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

struct kernel_capability_header {
	uint32_t version;
	int pid;
};

struct kernel_capability_sets {
	uint32_t effective, permitted, inheritable;
};

#endif
