"""What the scripts of attacks share: frames and datagrams by hand, a daemon's status, and one line for each attack.

Python's standard library only, and nothing of Wayfare: what is sent here was written from the documents of the protocols.
"""

import json
import socket
import struct
import time

BOOKKEEPING = {"consumed", "ethertype"}  # a role took the packet; this host's kernel speaks of other things


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(src, dst, protocol, payload, ttl=255, length=None, fragment=0, version=0x45):
    length = 20 + len(payload) if length is None else length
    head = struct.pack("!BBHHHBBH", version, 0, length, 1, fragment, ttl, protocol, 0)
    head += socket.inet_aton(src) + socket.inet_aton(dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def udp(src, dst, port, payload, length=None, **more):
    length = 8 + len(payload) if length is None else length
    return ip(src, dst, 17, struct.pack("!HHHH", port, port, length, 0) + payload, **more)


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


class Link:
    """An interface, for whole frames."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((name, 0))

    def send(self, dst, src, datagram, kind=0x0800):
        self.socket.send(dst + src + struct.pack("!H", kind) + datagram)

    def frames(self):
        self.socket.settimeout(0.02)
        while True:
            try:
                yield self.socket.recv(2000)
            except (socket.timeout, BlockingIOError):
                return

    def answer_arp(self, frame, address, own):
        """Answers a question for this host's address."""
        is_question = frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\x01"
        if is_question and frame[38:42] == socket.inet_aton(address):
            self.send(frame[6:12], own, arp(2, own, address) + frame[22:32], 0x0806)


def arp(kind, own, address):
    """The first half of a message; what follows is the target's link address and address."""
    return struct.pack("!HHBBH", 1, 0x0800, 6, 4, kind) + own + socket.inet_aton(address)


class Daemon:
    """A daemon by its control socket."""

    def __init__(self, control, ignored=()):
        self.control, self.ignored = control, BOOKKEEPING | set(ignored)

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(3)
        client.connect(self.control)
        return client

    def ask(self, line):
        client = self.connect()
        client.sendall(line + b"\n")
        return client.makefile("rb").readline()

    def look(self):
        """Its state, and how often it counted each reason. A role's refusals are drops, too: the larger counts."""
        status = json.loads(self.ask(b'{"do":{"verb":"status"}}'))["ok"]
        counts = {}

        def take(value, name):
            if name in ("refused", "drops", "answers"):
                for reason, count in value.items():
                    if reason not in self.ignored:
                        counts[reason] = max(count, counts.get(reason, 0))
                return None
            # Of an association, which may count what it does not act on; and how many replies had each code.
            if name in ("counts", "codes"):
                return None
            if isinstance(value, list):
                return [take(inner, name) for inner in value]
            return {key: take(inner, key) for key, inner in value.items()} if isinstance(value, dict) else value

        return take(status, ""), counts

    def settled(self):
        """The same, when nothing more changes."""
        last = self.look()
        for _ in range(40):
            time.sleep(0.05)
            now = self.look()
            if now == last:
                break
            last = now
        return last

    def attack(self, name, act):
        """Does it, and prints what was counted since and whether the state is as it was."""
        state, before = self.settled()
        act()
        now, after = self.settled()
        counted = [f"{reason}+{after[reason] - before.get(reason, 0)}" for reason in sorted(after)]
        counted = [word for word in counted if not word.endswith("+0")]
        print(name, *(counted or ["nothing"]), "same" if now == state else "CHANGED", flush=True)
