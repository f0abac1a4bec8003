"""Hosts on the link of a DHCP server (RFC 2131). Arguments: the control socket, the interfaces to both links of the server."""

import random
import struct
import sys
import time

from bench import Daemon, Link, arp, during, mac, many, pour, station
from dhcp import (ACK, DECLINE, DISCOVER, IDENTIFIER, INFORM, LEASE, MASK, NAK, OFFER, OVERLOAD, RELEASE, REQUEST, REQUESTED, SERVER,
                  address, datagram, message, option, read)

SERVER_MAC, SERVER_IP, ALL = mac("020000000001"), "10.3.0.1", b"\xff" * 6
VICTIM, ATTACKER = mac("020000000007"), mac("020000000066")
daemon, lan, other = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])
OURS = option(SERVER, address(SERVER_IP))


def send(payload, by=ATTACKER, src="0.0.0.0", dst="255.255.255.255", to=ALL, link=lan, **more):
    link.send(to, by, datagram(src, dst, False, payload, **more))


def attack(name, payload, **more):
    daemon.attack(name, lambda: send(payload, **more))


def answers(transaction, seconds=0.4):
    """The types and addresses of the server's answers to a transaction."""
    found = []
    for frame in lan.hear(seconds):
        got = read(frame) if frame[6:12] == SERVER_MAC else None
        if got and got[1] == transaction:
            found.append((got[0], got[3]))
    return found


def lease(client, transaction):
    """Acquires an address for a client. Returns the address."""
    send(message(DISCOVER, transaction, client), by=client)
    offers = [yours for kind, yours in answers(transaction) if kind == OFFER]
    if not offers:
        return None
    send(message(REQUEST, transaction, client, option(REQUESTED, address(offers[0])) + OURS), by=client)
    acks = [yours for kind, yours in answers(transaction) if kind == ACK]
    return acks[0] if acks else None


def renewed(step):
    """Prints the answers to the victim's request to extend its lease. The victim repeats it if there is no answer."""
    daemon.settled()
    found = []
    for _ in range(5):
        send(message(REQUEST, 0x7000, VICTIM, current=own, flags=0), by=VICTIM, src=own, dst=SERVER_IP, to=SERVER_MAC)
        found = answers(0x7000)
        if found:
            break
    print(step, *("extended" if answer == (ACK, own) else f"{answer}" for answer in found), flush=True)


own = lease(VICTIM, 0x7001)
print("leased", own, flush=True)
renewed("at-first")

# --- malformed -------------------------------------------------------------------------------------------------------------

good = message(DISCOVER, 1, ATTACKER)
attack("empty", b"")
attack("truncated", good[:239])
attack("cookie", message(DISCOVER, 1, ATTACKER, cookie=bytes(4)))
attack("hardware", message(DISCOVER, 1, ATTACKER, hardware=b"\x06\x06"))
attack("client-is-a-group", message(DISCOVER, 1, b"\x01\0\x5e\0\0\x01"))
attack("no-type", message(DISCOVER, 1, ATTACKER, typed=False))
attack("unknown-type", message(99, 1, ATTACKER, op=1))
attack("wrong-direction", message(DISCOVER, 1, ATTACKER, op=2))
attack("no-end", good[:243])
attack("option-truncated", message(DISCOVER, 1, ATTACKER, option(IDENTIFIER, b"ab", length=200), end=b"")[:250])
attack("address-of-three-bytes", message(DISCOVER, 1, ATTACKER, option(REQUESTED, bytes(3))))
attack("lease-of-five-bytes", message(DISCOVER, 1, ATTACKER, option(LEASE, bytes(5))))
attack("option-twice", message(DISCOVER, 1, ATTACKER, OURS + OURS))
attack("overload-of-nothing", message(DISCOVER, 1, ATTACKER, option(OVERLOAD, b"\x07")))
attack("overload-without-end", message(DISCOVER, 1, ATTACKER, option(OVERLOAD, b"\x01"), file=b"\x01" * 128))
attack("mask-with-a-hole", message(DISCOVER, 1, ATTACKER, option(MASK, b"\xff\0\xff\0")))
attack("fragment", good, fragment=0x2000)

# --- messages for others, or of others -------------------------------------------------------------------------------------

attack("an-offer", message(OFFER, 1, ATTACKER, OURS))
attack("an-acknowledgment", message(ACK, 1, ATTACKER, OURS))
attack("a-refusal", message(NAK, 1, VICTIM, OURS))
attack("inform", message(INFORM, 1, ATTACKER, current="10.3.0.66"))
attack("relayed", message(DISCOVER, 1, ATTACKER, relay="10.66.0.1"))
attack("from-the-other-link", good, link=other)
attack("for-another-server", message(REQUEST, 1, ATTACKER, option(REQUESTED, address(own)) + option(SERVER, address("10.3.0.99"))))
attack("address-of-another", message(REQUEST, 1, ATTACKER, option(REQUESTED, address(own)) + OURS))
attack("address-of-another-after-a-restart", message(REQUEST, 1, ATTACKER, option(REQUESTED, address(own))))
attack("address-of-another-renewed", message(REQUEST, 1, ATTACKER, current=own))
attack("no-address", message(REQUEST, 1, ATTACKER, OURS))
attack("address-of-the-server", message(REQUEST, 1, ATTACKER, option(REQUESTED, address(SERVER_IP)) + OURS))
attack("address-elsewhere", message(REQUEST, 1, ATTACKER, option(REQUESTED, address("172.16.0.1"))))
attack("release-of-another", message(RELEASE, 1, ATTACKER, OURS, current=own))
attack("release-at-another-server", message(RELEASE, 1, VICTIM, option(SERVER, address("10.3.0.99")), current=own))
attack("release-without-server", message(RELEASE, 1, VICTIM, current=own))
attack("decline-of-another", message(DECLINE, 1, ATTACKER, option(REQUESTED, address(own)) + OURS))
attack("decline-without-address", message(DECLINE, 1, ATTACKER, OURS))
renewed("after-messages")


def claimed():
    """A host that answers for each address which the server checks."""
    send(message(DISCOVER, 2, ATTACKER))
    for frame in lan.hear(0.5):
        if frame[6:12] == SERVER_MAC and frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\1":
            lan.send(SERVER_MAC, ATTACKER, arp(2, station(9), "0.0.0.0")[:14] + frame[38:42] + frame[22:32], 0x0806)


claimed()
renewed("after-claims")

# --- floods --------------------------------------------------------------------------------------------------------------------

pour(many(lambda n: datagram("0.0.0.0", "255.255.255.255", False, message(DISCOVER, n, station(n)))), lan, ALL)
renewed("after-discovers")
daemon.flood("requests-of-many", "dhcp_not_leased", many(lambda n: datagram("0.0.0.0", "255.255.255.255", False, message(REQUEST, n, station(n), option(REQUESTED, address(own)) + OURS))), lan, ALL)


def noise():
    chance = random.Random(14)
    for number in range(3000):
        bad = bytearray(message(chance.randrange(1, 9), number, station(number % 8), OURS + option(REQUESTED, address(own))))
        for _ in range(chance.randrange(1, 6)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        send(bytes(bad[: chance.randrange(1, len(bad) + 1)]))


noise()
renewed("after-noise")
transactions = iter(range(0x8000, 0x9000))
is_leased = during(lambda: many(lambda n: datagram("0.0.0.0", "255.255.255.255", False, message(DISCOVER, n, station(n)))), lan, ALL,
                   lambda: lease(mac("020000000008"), next(transactions)))
print("a-newcomer-during-the-flood", is_leased)
