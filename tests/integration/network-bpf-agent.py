"""Runs what a test tells it, line by line, inside the namespaces and the cgroup that it was started in."""

import contextlib
import errno
import fcntl
import json
import os
import socket
import struct
import sys
import threading

MPTCP, FASTOPEN = 262, 0x20000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
WAIT_SECONDS = 1.0


def end(value):
    """One word for what became of an attempt."""
    if isinstance(value, (socket.timeout, BlockingIOError)):
        return "silence"
    if isinstance(value, OSError):
        return errno.errorcode.get(value.errno, str(value.errno))
    return value


def attempt(work):
    try:
        return end(work())
    except OSError as failure:
        return end(failure)


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def tcp(address, port, text=b"hello", protocol=0, source=None):
    def work():
        with socket.socket(family_of(address), socket.SOCK_STREAM, protocol) as s:
            s.settimeout(WAIT_SECONDS)
            if source:
                s.bind(source)
            s.connect((address, port))
            s.sendall(text)
            return s.recv(100).decode()

    return attempt(work)


def fast_open(address, port):
    def work():
        with socket.socket(family_of(address), socket.SOCK_STREAM) as s:
            # Without a limit: a socket that has one does not wait for the connection here.
            s.sendto(b"hello", FASTOPEN, (address, port))
            s.settimeout(WAIT_SECONDS)
            return s.recv(100).decode()

    return attempt(work)


def udp(address, port, text=b"hello", is_connected=False):
    def work():
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as s:
            s.settimeout(WAIT_SECONDS)
            if is_connected:
                s.connect((address, port))
                s.send(text)
            else:
                s.sendto(text, (address, port))
            return s.recv(65535)[:100].decode()

    return attempt(work)


def made(family, kind, protocol=0):
    def work():
        socket.socket(family, kind, protocol).close()
        return "made"

    return attempt(work)


def bound(family, address, options=()):
    def work():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            for level, name in options:
                s.setsockopt(level, name, 1)
            s.bind((address, 0))
            return "bound"

    return attempt(work)


def open_tap(name):
    """A device whose other end is this process, as a virtual machine has one. Gives its index."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    request = struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI)
    fcntl.ioctl(device, TUNSETIFF, request)
    kept[name] = device
    return socket.if_nametoindex(name)


def inject(device, frame):
    """A frame as it is, past everything that the kernel would do with a packet."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind((device, 0))
        s.send(frame)
    return "sent"


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def ethernet(to, source, kind):
    mac = lambda text: bytes.fromhex(text.replace(":", ""))
    return mac(to) + mac(source) + struct.pack("!H", kind)


def ipv4(source, to, protocol, payload, fragment=0, options=b""):
    head = struct.pack(
        "!BBHHHBBH4s4s",
        0x45 + len(options) // 4,
        0,
        20 + len(options) + len(payload),
        7,
        fragment,
        64,
        protocol,
        0,
        socket.inet_aton(source),
        socket.inet_aton(to),
    )
    whole = head + options
    return whole[:10] + struct.pack("!H", checksum(whole)) + whole[12:] + payload


def ipv6(source, to, protocol, payload):
    addresses = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, to)
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + addresses + payload


def udp_payload(port, text):
    return struct.pack("!HHHH", 4000, port, 8 + len(text), 0) + text


def udp4(source, to, port, text, **more):
    return ipv4(source, to, socket.IPPROTO_UDP, udp_payload(port, text), **more)


def arp(mac, sender, target):
    """Asks on Ethernet who has an address of IPv4."""
    head = struct.pack("!HHBBH", 1, 0x800, 6, 4, 1)
    own = bytes.fromhex(mac.replace(":", "")) + socket.inet_aton(sender)
    return head + own + bytes(6) + socket.inet_aton(target)


def udp6_payload(source, to, port, text):
    addresses = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, to)
    whole = udp_payload(port, text)
    pseudo = addresses + struct.pack("!II", len(whole), socket.IPPROTO_UDP)
    padded = pseudo + whole + b"\0" * (len(whole) % 2)
    return whole[:6] + struct.pack("!H", checksum(padded) or 0xFFFF) + whole[8:]


def echo_request():
    head = struct.pack("!BBHHH", 8, 0, 0, 1, 1)
    return head[:2] + struct.pack("!H", checksum(head)) + head[4:]


def keep(name, address, port):
    """Opens a connection that stays, and has it answered once."""
    s = socket.create_connection((address, port), WAIT_SECONDS)
    kept[name] = s
    return talk(name, "first of " + name)


def talk(name, text):
    def work():
        kept[name].sendall(text.encode())
        return kept[name].recv(100).decode()

    return attempt(work)


def listen_udp(name):
    """Keeps a socket that waits for whoever sends, and gives its port."""
    kept[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    kept[name].settimeout(WAIT_SECONDS)
    kept[name].bind(("0.0.0.0", 0))
    return kept[name].getsockname()[1]


def serve_tcp(address, port):
    """Answers each piece, and keeps what came."""
    listener = socket.socket(family_of(address), socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
    listener.bind((address, port))
    listener.listen(64)

    def serve(peer):
        with peer, contextlib.suppress(OSError):
            for piece in iter(lambda: peer.recv(4096), b""):
                received.append(piece.decode())
                peer.sendall(b"answer")

    def loop():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def serve_udp(address, port):
    server = socket.socket(family_of(address), socket.SOCK_DGRAM)
    server.bind((address, port))
    kept[f"udp {port}"] = server

    def loop():
        while True:
            text, peer = server.recvfrom(65535)
            received.append(text[:100].decode("latin1"))
            server.sendto(b"answer", peer)

    threading.Thread(target=loop, daemon=True).start()


received = []
kept = {}


def main():
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        try:
            answer = {"value": end(eval(json.loads(line), globals()))}
        except Exception as failure:
            answer = {"error": repr(failure)}
        print(json.dumps(answer), flush=True)


main()
