"""What the tests of links do inside a network namespace: `launcher-network.py COMMAND ARGUMENT...`."""

import errno
import select
import socket
import struct
import sys

PATIENCE_S = 0.6


def serve(address: str, port: str) -> None:
    """Tells each TCP peer its address and prints the source of each datagram, until stdin ends."""
    tcp = socket.create_server((address, int(port)))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((address, int(port)))
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([tcp, udp, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        if udp in ready:
            print(udp.recvfrom(64)[1][0], flush=True)
        if tcp in ready:
            peer, source = tcp.accept()
            peer.sendall(source[0].encode())
            peer.close()


def tcp(address: str, port: str) -> str:
    with socket.create_connection((address, int(port)), PATIENCE_S) as peer:
        return peer.recv(64).decode()


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def ping(address: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as peer:
        peer.settimeout(PATIENCE_S)
        request = struct.pack("!BBHHH", 8, 0, 0, 1, 1)
        peer.sendto(struct.pack("!BBHHH", 8, 0, checksum(request), 1, 1), (address, 0))
        while True:
            answer, source = peer.recvfrom(256)
            if source[0] == address and answer[20] == 0:
                return "pong"


def udp(source: str, address: str, port: str) -> str:
    """A datagram that claims to come from `source`."""
    body = struct.pack("!HHHH", 4000, int(port), 9, 0) + b"x"
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, socket.IPPROTO_UDP, 0)
    packet = header + socket.inet_aton(source) + socket.inet_aton(address) + body
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as peer:
        peer.sendto(packet, (address, 0))
    return "sent"


def devices() -> str:
    return " ".join(sorted(name for _, name in socket.if_nameindex()))


COMMANDS = {"serve": serve, "tcp": tcp, "ping": ping, "udp": udp, "devices": devices}

try:
    answer = COMMANDS[sys.argv[1]](*sys.argv[2:])
except TimeoutError:
    answer = "timeout"
except OSError as error:
    answer = errno.errorcode.get(error.errno or 0, str(error))
if answer is not None:
    print(answer)
