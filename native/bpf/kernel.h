/*
 * What the programs use of the kernel: helper functions, by their numbers, which are part of its
 * interface. Nothing here needs libbpf or type information (BTF).
 */
#ifndef DSEC_BPF_KERNEL_H
#define DSEC_BPF_KERNEL_H

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/in6.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE	      static inline __attribute__((always_inline))

#define copy_bytes(to, from, length) __builtin_memcpy(to, from, length)
#define add_atomically(counter, by)  __sync_fetch_and_add(counter, by)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define net16(value) __builtin_bswap16(value)
#define net32(value) __builtin_bswap32(value)
#else
#define net16(value) (value)
#define net32(value) (value)
#endif

static void *(*const map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*const monotonic_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u64 (*const current_pid_tgid)(void) = (void *)BPF_FUNC_get_current_pid_tgid;
static long (*const current_comm)(void *name, __u32 length) = (void *)BPF_FUNC_get_current_comm;
static long (*const load_bytes)(const struct __sk_buff *skb, __u32 offset, void *to,
				__u32 length) = (void *)BPF_FUNC_skb_load_bytes;
static __u64 (*const current_ancestor_cgroup_id)(int level) = (void *)
	BPF_FUNC_get_current_ancestor_cgroup_id;
static void *(*const ring_reserve)(void *ring, __u64 length,
				   __u64 flags) = (void *)BPF_FUNC_ringbuf_reserve;
static void (*const ring_submit)(void *record, __u64 flags) = (void *)BPF_FUNC_ringbuf_submit;

/* Of <sys/socket.h>, which is not for programs without a C library. */
enum {
	FAMILY_IPV4 = 2,
	FAMILY_IPV6 = 10,
	SOCKET_STREAM = 1,
	SOCKET_DATAGRAM = 2,
};

#endif
