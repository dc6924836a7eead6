/*
 * The maps that all programs share, and the judgement of one flow.
 * packages/network/src/bpf/layout.ts writes and reads the same structures; every field lies at a
 * multiple of its size and the rest is zero.
 */
#ifndef DSEC_BPF_POLICY_H
#define DSEC_BPF_POLICY_H

#include "kernel.h"

enum {
	/* Of one prefix. The compiler of rules refuses more. */
	RANGES_MAX = 8,
	GATEWAY_PORTS_MAX = 16,
	/* Counts and tells what no slot stands for. No sandbox has it. */
	SLOT_UNKNOWN = 0,
	/* Overridden at load by what the node is configured for. */
	SLOTS_MAX = 1024,
	RULES_MAX = 512,
};

/* All addresses are IPv6; those of IPv4 are mapped, ::ffff:a.b.c.d. */
struct address {
	__u32 words[4];
};

struct settings {
	/* IPv4, network order. */
	__u32 gateway;
	/* The level of a sandbox's own cgroup; the root is 0. */
	__u32 cgroup_level;
	/* Of one slot: for calls and for packets, each. */
	__u32 events_per_second;
	__u32 gateway_port_count;
	struct {
		__u16 port;
		__u8 protocol;
		__u8 reserved;
	} gateway_ports[GATEWAY_PORTS_MAX];
};

enum slot_flags {
	/* The gateway's ports, where the proxies listen, may be reached. */
	SLOT_PROXIES = 1,
	SLOT_HAS_MAC = 2,
	SLOT_HAS_IPV4 = 4,
	SLOT_HAS_IPV6 = 8,
};

struct slot {
	/* 0: free; what still points here denies. */
	__u32 generation;
	__u32 version;
	/* Which entries of the slot's trie are in force. 0: none. */
	__u32 table;
	__u32 flags;
	struct address ipv4;
	struct address ipv6;
	__u8 mac[6];
	__u8 reserved[10];
};

/* What a cgroup or a device stands for. */
struct owner {
	__u32 slot;
	__u32 generation;
};

/*
 * The table is part of the prefix: a new set of rules is written beside the old one and comes into
 * force by one store into the slot, and what an old set holds is not found any more.
 */
struct rule_key {
	__u32 prefix_bits;
	__u32 table;
	struct address address;
};

struct port_range {
	/* Of the monotonic clock; 0: never. */
	__u64 expires_ns;
	__u16 first;
	__u16 last;
	/* 0: any. */
	__u8 protocol;
	__u8 reserved[3];
};

struct rule {
	__u32 count;
	__u32 reserved;
	struct port_range ranges[RANGES_MAX];
};

struct refused_key {
	__u32 prefix_bits;
	struct address address;
};

struct window {
	__u64 began_ns;
	__u64 events;
};

struct counters {
	__u64 calls_denied;
	__u64 packets_denied_out;
	__u64 packets_denied_in;
	/* What kernels send by themselves; dropped without a word. */
	__u64 packets_ignored;
	__u64 events_lost;
	struct window windows[2];
};

/* In the order of packages/network/src/bpf/layout.ts. */
enum hook {
	HOOK_SOCKET = 1,
	HOOK_BIND,
	HOOK_CONNECT,
	HOOK_SEND,
	HOOK_PACKET_OUT,
	HOOK_PACKET_IN,
};

enum reason {
	ALLOWED = 0,
	/* No rule names this address, port and protocol. */
	REASON_NO_RULE,
	REASON_EXPIRED,
	/* An address that no rule opens: of the host, of neighbours, of the cloud. */
	REASON_REFUSED,
	REASON_SOURCE,
	REASON_KIND,
	REASON_FRAGMENT,
	/* A header that is not understood; such packets are never let through. */
	REASON_UNPARSED,
	REASON_MULTICAST,
	/* No sandbox is known here. */
	REASON_UNKNOWN,
	/* Nobody connects into a sandbox. */
	REASON_INWARD,
	/* About what was dropped before: no more than noise. */
	REASON_ICMP_ERROR,
};

struct event {
	__u64 time_ns;
	__u32 slot;
	__u32 generation;
	__u32 version;
	__u32 pid;
	struct address address;
	char comm[16];
	__u16 port;
	__u8 family;
	__u8 protocol;
	__u8 hook;
	__u8 reason;
	__u8 reserved[2];
};

struct flow {
	struct address address;
	__u16 port;
	__u8 family;
	__u8 protocol;
	/* Whether it may begin a flow: then a rule that has expired does not count. */
	__u8 begins;
	__u8 hook;
};

/* The form that packages/network/src/bpf/elf.ts reads. A trie in an array is described by
 * `<name>_inner`. */
struct map_definition {
	__u32 type;
	__u32 key_bytes;
	__u32 value_bytes;
	__u32 entries_max;
	__u32 flags;
};

#define MAP(name) struct map_definition name SECTION("maps")

MAP(settings) = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct settings), 1, 0 };
MAP(slots) = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct slot), SLOTS_MAX, 0 };
MAP(counters) = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct counters), SLOTS_MAX, 0 };
MAP(rules) = { BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(__u32), sizeof(__u32), SLOTS_MAX, 0 };
MAP(rules_inner) = { BPF_MAP_TYPE_LPM_TRIE, sizeof(struct rule_key), sizeof(struct rule), RULES_MAX,
		     BPF_F_NO_PREALLOC };
MAP(refused) = { BPF_MAP_TYPE_LPM_TRIE, sizeof(struct refused_key), sizeof(__u32), 1024,
		 BPF_F_NO_PREALLOC };
MAP(events) = { BPF_MAP_TYPE_RINGBUF, 0, 0, 1 << 18, 0 };

char program_license[] SECTION("license") = "GPL";

INLINE int is_same_address(const struct address *a, const struct address *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] &&
	       a->words[2] == b->words[2] && a->words[3] == b->words[3];
}

INLINE int is_mapped(const struct address *address)
{
	return !address->words[0] && !address->words[1] && address->words[2] == net32(0xffff);
}

INLINE void map_address(struct address *address, __u32 ipv4)
{
	address->words[0] = 0;
	address->words[1] = 0;
	address->words[2] = net32(0xffff);
	address->words[3] = ipv4;
}

INLINE int is_own_address(const struct slot *slot, const struct address *address)
{
	if ((slot->flags & SLOT_HAS_IPV4) && is_same_address(address, &slot->ipv4))
		return 1;
	return (slot->flags & SLOT_HAS_IPV6) && is_same_address(address, &slot->ipv6);
}

/* Of the owner's slot, if it is still this owner's. */
INLINE const struct slot *slot_of(const struct owner *owner)
{
	const struct slot *slot = owner ? map_lookup(&slots, &owner->slot) : 0;

	return slot && owner->generation && slot->generation == owner->generation ? slot : 0;
}

INLINE const struct settings *node_settings(void)
{
	__u32 zero = 0;

	return map_lookup(&settings, &zero);
}

/* Whether any port of the address is open, or this one: port 0 of UDP asks for the former. */
INLINE int judge_ranges(const struct rule *rule, const struct flow *flow)
{
	int reason = REASON_NO_RULE;

	for (__u32 i = 0; i < RANGES_MAX; i++) {
		const struct port_range *range = &rule->ranges[i];

		if (i >= rule->count)
			break;
		if (flow->protocol == IPPROTO_TCP || flow->protocol == IPPROTO_UDP) {
			if (flow->port < range->first || flow->port > range->last)
				continue;
			if (range->protocol && range->protocol != flow->protocol)
				continue;
		} else if (range->first || range->last != 0xffff || range->protocol) {
			/* An echo goes where everything goes. */
			continue;
		}
		if (!flow->begins || !range->expires_ns || range->expires_ns > monotonic_ns())
			return ALLOWED;
		reason = REASON_EXPIRED;
	}
	return reason;
}

/* The rule that names the address, or NULL. */
INLINE const struct rule *rule_of(__u32 number, const struct slot *slot,
				  const struct address *address)
{
	struct rule_key key = { .prefix_bits = 32 + 128, .table = slot->table };
	void *trie = map_lookup(&rules, &number);

	if (!trie || !key.table)
		return 0;
	key.address = *address;
	return map_lookup(trie, &key);
}

INLINE int is_refused(const struct address *address)
{
	struct refused_key key = { .prefix_bits = 128 };

	key.address = *address;
	return map_lookup(&refused, &key) != 0;
}

INLINE int is_gateway(const struct settings *node, const struct address *address)
{
	return node->gateway && is_mapped(address) && address->words[3] == node->gateway;
}

INLINE int judge_gateway(const struct settings *node, const struct slot *slot,
			 const struct flow *flow)
{
	if (!(slot->flags & SLOT_PROXIES))
		return REASON_NO_RULE;
	for (__u32 i = 0; i < GATEWAY_PORTS_MAX; i++) {
		if (i >= node->gateway_port_count)
			break;
		if (node->gateway_ports[i].port == flow->port &&
		    node->gateway_ports[i].protocol == flow->protocol)
			return ALLOWED;
	}
	return REASON_NO_RULE;
}

/* Judges the far end of a flow. */
INLINE int judge_flow(const struct settings *node, __u32 number, const struct slot *slot,
		      const struct flow *flow)
{
	const struct rule *rule;

	if (is_gateway(node, &flow->address))
		return judge_gateway(node, slot, flow);
	if (is_refused(&flow->address))
		return REASON_REFUSED;
	rule = rule_of(number, slot, &flow->address);
	return rule ? judge_ranges(rule, flow) : REASON_NO_RULE;
}

/* Whether one more event of this slot may be told. Two processors at once may let one more through.
 */
INLINE int take_quota(const struct settings *node, struct window *window, __u64 now)
{
	if (now - window->began_ns >= 1000000000ull) {
		window->began_ns = now;
		window->events = 0;
	}
	if (window->events >= node->events_per_second)
		return 0;
	add_atomically(&window->events, 1);
	return 1;
}

/* Counts a denial and, unless `counter` is all that it deserves, tells it within the slot's quota.
 */
INLINE void tell(const struct settings *node, __u32 number, const struct slot *slot,
		 const struct flow *flow, int reason)
{
	int is_packet = flow->hook == HOOK_PACKET_OUT;
	struct counters *counts = map_lookup(&counters, &number);
	__u64 now = monotonic_ns();
	struct event *event = 0;

	if (!counts)
		return;
	if (take_quota(node, &counts->windows[is_packet], now))
		event = ring_reserve(&events, sizeof(*event), 0);
	if (!event) {
		add_atomically(&counts->events_lost, 1);
		return;
	}
	event->time_ns = now;
	event->slot = number;
	event->generation = slot ? slot->generation : 0;
	event->version = slot ? slot->version : 0;
	event->pid = 0;
	event->address = flow->address;
	__builtin_memset(event->comm, 0, sizeof(event->comm));
#ifdef IN_PROCESS
	event->pid = (__u32)(current_pid_tgid() >> 32);
	current_comm(event->comm, sizeof(event->comm));
#endif
	event->port = flow->port;
	event->family = flow->family;
	event->protocol = flow->protocol;
	event->hook = flow->hook;
	event->reason = (__u8)reason;
	event->reserved[0] = 0;
	event->reserved[1] = 0;
	ring_submit(event, 0);
}

#endif
