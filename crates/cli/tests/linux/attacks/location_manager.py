"""Hosts without a mobile node's key, at a location manager: DNS UPDATE (RFC 2136) signed by TSIG (RFC 8945).

Arguments: the control socket. This host has the addresses from which the messages come.
"""

import hashlib
import hmac
import os
import random
import socket
import struct
import sys
import time

from bench import NOBODY, Daemon, Link, during, icmp_errors, mac, many, one_of_many, udp

MANAGER_LINK = mac("020000000001")
MANAGER, OWN, ZONE, NODE, KEY = "10.3.0.1", "10.3.0.66", "sigma.example", "mn.sigma.example", bytes(range(16))
daemon, air = Daemon(sys.argv[1], NOBODY), Link(sys.argv[2])
door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
door.bind((OWN, 0))
door.settimeout(2)
numbers = iter(range(1, 1 << 16))


def name(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def update(place="10.66.6.6", node=NODE, zone=ZONE):
    """Deletes the addresses of a node, and adds one."""
    head = struct.pack("!HHHHHH", next(numbers), 0x2800, 1, 0, 2, 0)
    question = name(zone) + struct.pack("!HH", 6, 1)
    gone = name(node) + struct.pack("!HHIH", 1, 255, 0, 0)
    there = name(node) + struct.pack("!HHIH", 1, 1, 5, 4) + socket.inet_aton(place)
    return head + question + gone + there


def signed(message, key=KEY, owner=NODE, algorithm="hmac-sha256", ahead=0, cut=32):
    stamp = struct.pack("!Q", int(time.time()) + ahead)[2:]
    variables = name(owner) + struct.pack("!HI", 255, 0) + name(algorithm) + stamp + struct.pack("!HHH", 300, 0, 0)
    code = hmac.new(key, message + variables, hashlib.sha256).digest()[:cut]
    content = name(algorithm) + stamp + struct.pack("!HH", 300, len(code)) + code + message[:2] + struct.pack("!HH", 0, 0)
    record = name(owner) + struct.pack("!HHIH", 250, 255, 0, len(content)) + content
    return message[:10] + b"\0\1" + message[12:] + record


def question(node=NODE):
    return struct.pack("!HHHHHH", next(numbers), 0x0100, 1, 0, 0, 0) + name(node) + struct.pack("!HH", 1, 1)


def send(message):
    return lambda: door.sendto(message, (MANAGER, 53))


good = signed(update(place="10.1.8.100"))
daemon.attack("authentic", send(good), stores=True)
daemon.attack("replay", send(good))
daemon.attack("unsigned", send(update()))
daemon.attack("wrong-key", send(signed(update(), key=bytes(16))))
daemon.attack("unknown-key", send(signed(update(), owner="other.sigma.example")))
daemon.attack("unknown-algorithm", send(signed(update(), algorithm="hmac-md5.sig-alg.reg.int")))
daemon.attack("cut-short", send(signed(update(), cut=8)))
daemon.attack("an-hour-old", send(signed(update(), ahead=-4000)))
daemon.attack("an-hour-ahead", send(signed(update(), ahead=4000)))
daemon.attack("name-of-another", send(signed(update(node="other.sigma.example"))))
daemon.attack("zone-of-another", send(signed(update(zone="other.example"))))
changed = bytearray(signed(update()))
changed[12 + len(name(ZONE)) + 4 + 2 * len(name(NODE)) + 20 + 3] ^= 1
daemon.attack("changed", send(bytes(changed)))
daemon.attack("short", send(b"\0\1\x28"))
daemon.attack("an-answer", send(question()[:2] + b"\x81\0" + question()[4:]))
daemon.attack("loop-of-names", send(question()[:12] + b"\xc0\x0c" + struct.pack("!HH", 1, 1)))
daemon.attack("lying-counts", send(question()[:4] + b"\xff\xff" * 4 + question()[12:]))

state, _ = daemon.settled()
chance = random.Random(14)
for _ in range(1500):
    bad = bytearray(signed(update(), key=bytes(16)))
    for _ in range(chance.randrange(1, 6)):
        bad[chance.randrange(len(bad))] = chance.randrange(256)
    send(bytes(bad[: chance.randrange(1, len(bad) + 1)]))()
    send(os.urandom(chance.randrange(1, 200)))()
print("noise", "same" if daemon.settled()[0] == state else "CHANGED")


def of_many(payload):
    return many(lambda number: udp(one_of_many(number), MANAGER, 53, payload(number)))


unsigned, forged, asked = update(), signed(update(), key=bytes(16)), question()
daemon.flood("questions-of-many", "NOERROR", of_many(lambda _: asked), air, MANAGER_LINK)
daemon.flood("unsigned-of-many", "REFUSED", of_many(lambda _: unsigned), air, MANAGER_LINK)
daemon.flood("forged-of-many", "BADSIG", of_many(lambda _: forged), air, MANAGER_LINK)
daemon.flood("replayed-by-many", "NOERROR", of_many(lambda _: good), air, MANAGER_LINK)
daemon.flood("short-of-many", "unreadable", of_many(lambda _: b"xy"), air, MANAGER_LINK)
daemon.flood("icmp-errors-of-many", "", icmp_errors(MANAGER, 17, 53), air, MANAGER_LINK)


def moves():
    """Returns whether the mobile node's own update is answered (RFC 2136, section 2.2: no error)."""
    message = signed(update(place="10.1.8.101"))
    door.settimeout(0.5)
    door.sendto(message, (MANAGER, 53))
    try:
        while True:
            answer = door.recv(2000)
            if answer[:2] == message[:2]:
                return answer[3] & 15 == 0
    except socket.timeout:
        return False


mixed = [asked, unsigned, forged, good, b"xy"]
flood = lambda: of_many(lambda number: mixed[number % len(mixed)])
print("a-signed-update-in-the-flood", during(flood, air, MANAGER_LINK, moves))
