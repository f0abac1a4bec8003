"""Hosts without a key, at a home agent (RFC 5944). Arguments: the control socket, the interface to the home link."""

import hashlib
import hmac
import os
import random
import socket
import struct
import sys
import time

from bench import Daemon, Link, mac, udp

AGENT, AGENT_MAC, OWN = "10.1.0.2", mac("020000000001"), mac("020000000009")
CARE_OF, KEY = "10.3.0.1", bytes(range(16))
NODES = [f"10.1.0.{last}" for last in range(7, 23)]  # a node is denied once a second: one for each attack
daemon, link = Daemon(sys.argv[1], ignored=["no_route"]), Link(sys.argv[2])  # the destinations of answers do not matter


def ntp(ahead=0):
    now = time.time() + ahead + 2208988800
    return struct.pack("!II", int(now), int((now % 1) * (1 << 32)) & 0xFFFFFFFF)


def request(home=None, agent=AGENT, care_of=CARE_OF, lifetime=300, identification=None, key=KEY, spi=256):
    home = home or NODES.pop(0)
    body = struct.pack("!BBH", 1, 0, lifetime)
    body += b"".join(socket.inet_aton(address) for address in (home, agent, care_of))
    body += (identification or ntp()) + struct.pack("!BBI", 32, 36, spi)
    return body + hmac.new(key, body, hashlib.sha256).digest()


def send(payload, src=CARE_OF, **more):
    # The agent answers by its route to the care-of address. The answer is not read here.
    return lambda: link.send(AGENT_MAC, OWN, udp(src, AGENT, 434, payload, **more))


daemon.attack("wrong-key", send(request(key=bytes(16))))
daemon.attack("wrong-spi", send(request(spi=257)))
daemon.attack("unknown-node", send(request(home="10.1.0.66")))
daemon.attack("other-agent", send(request(agent="10.1.0.99")))
daemon.attack("an-hour-old", send(request(identification=ntp(-3600))))
daemon.attack("an-hour-ahead", send(request(identification=ntp(3600))))
for care_of in (NODES[0], AGENT, "255.255.255.255", "127.0.0.1", "224.0.0.1"):
    daemon.attack("care-of-" + care_of, send(request(care_of=care_of)))
good = request()
daemon.attack("reply", send(b"\x03\0" + good[2:12] + good[16:]))
daemon.attack("unknown-type", send(b"\x63" + good[1:]))
daemon.attack("empty", send(b""))
daemon.attack("truncated", send(good[:20]))
daemon.attack("truncated-extension", send(good[:30]))
daemon.attack("no-authentication", send(good[:24]))
daemon.attack("fragment", send(good, fragment=0x2000))
daemon.attack("lying-length", send(good, length=2000))

# The authentic request is accepted; its replay is not.
authentic = request()
daemon.attack("authentic", send(authentic), stores=True)
time.sleep(1.1)
daemon.attack("replay", send(authentic))
daemon.attack("replay-from-elsewhere", send(authentic, src="10.3.0.6"))


def noise():
    chance = random.Random(14)
    for _ in range(1500):
        bad = bytearray(request(home="10.1.0.7", key=bytes(16)))
        for _ in range(chance.randrange(1, 6)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        source = f"10.3.{chance.randrange(2, 250)}.{chance.randrange(1, 250)}"
        link.send(AGENT_MAC, OWN, udp(source, AGENT, 434, bytes(bad[: chance.randrange(1, len(bad) + 1)])))
        link.send(AGENT_MAC, OWN, os.urandom(chance.randrange(1, 200)))


state, _ = daemon.settled()
noise()
print("noise", "same" if daemon.settled()[0] == state else "CHANGED")
