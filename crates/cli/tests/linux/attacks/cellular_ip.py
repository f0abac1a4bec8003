"""A host in a cell that changes the route-updates of other hosts (draft-ietf-mobileip-cellularip-00, section 3.3.2).

Arguments: the control socket, the interface to the cell, the one to the gateway's uplink.
"""

import os
import random
import sys
import time

from bench import Daemon, Link, during, icmp_errors, ip, mac, many, udp
from cip import GATEWAY, HOST, checksummed, data_for, data_of, host_of, mover, ntp, update

GATEWAY_AIR, GATEWAY_UP = mac("020000000001"), mac("020000000002")
ATTACKER, MOBILE, ROUTER = mac("020000000066"), mac("020000000007"), mac("020000000009")
OTHER = "10.1.0.8"
daemon, air, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def send(datagram, link=air, to=GATEWAY_AIR, by=ATTACKER):
    return lambda: link.send(to, by, datagram)


def changed(datagram, at, value):
    """Changes a byte of the message, and corrects the checksum."""
    message = bytearray(datagram[20:])
    message[at] ^= value
    message[2:4] = b"\0\0"
    return datagram[:20] + checksummed(bytes(message))


def downlink(step):
    """Prints the hosts in the cell that get a datagram for the host."""
    text = b"for the host alone " + step.encode()
    up.send(GATEWAY_UP, ROUTER, udp("10.9.0.2", HOST, 9000, text))
    time.sleep(0.2)
    print(step, *(frame[:6].hex() for frame in air.frames() if text in frame and frame[6:12] == GATEWAY_AIR), flush=True)


first = update()
daemon.attack("authentic", send(first, by=MOBILE))
downlink("after-the-authentic")
daemon.attack("replay", send(first))
daemon.attack("older", send(update(stamp=ntp(-1))))
daemon.attack("out-of-window", send(update(stamp=ntp(-60))))
daemon.attack("ahead-of-window", send(update(stamp=ntp(60))))
daemon.attack("wrong-key", send(update(key=bytes(16))))
daemon.attack("digest", send(changed(update(), 30, 1)))
daemon.attack("other-station", send(update(station=9)))
daemon.attack("other-gateway", send(update(gateway="10.9.0.9")))
daemon.attack("other-generation", send(update(generation=7)))
daemon.attack("gateways-own-address", send(update(host=GATEWAY)))
daemon.attack("nowhere", send(update(host="255.255.255.255")))
daemon.attack("semisoft-by-another", send(changed(update(), 12, 0x10)))
daemon.attack("indirect", send(update(flags=0x22)))
daemon.attack("unused-flag", send(update(flags=0x82)))
daemon.attack("other-authentication", send(update(flags=1)))
daemon.attack("unknown-information", send(update(more=b"\x05\x01x")))
daemon.attack("overrun", send(update(more=b"\x04\xffx")))
daemon.attack("truncated", send(ip(HOST, GATEWAY, 1, checksummed(bytes([253, 0, 0, 0]) + bytes(10)))))
daemon.attack("unknown-code", send(update(code=5)))
daemon.attack("from-above", send(update(), link=up, to=GATEWAY_UP, by=ROUTER))
daemon.attack("data-of-another", send(udp(HOST, "10.9.0.2", 9000, b"x")))
daemon.attack("data-of-unknown-host", send(udp(OTHER, "10.9.0.2", 9000, b"x")))


def flood():
    """Sends wrong digests, faster than a radio sends valid ones."""
    for _ in range(3000):
        air.send(GATEWAY_AIR, ATTACKER, update(key=bytes(16)))


state, before = daemon.settled()
flood()
now, after = daemon.settled()
wrong = {reason: after[reason] - before.get(reason, 0) for reason in ("bad_auth", "auth_limit") if reason in after}
print("flood", "limited" if wrong.get("auth_limit") else "unlimited", sum(wrong.values()), "same" if now == state else "CHANGED")
chance = random.Random(14)
for _ in range(1500):
    bad = bytearray(update(key=bytes(16)))
    for _ in range(chance.randrange(1, 6)):
        bad[chance.randrange(len(bad))] = chance.randrange(256)
    air.send(GATEWAY_AIR, ATTACKER, bytes(bad[: chance.randrange(1, len(bad) + 1)]))
    air.send(GATEWAY_AIR, ATTACKER, os.urandom(chance.randrange(1, 200)))
print("noise", "same" if daemon.settled()[0] == state else "CHANGED")


# From many hosts: each neighbor has a separate limit. A host may have any address of the network.
def forged_for(number):
    return update(host=host_of(number), key=bytes(16))


again = update()
daemon.attack("authentic-again", send(again, by=MOBILE))
forged = update(key=bytes(16))  # later than the accepted ones: an older timestamp is refused before the digest is checked
daemon.flood("forged-by-many", "bad_auth auth_limit", many(lambda _: forged), air, GATEWAY_AIR)
daemon.flood("replayed-by-many", "stale_timestamp auth_limit", many(lambda _: again), air, GATEWAY_AIR)
daemon.flood("forged-for-many", "bad_auth auth_limit", many(forged_for), air, GATEWAY_AIR)
daemon.flood("data-of-many", "uplink_no_mapping", many(data_of), air, GATEWAY_AIR)
daemon.flood("icmp-errors-of-many", "", icmp_errors(GATEWAY, 17, 9000), up, GATEWAY_UP)
daemon.flood("data-for-many", "no_mapping", many(data_for), up, GATEWAY_UP)
downlink("after-all-attacks")
time.sleep(1)  # until the limit of the flood is over
daemon.attack("authentic-elsewhere", send(update(), by=ROUTER))
downlink("after-the-host-moved")


def mixed(number):
    return [forged, again, forged_for(number), data_of(number)][number % 4]


moved_back = mover(air, (GATEWAY_AIR, GATEWAY_UP), up, ROUTER, MOBILE, update)
print("a-move-in-the-flood", during(lambda: many(mixed), air, GATEWAY_AIR, moved_back))
