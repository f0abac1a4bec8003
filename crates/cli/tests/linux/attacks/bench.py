"""Shared functions of the attack scripts: frames and datagrams, the status of a daemon, and one line for each attack.

Python's standard library only, and nothing of Wayfare: the messages follow the specifications of the protocols.
"""

import itertools
import json
import socket
import struct
import threading
import time

BOOKKEEPING = {"consumed", "ethertype"}  # a role took the packet; the kernel of this host sends other protocols
# Packets to hosts that do not exist wait for a link address until they are dropped.
NOBODY = {"no_neighbor", "neighbor_queue_full", "neighbor_table_full"}


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(src, dst, protocol, payload, ttl=255, length=None, fragment=0, version=0x45, ident=1):
    length = 20 + len(payload) if length is None else length
    head = struct.pack("!BBHHHBBH", version, 0, length, ident, fragment, ttl, protocol, 0)
    head += socket.inet_aton(src) + socket.inet_aton(dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def udp(src, dst, port, payload, length=None, **more):
    length = 8 + len(payload) if length is None else length
    return ip(src, dst, 17, struct.pack("!HHHH", port, port, length, 0) + payload, **more)


def icmp(src, dst, kind, code, content):
    message = bytes([kind, code, 0, 0]) + content
    return ip(src, dst, 1, message[:2] + struct.pack("!H", checksum(message)) + message[4:])


def icmp_errors(of, protocol, port, quoted=b""):
    """Errors from many hosts about packets that this host allegedly sent: unreachable net, host, protocol and port, too big for
    a path, TTL exceeded, a wrong header; and two types that hosts ignore (source quench, RFC 6633; redirect)."""
    kinds = [(3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (11, 0), (12, 0), (4, 0), (5, 1)]
    for number in range(1800):
        kind, code = kinds[number % len(kinds)]
        to = one_of_many(number + 7)
        content = quoted or struct.pack("!HHII", port, 10000 + number, number, 0)
        rest = struct.pack("!HH", 0, 68) if (kind, code) == (3, 4) else socket.inet_aton(to) if kind == 5 else bytes(4)
        yield number, icmp(one_of_many(number), of, kind, code, rest + ip(of, to, protocol, content))


def one_of_many(number):
    """An address on the link of 10.3.0.0/16; there are 60 000 of them."""
    return socket.inet_ntoa(struct.pack("!I", 0x0A031000 + number))


def station(number):
    """The link address of the host with this number."""
    return b"\x02\x66" + struct.pack("!I", number)


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

    def hear(self, seconds):
        """Returns the frames that arrive within this time."""
        self.socket.settimeout(0.02)
        end = time.time() + seconds
        while time.time() < end:
            try:
                yield self.socket.recv(2000)
            except (socket.timeout, BlockingIOError):
                pass

    def answer_arp(self, frame, address, own):
        """Answers an ARP request for this host's address."""
        is_question = frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\x01"
        if is_question and frame[38:42] == socket.inet_aton(address):
            self.send(frame[6:12], own, arp(2, own, address) + frame[22:32], 0x0806)


def arp(kind, own, address):
    """The first half of a message; what follows is the target's link address and address."""
    return struct.pack("!HHBBH", 1, 0x0800, 6, 4, kind) + own + socket.inet_aton(address)


def sent_by(visited, up, router, seconds):
    """Returns what an agent sends meanwhile: the frames on its visited link, and those on its uplink. `visited` and `up`: the link,
    and the agent's link address there. Answers ARP on the uplink for `router`: its address and its link address."""
    seen = ([], [])
    end = time.time() + seconds
    while time.time() < end:
        for (link, own), frames in zip((visited, up), seen):
            for frame in link.frames():
                if frame[6:12] == own:
                    frames.append(frame)
                    if link is up[0]:
                        link.answer_arp(frame, *router)
    return seen


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
        """Returns the daemon's state, and its counts by reason."""
        return self.look_whole()[:2]

    def look_whole(self):
        """Returns the state, the counts, and the number of all drops, also of those with ignored reasons. Refusals of a role are also
        drops, so the larger number is used."""
        status = json.loads(self.ask(b'{"do":{"verb":"status"}}'))["ok"]
        status.pop("clock", None)  # the time
        status.pop("data_path", None)  # the number of frames
        drops = sum(status.get("drops", {}).values())
        counts = {}

        def take(value, name):
            if name in ("refused", "drops", "answers"):
                for reason, count in value.items():
                    if reason not in self.ignored:
                        counts[reason] = max(count, counts.get(reason, 0))
                return None
            # The number of replies by code.
            if name == "codes":
                for code, count in value.items():
                    counts["code-" + code] = counts.get("code-" + code, 0) + count
                return None
            # The number of packets from reverse tunnels that were forwarded, and of ICMP errors that were believed.
            if name in ("reversed", "tunnel_errors") and isinstance(value, int):
                counts[name] = counts.get(name, 0) + value
                return None
            # What is learnt of a path, without the time until when: each report extends it.
            if name == "paths":
                return {exit: [(one["learnt"], one["path_mtu"]) for one in all] for exit, all in value.items()}
            # The counters of an association, which include ignored packets.
            if name == "counts":
                return None
            if isinstance(value, list):
                return [take(inner, name) for inner in value]
            return {key: take(inner, key) for key, inner in value.items()} if isinstance(value, dict) else value

        return take(status, ""), counts, drops

    def settled(self):
        """Returns the state and the counts after the last change. A slow daemon is still busy with the frames of a flood, also with those
        whose drops are ignored."""
        last = self.look_whole()
        for _ in range(200):
            time.sleep(0.05)
            now = self.look_whole()
            if now == last:
                break
            last = now
        return last[:2]

    def attack(self, name, act, stores=False):
        """Runs an attack, and prints the new counts and whether the state is unchanged. `stores`: the daemon should store a
        record first, which takes as long as the disk is busy."""
        state, before = self.settled()
        act()
        for _ in range(100 if stores else 0):
            if self.look()[0] != state:
                break
            time.sleep(0.05)
        now, after = self.settled()
        counted = [f"{reason}+{after[reason] - before.get(reason, 0)}" for reason in sorted(after)]
        counted = [word for word in counted if not word.endswith("+0")]
        print(name, *(counted or ["nothing"]), "same" if now == state else "CHANGED", flush=True)

    def flood(self, name, named, frames, link, to):
        """Sends frames of many hosts. The counts depend on the duration, so it prints only whether one of the `named` reasons was
        counted, if there are any."""
        state, before = self.settled()
        pour(frames, link, to)
        now, after = self.settled()
        counted = {reason for reason in after if after[reason] > before.get(reason, 0)}
        words = ["counted" if counted & set(named.split()) else f"UNCOUNTED: {sorted(counted)}"] if named else []
        print(name, *words, "same" if now == state else "CHANGED", flush=True)


def many(datagram, count=3000):
    """One message of each of this number of hosts."""
    return ((number, datagram(number)) for number in range(count))


def pour(frames, link, to, burst=500):
    """Sends each message from the link address of its host."""
    for number, datagram in frames:
        link.send(to, station(number), datagram)
        if number % burst == burst - 1:
            time.sleep(0.01)


def during(frames, link, to, ask, tries=6):
    """Returns whether an honest host, which repeats its request, gets an answer during a flood. The flood has about 3000 frames
    per second: it tests the work of the daemon per frame, and not the speed of the machine."""
    over = threading.Event()

    def flood():
        while not over.is_set():
            pour(itertools.takewhile(lambda _: not over.is_set(), frames()), link, to, burst=30)

    pouring = threading.Thread(target=flood)
    pouring.start()
    time.sleep(0.3)
    answered = any(ask() for _ in range(tries))
    over.set()
    pouring.join()
    return answered
