"""Hosts on a visited link, at a mobile node that is registered through a foreign agent (RFC 5944, sections 2 and 3.6). The script is
also the agents.

The kernel of the mobile node answers ICMP echo requests: their data are those of the victim.

Arguments: the control socket, the interface to the visited link, another interface to the mobile node.
"""

import random
import socket
import struct
import sys
import time

from bench import Daemon, Link, arp, icmp, ip, mac, many, pour, station, udp
from mip import KEY, address, advertisement, answer, authentication, extension, mobility, signed

NODE, AGENT_MAC, ATTACKER, ALL = mac("020000000001"), mac("020000000009"), mac("020000000066"), mac("01005e000001")
HOME, AGENT, HOME_AGENT, SENDER, STRANGE = "10.1.0.7", "10.3.0.1", "10.1.0.2", "10.2.0.2", "10.3.0.66"
LONG = 9000  # seconds: the agent does not expire during the test
daemon, link, other = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def requests(seconds=0.3):
    """The registration requests that the mobile node sends, each with the link address to which it is sent."""
    frames = (frame for frame in link.hear(seconds) if frame[6:12] == NODE)
    return [(frame[:6], frame[42:]) for frame in frames if frame[23] == 17 and frame[36:38] == b"\x01\xb2" and frame[42:43] == b"\x01"]


def advertise(by=AGENT_MAC, src=AGENT, to=ALL, care_of=None, over=link, **more):
    over.send(to, by, advertisement(src, care_of=[care_of or src], **{"lifetime": LONG, **more}))


def reply_to(asked, key=KEY, src=AGENT, **more):
    return udp(src, HOME, 434, signed(answer(asked, **more), key=key))


def register():
    """Answers the requests of the mobile node until it is registered."""
    for _ in range(20):
        advertise(sequence=next(sequences))
        for _, asked in requests():
            link.send(NODE, AGENT_MAC, reply_to(asked))
        if state()["state"] == "registered":
            return
    raise SystemExit(f"not registered: {state()}")


def state():
    return daemon.look()[0]["mobile_node"]


def attack(name, datagram, by=ATTACKER, to=NODE, over=link):
    daemon.attack(name, lambda: over.send(to, by, datagram))


def delivered(step):
    """Prints to which link address the answer to an echo request goes, if it has the same data."""
    data = struct.pack("!HH", 7, 7) + step.encode()
    link.send(NODE, AGENT_MAC, icmp(SENDER, HOME, 8, 0, data))
    print(step, *(frame[:6].hex() for frame in link.hear(0.2) if frame[6:12] == NODE and frame[38:].startswith(data)) or ["none"], flush=True)


sequences = iter(range(1, 60000))
register()
delivered("at-first")

# --- advertisements ------------------------------------------------------------------------------------------------------------

ours = [STRANGE]
attack("from-afar", advertisement(STRANGE, care_of=ours, ttl=2), to=ALL)
attack("code", advertisement(STRANGE, care_of=ours, code=1), to=ALL)
attack("checksum", advertisement(STRANGE, care_of=ours, bad_sum=True), to=ALL)
attack("short", advertisement(STRANGE, extensions=b"")[:-2], to=ALL)
attack("entry-size", advertisement(STRANGE, care_of=ours, size=1), to=ALL)
attack("router-overrun", advertisement(STRANGE, care_of=ours, count=200), to=ALL)
attack("a-router-that-is-no-agent", advertisement(STRANGE, extensions=b""), to=ALL)
attack("neither-kind", advertisement(STRANGE, flags=0), to=ALL)
attack("no-care-of-address", advertisement(STRANGE, flags=0x1000), to=ALL)
attack("length-of-mobility", advertisement(STRANGE, extensions=mobility(care_of=ours)[:1] + b"\x09" + mobility(care_of=ours)[2:11]), to=ALL)
attack("length-too-short", advertisement(STRANGE, extensions=extension(16, bytes(4))), to=ALL)
attack("extension-twice", advertisement(STRANGE, extensions=mobility(care_of=ours) * 2), to=ALL)
attack("extension-overrun", advertisement(STRANGE, extensions=mobility(care_of=ours) + extension(19, b"\x18", 9)), to=ALL)
attack("extension-without-its-end", advertisement(STRANGE, extensions=mobility(care_of=ours) + b"\x13"), to=ALL)
attack("unknown-extension", advertisement(STRANGE, extensions=mobility(care_of=ours) + extension(77, b"x")), to=ALL)
attack("prefix-count", advertisement(STRANGE, extensions=mobility(care_of=ours) + extension(19, b"\x18\x18")), to=ALL)
attack("prefix-of-33-bits", advertisement(STRANGE, extensions=mobility(care_of=ours) + extension(19, b"\x21")), to=ALL)
attack("empty-challenge", advertisement(STRANGE, extensions=mobility(care_of=ours) + extension(24)), to=ALL)
attack("fragment", advertisement(STRANGE, care_of=ours)[:6] + b"\x20\0" + advertisement(STRANGE, care_of=ours)[8:], to=ALL)
attack("from-a-group", advertisement(STRANGE, care_of=ours), by=mac("01005e000009"), to=ALL)
attack("on-another-link", advertisement(STRANGE, care_of=ours), to=ALL, over=other)
for src in (HOME, "0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"):
    attack("agent-" + src, advertisement(src, care_of=[AGENT]), to=ALL)
for care_of in (HOME, "0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.1.0.255"):
    attack("care-of-" + care_of, advertisement(STRANGE, care_of=[care_of]), to=ALL)
# Another host advertises as the agent in use: that the agent has restarted, and that it has left.
daemon.attack("agent-with-another-link-address", lambda: advertise(ATTACKER, sequence=0))
daemon.attack("agent-said-to-have-left", lambda: advertise(ATTACKER, lifetime=0))
delivered("after-advertisements")

# --- replies, when none is expected ------------------------------------------------------------------------------------------------

plain = b"\x01\0\x01\x2c" + address(HOME) + address(HOME_AGENT) + address(AGENT) + bytes(8)
attack("reply-to-nothing", reply_to(plain))
attack("request-to-a-node", udp(AGENT, HOME, 434, signed(plain)))
attack("reply-truncated", udp(AGENT, HOME, 434, answer(plain)[:19]))
attack("unknown-type", udp(AGENT, HOME, 434, b"\x10" + bytes(19)))
attack("empty", udp(AGENT, HOME, 434, b""))

# --- replies to a pending request ----------------------------------------------------------------------------------------------------


def begin():
    """The operator lets the node register again. Returns the pending request, which is not repeated within a second."""
    for _ in range(5):
        daemon.ask(b'{"do":{"verb":"register"}}')
        found = requests(0.2)
        if found:
            return found[-1][1]
    raise SystemExit("no request")


asked = begin()
for name, datagram in (
    ("reply-without-key", udp(AGENT, HOME, 434, answer(asked))),
    ("reply-with-wrong-key", reply_to(asked, key=bytes(16))),
    ("reply-with-wrong-spi", udp(AGENT, HOME, 434, signed(answer(asked), spi=257))),
):
    attack(name, datagram)
asked = begin()
right = answer(asked)
for name, datagram in (
    ("reply-authenticated-twice", udp(AGENT, HOME, 434, signed(signed(right)))),
    ("reply-from-another", reply_to(asked, src=STRANGE)),
    ("reply-to-another-node", udp(AGENT, HOME, 434, signed(right[:4] + address("10.1.0.8") + right[8:]))),
    ("reply-to-another-request", udp(AGENT, HOME, 434, signed(right[:-4] + bytes(4)))),
):
    attack(name, datagram)
asked = begin()
right = answer(asked)
for name, datagram in (
    ("reply-of-the-home-agent-without-key", udp(AGENT, HOME, 434, answer(asked, code=133))),
    ("reply-extension-overrun", udp(AGENT, HOME, 434, right + extension(200, b"", 9))),
    ("reply-unknown-extension", udp(AGENT, HOME, 434, signed(right + extension(77)))),
):
    attack(name, datagram)
attack("reply-on-another-link", reply_to(asked), over=other)
asked = begin()
# Without an association with the agent, its denials are not authenticated: they must not end the wait for the home agent.
for code in (64, 69, 70, 77, 80, 88, 104):
    link.send(NODE, ATTACKER, udp(AGENT, HOME, 434, answer(asked, code=code, lifetime=1)))
link.send(NODE, AGENT_MAC, reply_to(asked))
time.sleep(0.1)
print("accepted-after-forged-denials", state()["state"], state()["lifetime_s"], flush=True)
attack("replayed-reply", reply_to(asked), by=AGENT_MAC)
register()
delivered("after-replies")

# --- other packets ----------------------------------------------------------------------------------------------------------------------

attack("redirect", icmp(AGENT, HOME, 5, 1, address(STRANGE) + icmp(HOME, SENDER, 0, 0, bytes(4))))
attack("tunnel-to-the-home-address", ip(HOME_AGENT, HOME, 4, udp(SENDER, HOME, 9000, b"x")))


def asks(target, by=ATTACKER, to=b"\xff" * 6, sender=STRANGE):
    """Whether the node answers an ARP request."""
    link.send(to, by, arp(1, by, sender) + bytes(6) + address(target), 0x0806)
    return any(frame[6:12] == NODE and frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\2" for frame in link.hear(0.15))


print("answers-arp-of-a-host", asks(HOME), flush=True)
print("answers-arp-of-the-agent", asks(HOME, AGENT_MAC, NODE, AGENT), flush=True)


def claim():
    link.send(NODE, ATTACKER, arp(2, ATTACKER, AGENT) + NODE + address(HOME), 0x0806)
    for kind in (1, 2):
        link.send(b"\xff" * 6, ATTACKER, arp(kind, ATTACKER, AGENT) + bytes(6) + address(AGENT), 0x0806)


daemon.attack("address-of-the-agent-claimed", claim)
delivered("after-arp")

# --- many advertisements ----------------------------------------------------------------------------------------------------------------


for number in range(2000):
    advertise(station(number), f"10.3.{10 + (number >> 8)}.{number & 255}")
now = daemon.settled()[0]["mobile_node"]
print("many-agents", len(now["agents"]) <= 16, now["agent"], now["state"], flush=True)
delivered("after-many-agents")
for number in range(500):
    advertise(sequence=0 if number % 2 else 300)
sent = len(requests(1.5))
print("restarts-of-the-agent", "few requests" if sent <= 3 else sent, flush=True)
register()
delivered("after-restarts")

# --- floods ---------------------------------------------------------------------------------------------------------------------------------

daemon.flood("replies-of-many", "stale_reply", many(lambda n: udp(AGENT, HOME, 434, signed(answer(plain + b""), key=bytes(16)))), link, NODE)


def noise():
    chance = random.Random(14)
    for number in range(2000):
        bad = bytearray(advertisement(STRANGE, care_of=ours, lifetime=LONG) if number % 2 else reply_to(plain))
        for _ in range(chance.randrange(1, 6)):
            bad[chance.randrange(20, len(bad))] = chance.randrange(256)
        link.send(NODE, ATTACKER, bytes(bad[: chance.randrange(20, len(bad) + 1)]))


noise()
print("after-noise", state()["state"], state()["agent"], flush=True)
delivered("at-the-end")
