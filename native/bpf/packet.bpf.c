/*
 * Every packet between a sandbox and the router, judged at the router's end of its veth or tap.
 * Nothing inside the sandbox can go around this. Passed on are packets from its own address to what
 * its rules or the gateway's ports allow, and their answers; what is not understood is dropped:
 * fragments, IPv4 options, IPv6 extension headers, VLAN tags, and all but TCP, UDP, echo and ICMP
 * errors. Addresses of IPv6 neighbours are not resolved through here: both ends hold a permanent
 * entry.
 */
#include "policy.h"

#include <linux/if_ether.h>

MAP(devices) = { BPF_MAP_TYPE_HASH, sizeof(__u32), sizeof(struct owner), SLOTS_MAX, 0 };

enum {
	PASS = -1, /* TCX_NEXT: to the next program, if there is one. */
	DROP = 2,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
	TCP_SYN = 0x02,
	TCP_ACK = 0x10,
};

struct ipv4_header {
	__u8 version_and_words;
	__u8 service;
	__u16 length;
	__u16 id;
	__u16 fragment;
	__u8 hops;
	__u8 protocol;
	__u16 checksum;
	__u32 source;
	__u32 destination;
};

struct ipv6_header {
	__u8 version_and_class;
	__u8 rest[3];
	__u16 length;
	__u8 protocol;
	__u8 hops;
	struct address source;
	struct address destination;
};

struct arp_packet {
	__u16 hardware;
	__u16 protocol;
	__u8 hardware_bytes;
	__u8 protocol_bytes;
	__u16 operation;
	__u8 sender_mac[6];
	__u8 sender[4];
	__u8 target_mac[6];
	__u8 target[4];
};

struct packet {
	struct address source;
	struct address destination;
	__u32 payload;
	__u16 source_port;
	__u16 destination_port;
	__u8 family;
	__u8 protocol;
	__u8 tcp_flags;
	__u8 icmp_type;
};

INLINE int parse_ipv4(const struct __sk_buff *skb, struct packet *packet)
{
	struct ipv4_header header;

	if (load_bytes(skb, ETH_HLEN, &header, sizeof(header)))
		return REASON_UNPARSED;
	if (header.version_and_words != 0x45)
		return REASON_UNPARSED;
	packet->family = FAMILY_IPV4;
	packet->protocol = header.protocol;
	packet->payload = ETH_HLEN + sizeof(header);
	map_address(&packet->source, header.source);
	map_address(&packet->destination, header.destination);
	if ((net32(header.destination) >> 28) == 0xe || header.destination == 0xffffffff)
		return REASON_MULTICAST;
	/* More fragments to come, or not the first one. */
	return (header.fragment & net16(0x3fff)) ? REASON_FRAGMENT : ALLOWED;
}

INLINE int parse_ipv6(const struct __sk_buff *skb, struct packet *packet)
{
	struct ipv6_header header;

	if (load_bytes(skb, ETH_HLEN, &header, sizeof(header)))
		return REASON_UNPARSED;
	if ((header.version_and_class >> 4) != 6)
		return REASON_UNPARSED;
	packet->family = FAMILY_IPV6;
	packet->protocol = header.protocol;
	packet->payload = ETH_HLEN + sizeof(header);
	packet->source = header.source;
	packet->destination = header.destination;
	/* An IPv4 rule speaks of IPv4 packets. */
	if (is_mapped(&packet->source) || is_mapped(&packet->destination))
		return REASON_UNPARSED;
	if ((net32(header.destination.words[0]) >> 24) == 0xff)
		return REASON_MULTICAST;
	return header.protocol == 44 ? REASON_FRAGMENT : ALLOWED;
}

INLINE int parse_payload(const struct __sk_buff *skb, struct packet *packet)
{
	__u16 ports[2];
	__u8 first[2];

	switch (packet->protocol) {
	case IPPROTO_TCP:
		if (load_bytes(skb, packet->payload + 12, first, sizeof(first)))
			return REASON_UNPARSED;
		packet->tcp_flags = first[1];
		break;
	case IPPROTO_UDP:
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if ((packet->protocol == IPPROTO_ICMP) != (packet->family == FAMILY_IPV4))
			return REASON_UNPARSED;
		if (load_bytes(skb, packet->payload, first, sizeof(first)))
			return REASON_UNPARSED;
		packet->icmp_type = first[0];
		return ALLOWED;
	default:
		return REASON_UNPARSED;
	}
	if (load_bytes(skb, packet->payload, ports, sizeof(ports)))
		return REASON_UNPARSED;
	packet->source_port = net16(ports[0]);
	packet->destination_port = net16(ports[1]);
	return ALLOWED;
}

INLINE int parse(const struct __sk_buff *skb, __u16 type, struct packet *packet)
{
	int reason = REASON_UNPARSED;

	if (type == net16(ETH_P_IP))
		reason = parse_ipv4(skb, packet);
	else if (type == net16(ETH_P_IPV6))
		reason = parse_ipv6(skb, packet);
	return reason == ALLOWED ? parse_payload(skb, packet) : reason;
}

INLINE int is_echo(const struct packet *packet, int is_outward)
{
	if (packet->protocol == IPPROTO_ICMP)
		return packet->icmp_type == (is_outward ? 8 : 0);
	return packet->icmp_type == (is_outward ? 128 : 129);
}

/* Unreachable (with it: too big), time exceeded, parameter problem. */
INLINE int is_icmp_error(const struct packet *packet)
{
	__u8 type = packet->icmp_type;

	if (packet->protocol == IPPROTO_ICMP)
		return type == 3 || type == 11 || type == 12;
	return packet->protocol == IPPROTO_ICMPV6 && type >= 1 && type <= 4;
}

INLINE int is_icmp(const struct packet *packet)
{
	return packet->protocol == IPPROTO_ICMP || packet->protocol == IPPROTO_ICMPV6;
}

INLINE int is_mac_of(const struct slot *slot, const __u8 mac[6])
{
	if (!(slot->flags & SLOT_HAS_MAC))
		return 1;
	return mac[0] == slot->mac[0] && mac[1] == slot->mac[1] && mac[2] == slot->mac[2] &&
	       mac[3] == slot->mac[3] && mac[4] == slot->mac[4] && mac[5] == slot->mac[5];
}

INLINE __u32 ipv4_at(const __u8 bytes[4])
{
	__u32 address;

	copy_bytes(&address, bytes, sizeof(address));
	return address;
}

/* The sandbox asks for the gateway and answers it, and the other way round. */
INLINE int judge_arp(const struct __sk_buff *skb, const struct settings *node,
		     const struct slot *slot, int is_outward)
{
	struct arp_packet arp;
	__u32 sender;
	__u32 target;

	if (load_bytes(skb, ETH_HLEN, &arp, sizeof(arp)) || !(slot->flags & SLOT_HAS_IPV4))
		return REASON_UNPARSED;
	if (arp.hardware != net16(1) || arp.protocol != net16(ETH_P_IP) ||
	    arp.hardware_bytes != 6 || arp.protocol_bytes != 4)
		return REASON_UNPARSED;
	if (arp.operation != net16(ARP_REQUEST) && arp.operation != net16(ARP_REPLY))
		return REASON_UNPARSED;
	sender = ipv4_at(arp.sender);
	target = ipv4_at(arp.target);
	if (is_outward && !is_mac_of(slot, arp.sender_mac))
		return REASON_SOURCE;
	if (sender != (is_outward ? slot->ipv4.words[3] : node->gateway))
		return REASON_SOURCE;
	return target == (is_outward ? node->gateway : slot->ipv4.words[3]) ? ALLOWED
									    : REASON_NO_RULE;
}

/* Fills in `flow` as far as it gets, for the event. */
INLINE int judge_outward(const struct __sk_buff *skb, const struct settings *node,
			 const struct owner *owner, const struct slot *slot, struct flow *flow)
{
	struct packet packet = {};
	struct ethhdr frame;
	int reason;

	if (load_bytes(skb, 0, &frame, sizeof(frame)) || skb->vlan_present)
		return REASON_UNPARSED;
	if (!is_mac_of(slot, frame.h_source))
		return REASON_SOURCE;
	if (frame.h_proto == net16(ETH_P_ARP))
		return judge_arp(skb, node, slot, 1);
	reason = parse(skb, frame.h_proto, &packet);
	flow->address = packet.destination;
	flow->port = packet.destination_port;
	flow->family = packet.family;
	flow->protocol = packet.protocol;
	if (reason != ALLOWED)
		return reason;
	if (!is_own_address(slot, &packet.source))
		return REASON_SOURCE;
	if (is_icmp_error(&packet))
		return REASON_ICMP_ERROR;
	if (is_icmp(&packet) && !is_echo(&packet, 1))
		return REASON_UNPARSED;
	flow->begins = packet.protocol != IPPROTO_TCP ||
		       (packet.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
	return judge_flow(node, owner->slot, slot, flow);
}

/* Answers only: judged by where they come from, so that a rule that is gone stops both directions.
 */
INLINE int judge_inward(const struct __sk_buff *skb, const struct settings *node,
			const struct owner *owner, const struct slot *slot, struct flow *flow)
{
	struct packet packet = {};
	struct ethhdr frame;
	int reason;

	if (load_bytes(skb, 0, &frame, sizeof(frame)) || skb->vlan_present)
		return REASON_UNPARSED;
	if (frame.h_proto == net16(ETH_P_ARP))
		return judge_arp(skb, node, slot, 0);
	reason = parse(skb, frame.h_proto, &packet);
	if (reason != ALLOWED)
		return reason;
	if (!is_own_address(slot, &packet.destination))
		return REASON_SOURCE;
	if (is_icmp_error(&packet))
		return ALLOWED;
	if (is_icmp(&packet) && !is_echo(&packet, 0))
		return REASON_UNPARSED;
	if (packet.protocol == IPPROTO_TCP && (packet.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		return REASON_INWARD;
	flow->address = packet.source;
	flow->port = packet.source_port;
	flow->protocol = packet.protocol;
	flow->begins = packet.protocol != IPPROTO_TCP;
	return judge_flow(node, owner->slot, slot, flow);
}

SECTION("tcx/ingress") int from_sandbox(struct __sk_buff *skb)
{
	const struct settings *node = node_settings();
	struct flow flow = { .hook = HOOK_PACKET_OUT };
	__u32 number = SLOT_UNKNOWN;
	__u32 device = skb->ifindex;
	const struct owner *owner = map_lookup(&devices, &device);
	const struct slot *slot = slot_of(owner);
	struct counters *counts;
	int reason = REASON_UNKNOWN;
	int is_noise;

	if (!node)
		return DROP;
	if (slot && owner) {
		number = owner->slot;
		reason = judge_outward(skb, node, owner, slot, &flow);
	}
	if (reason == ALLOWED)
		return PASS;
	/* A kernel greets its neighbours by multicast, and complains of what nobody waits for. */
	is_noise = reason == REASON_MULTICAST || reason == REASON_ICMP_ERROR;
	counts = map_lookup(&counters, &number);
	if (counts)
		add_atomically(is_noise ? &counts->packets_ignored : &counts->packets_denied_out,
			       1);
	if (!is_noise)
		tell(node, number, slot, &flow, reason);
	return DROP;
}

SECTION("tcx/egress") int to_sandbox(struct __sk_buff *skb)
{
	const struct settings *node = node_settings();
	struct flow flow = { .hook = HOOK_PACKET_IN };
	__u32 number = SLOT_UNKNOWN;
	__u32 device = skb->ifindex;
	const struct owner *owner = map_lookup(&devices, &device);
	const struct slot *slot = slot_of(owner);
	struct counters *counts;

	if (!node)
		return DROP;
	if (slot && owner) {
		number = owner->slot;
		if (judge_inward(skb, node, owner, slot, &flow) == ALLOWED)
			return PASS;
	}
	/* Counted and not told, as others decide what is sent here. */
	counts = map_lookup(&counters, &number);
	if (counts)
		add_atomically(&counts->packets_denied_in, 1);
	return DROP;
}
