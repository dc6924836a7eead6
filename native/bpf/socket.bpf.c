/*
 * Calls of processes in sandboxes, judged where their sockets are made, bound, connected and sent
 * from. They are attached once, to the common parent of the sandboxes' cgroups, and make errors
 * early (EPERM) and attributable to a process; packet.bpf.c alone decides what leaves. What is not
 * in a known sandbox may reach its own loopback and no more.
 */
#define IN_PROCESS
#include "policy.h"

MAP(cgroups) = { BPF_MAP_TYPE_HASH, sizeof(__u64), sizeof(struct owner), SLOTS_MAX, 0 };

enum {
	REFUSE = 0,
	ALLOW = 1
};

/* The kernel sends what is for the unspecified address to the loopback. */
INLINE int is_local(const struct slot *slot, const struct address *address)
{
	if (is_mapped(address))
		return (net32(address->words[3]) >> 24) == 127 || !address->words[3] ||
		       (slot && is_own_address(slot, address));
	if (!address->words[0] && !address->words[1] && !address->words[2])
		return net32(address->words[3]) <= 1;
	return slot && is_own_address(slot, address);
}

INLINE const struct owner *current_owner(const struct settings *node)
{
	__u64 id = current_ancestor_cgroup_id((int)node->cgroup_level);

	return map_lookup(&cgroups, &id);
}

INLINE int refuse(const struct settings *node, __u32 number, const struct slot *slot,
		  const struct flow *flow, int reason)
{
	struct counters *counts = map_lookup(&counters, &number);

	if (counts)
		add_atomically(&counts->calls_denied, 1);
	tell(node, number, slot, flow, reason);
	return REFUSE;
}

/*
 * A datagram socket that is connected sends nothing, and resolvers connect one to learn which
 * source address they would have: known addresses are enough for that.
 */
INLINE int is_route_question(const struct settings *node, __u32 number, const struct slot *slot,
			     const struct flow *flow)
{
	if (flow->hook != HOOK_CONNECT || flow->protocol != IPPROTO_UDP)
		return 0;
	if (is_gateway(node, &flow->address))
		return (slot->flags & SLOT_PROXIES) != 0;
	return !is_refused(&flow->address) && rule_of(number, slot, &flow->address);
}

INLINE int judge_call(const struct flow *flow)
{
	const struct settings *node = node_settings();
	const struct owner *owner = node ? current_owner(node) : 0;
	const struct slot *slot = slot_of(owner);
	__u32 number = SLOT_UNKNOWN;
	int reason;

	if (!node)
		return REFUSE;
	if (is_local(slot, &flow->address))
		return ALLOW;
	if (!slot || !owner)
		return refuse(node, number, slot, flow, REASON_UNKNOWN);
	number = owner->slot;
	if (flow->hook == HOOK_BIND)
		return refuse(node, number, slot, flow, REASON_SOURCE);
	if (is_route_question(node, number, slot, flow))
		return ALLOW;
	reason = judge_flow(node, number, slot, flow);
	return reason == ALLOWED ? ALLOW : refuse(node, number, slot, flow, reason);
}

INLINE int judge_ipv4(struct bpf_sock_addr *call, enum hook hook)
{
	struct flow flow = { .family = FAMILY_IPV4, .begins = 1, .hook = (__u8)hook };

	map_address(&flow.address, call->user_ip4);
	flow.port = net16((__u16)call->user_port);
	flow.protocol = (__u8)call->protocol;
	return judge_call(&flow);
}

INLINE int judge_ipv6(struct bpf_sock_addr *call, enum hook hook)
{
	struct flow flow = { .family = FAMILY_IPV6, .begins = 1, .hook = (__u8)hook };

	flow.address.words[0] = call->user_ip6[0];
	flow.address.words[1] = call->user_ip6[1];
	flow.address.words[2] = call->user_ip6[2];
	flow.address.words[3] = call->user_ip6[3];
	flow.port = net16((__u16)call->user_port);
	flow.protocol = (__u8)call->protocol;
	return judge_call(&flow);
}

SECTION("cgroup/connect4") int connect4(struct bpf_sock_addr *call)
{
	return judge_ipv4(call, HOOK_CONNECT);
}

SECTION("cgroup/connect6") int connect6(struct bpf_sock_addr *call)
{
	return judge_ipv6(call, HOOK_CONNECT);
}

SECTION("cgroup/sendmsg4") int sendmsg4(struct bpf_sock_addr *call)
{
	return judge_ipv4(call, HOOK_SEND);
}

SECTION("cgroup/sendmsg6") int sendmsg6(struct bpf_sock_addr *call)
{
	return judge_ipv6(call, HOOK_SEND);
}

/* Only addresses of its own: nobody sends as somebody else. */
SECTION("cgroup/bind4") int bind4(struct bpf_sock_addr *call)
{
	return judge_ipv4(call, HOOK_BIND);
}

SECTION("cgroup/bind6") int bind6(struct bpf_sock_addr *call)
{
	return judge_ipv6(call, HOOK_BIND);
}

/* TCP, UDP and ping; no raw sockets, and none of the protocols whose packets nobody here judges. */
SECTION("cgroup/sock_create") int sock_create(struct bpf_sock *socket)
{
	const struct settings *node = node_settings();
	const struct owner *owner = node ? current_owner(node) : 0;
	const struct slot *slot = slot_of(owner);
	__u32 protocol = socket->protocol;
	struct flow flow = { .hook = HOOK_SOCKET };

	if (!node)
		return REFUSE;
	if (socket->type == SOCKET_STREAM && (!protocol || protocol == IPPROTO_TCP))
		return ALLOW;
	if (socket->type == SOCKET_DATAGRAM &&
	    (!protocol || protocol == IPPROTO_UDP || protocol == IPPROTO_ICMP ||
	     protocol == IPPROTO_ICMPV6))
		return ALLOW;
	flow.family = (__u8)socket->family;
	flow.protocol = protocol > 0xff ? 0xff : (__u8)protocol;
	/* The kind of socket, as there is no port yet. */
	flow.port = (__u16)socket->type;
	return refuse(node, slot && owner ? owner->slot : SLOT_UNKNOWN, slot, &flow, REASON_KIND);
}
