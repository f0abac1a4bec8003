"""Invalid frames to a router without any role: Ethernet, ARP and IPv4.

Arguments: the control socket, and the interfaces of this host to both of the router's.
"""

import os
import random
import socket
import struct
import sys
import time

from bench import Daemon, Link, arp, ip, mac, udp

LEFT, RIGHT = mac("020000000001"), mac("020000000002")
OWN, HOST, ALL = mac("020000000066"), mac("020000000009"), b"\xff" * 6
NEAR, ROUTER, FAR = "10.3.0.66", "10.3.0.1", "10.9.0.2"
daemon, left, right = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])
chance = random.Random(14)


def forwarded(step):
    """Prints which host gets an ordinary datagram, if the router still forwards it."""
    text = b"ordinary " + step.encode()
    came = []
    for _ in range(5):
        left.send(LEFT, OWN, udp(NEAR, FAR, 9000, text))
        end = time.time() + 0.3
        while time.time() < end and not came:
            for frame in right.frames():
                right.answer_arp(frame, FAR, HOST)
                came += [frame[:6].hex()] if text in frame else []
    print(step, came[0] if came else "nothing", flush=True)


def send(datagram, to=LEFT, by=OWN, kind=0x0800):
    return lambda: left.send(to, by, datagram, kind)


def good(**more):
    return udp(NEAR, FAR, 9000, b"x", **more)


forwarded("at-first")
daemon.attack("empty", send(b""))
daemon.attack("version", send(b"\x65" + good()[1:]))
daemon.attack("header-length", send(b"\x4f" + good()[1:]))
daemon.attack("header-too-short", send(b"\x44" + good()[1:]))
daemon.attack("length-beyond", send(ip(NEAR, FAR, 17, bytes(20), length=2000)))
daemon.attack("length-within", send(ip(NEAR, FAR, 17, bytes(20), length=10)))
daemon.attack("checksum", send(good()[:10] + b"\0\0" + good()[12:]))
daemon.attack("no-hops", send(good(ttl=0)))
daemon.attack("last-hop", send(good(ttl=1)))
daemon.attack("another-station", send(good(), to=mac("02000000dead")))
daemon.attack("no-route", send(udp(NEAR, "172.16.0.1", 9000, b"x")))
daemon.attack("arp-short", send(arp(1, OWN, NEAR)[:20], to=ALL, kind=0x0806))
daemon.attack("arp-conflict", send(arp(2, OWN, ROUTER) + LEFT + socket.inet_aton(ROUTER), to=ALL, kind=0x0806))
forwarded("between")


def floods():
    for number in range(20000):
        sender = socket.inet_ntoa(struct.pack("!I", 0x0A030100 + number))
        link_address = b"\x02\x66" + struct.pack("!I", number)
        left.send(ALL, link_address, arp(1 + number % 2, link_address, sender) + LEFT + socket.inet_aton(ROUTER), 0x0806)
        if number % 4 == 0:
            absent = f"10.9.{chance.randrange(1, 250)}.{chance.randrange(1, 250)}"
            left.send(LEFT, OWN, udp(NEAR, absent, 9000, bytes(1000)))
            left.send(LEFT, OWN, os.urandom(chance.randrange(1, 1400)))
        if number % 500 == 0:
            time.sleep(0.01)


floods()
time.sleep(1)
forwarded("after-the-floods")
