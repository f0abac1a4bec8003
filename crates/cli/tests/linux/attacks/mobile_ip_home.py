"""Hosts without a key, at a home agent (RFC 5944, sections 3.8 and 5). Arguments: the control socket, the interface to the
home link.

The home agent answers by its route to the sender of a request. There is no route, so the answers end at the agent; their codes
are counted. A request with a wrong authenticator is denied once a second to each sender, so each attack has another sender.
"""

import os
import random
import socket
import struct
import sys
import time

from bench import Daemon, Link, arp, during, icmp, ip, mac, many, station, udp
from mip import (B, FOREIGN_HOME, G, KEY, M, MOBILE_FOREIGN, MOBILE_HOME, RESERVED, S, T, address, answer, authentication, body,
                 extension, hmac_md5, keyed_md5, nonce, ntp, signed, solicitation)

AGENT, AGENT_MAC, OWN = "10.1.0.2", mac("020000000001"), mac("020000000009")
CARE_OF, FOREIGN, ALL = "10.3.0.1", "10.4.0.1", b"\xff" * 6
NODES = [f"10.1.0.{last}" for last in range(7, 60)]  # nodes with timestamps and HMAC-SHA-256
WITH_NONCES, LEGACY = "10.1.0.200", "10.1.0.201"
daemon, link = Daemon(sys.argv[1], ignored=["no_route"]), Link(sys.argv[2])  # the destinations of answers do not matter
senders = (f"10.3.{high}.{low}" for high in range(1, 200) for low in range(1, 250))


def request(home=None, agent=AGENT, care_of=CARE_OF, key=KEY, spi=256, **more):
    return signed(body(home or NODES[0], agent, care_of, **more), key=key, spi=spi)


def send(payload, src=None, to=AGENT, frame_to=AGENT_MAC, **more):
    sender = src or next(senders)
    return lambda: link.send(frame_to, OWN, udp(sender, to, 434, payload, **more))


def attack(name, payload, stores=False, **more):
    daemon.attack(name, send(payload, **more), stores=stores)


# --- authentication ------------------------------------------------------------------------------------------------

attack("wrong-key", request(key=bytes(16)))
attack("wrong-spi", request(spi=257))
attack("reserved-spi", request(spi=0))
attack("unknown-node", request(home="10.1.0.166"))
plain = body(NODES[0], AGENT, CARE_OF)
attack("no-authentication", plain)
attack("authenticator-of-another-algorithm", plain + authentication(plain, algorithm=keyed_md5))
attack("hmac-md5-for-sha256", plain + authentication(plain, algorithm=hmac_md5))
legacy = body(LEGACY, AGENT, CARE_OF)
attack("keyed-md5-for-hmac-md5", legacy + authentication(legacy, algorithm=keyed_md5))
good = signed(plain)
attack("half-an-authenticator", plain + extension(32, good[26:46]))
attack("empty-authenticator", plain + extension(32, good[26:30]))
attack("longer-authenticator", plain + extension(32, good[26:] + b"\0"))
attack("no-spi", plain + extension(32, b"\0\0\1"))
attack("authentication-twice", signed(good))
attack("authentication-of-another-peer", plain + authentication(plain, kind=MOBILE_FOREIGN))
other_first = plain + authentication(plain, kind=MOBILE_FOREIGN)
attack("foreign-authentication-first", signed(other_first))
attack("another-care-of-address", good[:12] + address("10.6.6.6") + good[16:])
attack("another-home-address", good[:4] + address(NODES[1]) + good[8:])
attack("a-longer-lifetime", good[:2] + b"\xff\xff" + good[4:])
attack("another-flag", good[:1] + bytes([S | B]) + good[2:])
attack("a-byte-in-a-skipped-extension", plain + extension(200, b"a") + authentication(plain + extension(200, b"b")))
sender = next(senders)
daemon.attack("wrong-key-twice", lambda: [send(request(key=bytes(16)), src=sender)() for _ in range(2)])

# --- foreign agents ------------------------------------------------------------------------------------------------

attack("unknown-agent-signs", good + authentication(good, kind=FOREIGN_HOME))
attack("agent-does-not-sign", request(NODES[2], care_of=FOREIGN), src=FOREIGN)
fresh = request(NODES[2])
attack("agent-signs-wrongly", fresh + authentication(fresh, kind=FOREIGN_HOME, spi=300), src=FOREIGN)

# --- identification ------------------------------------------------------------------------------------------------

attack("other-agent", request(NODES[3], agent="10.1.0.99"))
attack("an-hour-old", request(NODES[3], identification=ntp(-3600)))
attack("an-hour-ahead", request(NODES[3], identification=ntp(3600)))
attack("nine-seconds-ahead", request(NODES[3], identification=ntp(9)))
attack("zero", request(NODES[3], identification=bytes(8)))
attack("before-1968", request(NODES[3], identification=b"\x7f" + bytes(7)))

# --- addresses and flags -------------------------------------------------------------------------------------------

for care_of in (NODES[4], AGENT, "10.9.0.1", "255.255.255.255", "10.1.0.255", "127.0.0.1", "224.0.0.1", "0.0.0.0", "240.0.0.1"):
    attack("care-of-" + care_of, request(NODES[4], care_of=care_of))
for home in ("0.0.0.0", "127.0.0.1", "255.255.255.255", AGENT):
    attack("home-" + home, request(home))
for name, flags in (("reserved-flag", RESERVED), ("minimal", M), ("gre", G), ("reverse-tunnel", T)):
    attack(name, request(NODES[4], flags=flags))

# --- malformed -----------------------------------------------------------------------------------------------------

attack("reply", signed(answer(good)))
attack("own-reply", signed(answer(good)), src=AGENT)
attack("from-itself", request(NODES[5], key=bytes(16)), src=AGENT)
attack("unknown-type", b"\x63" + good[1:])
attack("empty", b"")
attack("truncated", good[:20])
attack("one-byte-behind", good + b"\0")
attack("extension-without-its-end", plain + b"\x80")
attack("truncated-extension", good[:30])
attack("extension-overrun", plain + extension(128, b"abc", length=200))
attack("unknown-extension", signed(plain + extension(77, b"abc")))
attack("generalized-authentication", plain + extension(36, bytes(20)))
attack("fragment", good, fragment=0x2000)
attack("lying-length", good, length=2000)
attack("length-below-the-header", good, length=4)


def bad_checksum():
    datagram = udp(next(senders), AGENT, 434, good)
    link.send(AGENT_MAC, OWN, datagram[:26] + b"\x12\x34" + datagram[28:])


daemon.attack("wrong-checksum", bad_checksum)

# --- discovery -----------------------------------------------------------------------------------------------------

attack("to-the-network-without-key", request(agent="10.1.0.255", key=bytes(16)), to="10.1.0.255", frame_to=ALL)
for name, more in (
    ("solicitation-from-afar", {"ttl": 64}),
    ("solicitation-code", {"code": 1}),
    ("solicitation-short", {"content": b""}),
    ("solicitation-checksum", {"bad_sum": True}),
):
    daemon.attack(name, lambda: link.send(ALL, OWN, solicitation("10.1.0.9", **more)))
daemon.attack("solicitation-as-the-agent", lambda: link.send(ALL, OWN, solicitation(AGENT)))
daemon.attack("solicitation-of-a-group", lambda: link.send(ALL, b"\x01\0\x5e\0\0\x01", solicitation("10.1.0.9")))


def answers(frames):
    return sum(frame[6:12] == AGENT_MAC and frame[23] == 1 and frame[34] == 9 for frame in frames)


def solicitations():
    began = time.time()
    for number in range(2000):
        link.send(ALL, station(number), solicitation(f"10.1.{number >> 8}.{number & 255}"))
    count = answers(link.hear(0.3))
    # At most 40 answers a second, and one advertisement by time.
    print("answers-to-solicitations", "limited" if count <= 41 * (2 + time.time() - began) else count)


list(link.frames())
state, _ = daemon.settled()
solicitations()
print("solicitations", "same" if daemon.settled()[0] == state else "CHANGED")

# --- announcements -------------------------------------------------------------------------------------------------


def announced():
    """The link addresses for which the agent has announced a home address by gratuitous ARP."""
    return sorted({
        frame[22:28].hex() for frame in link.hear(0.2)
        if frame[12:14] == b"\x08\x06" and frame[28:32] == frame[38:42] and frame[6:12] == AGENT_MAC
    })


def answered(home):
    """Whether the agent answers ARP requests for a home address."""
    link.send(ALL, OWN, arp(1, OWN, "10.1.0.9") + bytes(6) + address(home), 0x0806)
    return any(frame[12:14] == b"\x08\x06" and frame[28:32] == address(home) for frame in link.hear(0.2))


print("announced-so-far", *announced() or ["nothing"])
print("answers-for-a-node-at-home", answered(NODES[6]))

# --- authentic messages, and their replays ---------------------------------------------------------------------------

first, older, second, third = (request(NODES[6], lifetime=lifetime) for lifetime in (300, 300, 301, 302))
attack("authentic", first, src=CARE_OF, stores=True)
print("announced-now", *announced() or ["nothing"])
print("answers-for-a-node-that-is-away", answered(NODES[6]))
attack("deregistration-without-key", request(NODES[6], lifetime=0, key=bytes(16)))
attack("deregistration-at-home-without-key", request(NODES[6], care_of=NODES[6], lifetime=0, key=bytes(16)), src=NODES[6])
attack("renewal", second, src=CARE_OF, stores=True)
attack("renewed-again", third, src=CARE_OF, stores=True)
attack("replay", first, src=CARE_OF)
attack("older", older)
# A repetition of the last request gets the same reply, once a second.
daemon.attack("last-repeated-twice", lambda: [send(third, src=source)() for source in (CARE_OF, "10.3.0.6")])
gone = request(NODES[6], lifetime=0)
attack("deregistration", gone, src=CARE_OF, stores=True)
attack("replay-after-deregistration", second)
attack("deregistration-replayed", gone)
print("announced-at-the-end", *announced() or ["nothing"])
authentic = first
attack("endless", request(NODES[7], lifetime=0xFFFF), stores=True)
status = daemon.look()[0]["home_agent"]["bindings"][NODES[7]]
print("endless-lifetime", status[0]["lifetime_s"])

# --- nonces --------------------------------------------------------------------------------------------------------

seen = []


def nonce_of(name, payload, stores=False):
    """Sends a request from the home link, where the answer can be read. Returns the nonce in the answer."""
    list(link.frames())
    attack(name, payload, src=WITH_NONCES, stores=stores)
    replies = [frame[42:] for frame in link.frames() if frame[23:24] == b"\x11" and frame[42:43] == b"\x03"]
    return struct.unpack("!I", replies[-1][12:16])[0] if replies else None


def with_nonce(high, low, care_of=CARE_OF):
    return request(WITH_NONCES, identification=nonce(high, low), care_of=care_of)


first = nonce_of("nonce-guessed", with_nonce(7, 1))
used = with_nonce(first, 2)
second = nonce_of("nonce-right", used, stores=True)
nonce_of("nonce-replayed", used)
nonce_of("nonce-used-again", with_nonce(first, 3))
denied = with_nonce(second, 4, care_of=AGENT)
third = nonce_of("nonce-denied", denied)
nonce_of("nonce-of-a-denied-request", with_nonce(second, 5))
print("nonces-differ", len({first, second, third}) == 3)

# --- several bindings ----------------------------------------------------------------------------------------------

for number in range(8):
    send(request(NODES[8], care_of=f"10.5.0.{number + 1}", flags=S))()
    daemon.settled()
attack("ninth-binding", request(NODES[8], care_of="10.5.0.9", flags=S))
print("bindings", len(daemon.look()[0]["home_agent"]["bindings"][NODES[8]]))
attack("another-binding-without-key", request(NODES[8], care_of="10.5.0.1", key=bytes(16)))

# --- floods --------------------------------------------------------------------------------------------------------


def noise():
    chance = random.Random(14)
    for _ in range(1500):
        bad = bytearray(request("10.1.0.7", key=bytes(16)))
        for _ in range(chance.randrange(1, 6)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        source = f"10.3.{chance.randrange(2, 250)}.{chance.randrange(1, 250)}"
        link.send(AGENT_MAC, OWN, udp(source, AGENT, 434, bytes(bad[: chance.randrange(1, len(bad) + 1)])))
        link.send(AGENT_MAC, OWN, os.urandom(chance.randrange(1, 200)))


state, _ = daemon.settled()
noise()
print("noise", "same" if daemon.settled()[0] == state else "CHANGED")
forged = request(NODES[9], key=bytes(16))
daemon.flood("forged-by-one", "answered_recently", many(lambda _: udp("10.3.0.77", AGENT, 434, forged)), link, AGENT_MAC)
daemon.flood("forged-by-many", "denied", many(lambda n: udp(f"10.77.{n >> 8}.{n & 255}", AGENT, 434, forged)), link, AGENT_MAC)
daemon.flood("replayed-by-many", "code-133", many(lambda n: udp(f"10.77.{n >> 8}.{n & 255}", AGENT, 434, authentic)), link, AGENT_MAC)
unknown = request("10.1.0.166")
daemon.flood("unknown-by-many", "no_association", many(lambda n: udp(f"10.77.{n >> 8}.{n & 255}", AGENT, 434, unknown)), link, AGENT_MAC)


def honest():
    """Registers the next node from the home link. Returns whether the agent accepts."""
    asked = request(NODES[10])
    send(asked, src=NODES[10])()
    end = time.time() + 1.5
    while time.time() < end:
        for frame in link.frames():
            if frame[42:44] == b"\x03\0" and frame[58:62] == asked[20:24]:
                return True
    return False


print("a-registration-during-the-flood", during(lambda: many(lambda n: udp(f"10.77.{n >> 8}.{n & 255}", AGENT, 434, forged)), link, AGENT_MAC, honest))
