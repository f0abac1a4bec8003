"""Packets to the tunnels of a home agent (RFC 2003, RFC 3024), from hosts at home and elsewhere.

Arguments: the control socket, the interface to the home link, the one to the home agent's uplink.
"""

import random
import socket
import struct
import sys
import time

from bench import Daemon, Link, arp, checksum, icmp, ip, mac, many, udp
from mip import B, D, S, T, address, body, signed

AGENT, UPLINK, AGENT_MAC, UP_MAC = "10.1.0.2", "10.9.0.1", mac("020000000001"), mac("020000000002")
OWN, ROUTER, ROUTER_IP, ALL = mac("020000000066"), mac("020000000009"), "10.9.0.2", b"\xff" * 6
SENDER = "10.2.0.2"
# The victim has a reverse tunnel, the second node has not, and the third is the attacker's own node, with a reverse tunnel.
VICTIM, PLAIN, INSIDER, EVERYWHERE = "10.1.0.7", "10.1.0.8", "10.1.0.9", "10.1.0.10"
CARE_OF = {VICTIM: "10.3.0.1", PLAIN: "10.4.0.1", INSIDER: "10.5.0.1", EVERYWHERE: "10.6.0.1"}
LOOP = ("10.1.0.11", "10.1.0.12")
daemon, home, up = Daemon(sys.argv[1], ignored=["reassembled"]), Link(sys.argv[2]), Link(sys.argv[3])


def hear(link=up, seconds=0.15):
    """Returns the frames that the agent sent on a link. Answers ARP for the router."""
    own = UP_MAC if link is up else AGENT_MAC
    frames = []
    for frame in link.hear(seconds):
        if frame[6:12] == own:
            frames.append(frame)
            if link is up:
                up.answer_arp(frame, ROUTER_IP, ROUTER)
    return frames


def from_up(datagram):
    up.send(UP_MAC, ROUTER, datagram)


def from_home(datagram, to=AGENT_MAC):
    home.send(to, OWN, datagram)


def attack(name, datagram, by=from_up):
    daemon.attack(name, lambda: by(datagram))


def register(node, care_of, flags=0, src=None):
    asked = signed(body(node, AGENT, care_of, flags=flags))
    for _ in range(5):
        from_up(udp(src or care_of, AGENT, 434, asked))
        if any(frame[42:44] == b"\x03\0" for frame in hear()):
            return
    raise SystemExit(f"{node} is not registered")


def exits(datagram, text, by=from_up):
    """Sends a datagram to the agent. Returns the exits of the tunnels in which `text` arrives whole."""
    list(up.frames())
    by(datagram)
    frames = [frame for frame in hear() if frame[23] == 4 and text in frame]
    return [socket.inet_ntoa(frame[30:34]) for frame in frames]


def delivered(step, node=VICTIM):
    """Prints the exits of the tunnels in which data for the victim arrive, and where its own data come out of the reverse tunnel."""
    text = b"for the victim alone " + step.encode()
    there = exits(udp(SENDER, node, 9000, text, ttl=64), text)
    back = text[::-1]
    list(up.frames())
    from_up(ip(CARE_OF[node], AGENT, 4, udp(node, SENDER, 9000, back, ttl=64)))
    came = [socket.inet_ntoa(frame[26:30]) for frame in hear() if back in frame]
    print(step, *there or ["none"], *came or ["none"], flush=True)


for node, care_of in CARE_OF.items():
    register(node, care_of, {PLAIN: 0, EVERYWHERE: T | B | D}.get(node, T))
delivered("at-first")

# --- reverse tunnels -------------------------------------------------------------------------------------------------

data = udp(VICTIM, SENDER, 9000, b"forged", ttl=64)
attack("from-another-care-of-address", ip("10.66.0.1", AGENT, 4, data))
attack("from-the-care-of-address-of-an-insider", ip(CARE_OF[INSIDER], AGENT, 4, data))
attack("without-reverse-tunnel", ip(CARE_OF[PLAIN], AGENT, 4, udp(PLAIN, SENDER, 9000, b"x", ttl=64)))
attack("from-the-home-link", ip("10.1.0.66", AGENT, 4, data), by=from_home)
attack("of-a-node-at-home", ip(CARE_OF[INSIDER], AGENT, 4, udp("10.1.0.13", SENDER, 9000, b"x", ttl=64)))
attack("inner-truncated", ip(CARE_OF[VICTIM], AGENT, 4, data[:15]))
attack("inner-empty", ip(CARE_OF[VICTIM], AGENT, 4, b""))
attack("inner-version", ip(CARE_OF[VICTIM], AGENT, 4, b"\x65" + data[1:]))
attack("inner-checksum", ip(CARE_OF[VICTIM], AGENT, 4, data[:10] + b"\0\0" + data[12:]))
attack("inner-length", ip(CARE_OF[VICTIM], AGENT, 4, ip(VICTIM, SENDER, 17, bytes(8), length=200)))
attack("inner-no-hops", ip(CARE_OF[VICTIM], AGENT, 4, udp(VICTIM, SENDER, 9000, b"x", ttl=0)))
attack("inner-last-hop", ip(CARE_OF[VICTIM], AGENT, 4, udp(VICTIM, SENDER, 9000, b"x", ttl=1)))
attack("outer-no-hops", ip(CARE_OF[VICTIM], AGENT, 4, data, ttl=0))
nested = data
for _ in range(6):
    nested = ip(VICTIM, AGENT, 4, nested)
attack("nested", ip(CARE_OF[VICTIM], AGENT, 4, nested))
attack("minimal-encapsulation", ip(CARE_OF[VICTIM], AGENT, 55, b"\x11\x80\0\0" + address(SENDER) + address(VICTIM) + data[20:]))
attack("gre", ip(CARE_OF[VICTIM], AGENT, 47, b"\0\0\x08\0" + data))
delivered("after-reverse-tunnels")

# --- packets for a node that is away ---------------------------------------------------------------------------------

attack("no-hops", udp(SENDER, VICTIM, 9000, b"x", ttl=0))
attack("last-hop", udp(SENDER, VICTIM, 9000, b"x", ttl=1))
attack("from-the-exit", udp(CARE_OF[VICTIM], VICTIM, 9000, b"x", ttl=64))
attack("as-the-agent", udp(AGENT, VICTIM, 9000, b"x", ttl=64))
attack("as-the-agents-uplink", udp(UPLINK, VICTIM, 9000, b"x", ttl=64))
big = udp(SENDER, VICTIM, 9000, bytes(1472), ttl=64)
attack("too-big", big[:6] + b"\x40\0" + struct.pack("!BBH", 64, 17, checksum(big[:6] + b"\x40\0\x40\x11\0\0" + big[12:20])) + big[12:])


def claims():
    """ARP of a host at home that claims the address of the victim: a reply, and a gratuitous request."""
    for kind, target in ((2, ALL + address("10.1.0.1")), (1, bytes(6) + address(VICTIM))):
        home.send(ALL, OWN, arp(kind, OWN, VICTIM) + target, 0x0806)


daemon.attack("home-address-claimed", claims)
delivered("after-the-claims")
# Two nodes whose care-of addresses are each other's home addresses.
for node, care_of in (LOOP, LOOP[::-1]):
    register(node, care_of, src="10.7.0.1")
attack("tunnel-into-a-tunnel", udp(SENDER, LOOP[0], 9000, b"x", ttl=64))

# --- ICMP errors about tunnels ---------------------------------------------------------------------------------------

NOWHERE = "10.66.0.9"


def quoted(inner, exit=CARE_OF[VICTIM], entry=AGENT, octets=None):
    whole = ip(entry, exit, 4, inner)
    return whole if octets is None else whole[: 20 + octets]


def error(kind, code, quote, rest=bytes(4), src=NOWHERE):
    return icmp(src, AGENT, kind, code, rest + quote)


def mtu(value):
    return struct.pack("!HH", 0, value)


inner = udp(SENDER, VICTIM, 9000, bytes(1400))
attack("error-about-another-exit", error(3, 4, quoted(inner, exit="10.66.6.6"), mtu(576)))
attack("error-about-another-entry", error(3, 4, quoted(inner, entry="10.66.6.6"), mtu(576)))
attack("error-about-udp", error(3, 4, udp(AGENT, CARE_OF[VICTIM], 434, b"x"), mtu(576)))
attack("error-cut", error(3, 4, quoted(inner)[:19], mtu(576)))
attack("error-empty", error(3, 4, b""))
bad = error(3, 4, quoted(inner), mtu(576))
attack("error-checksum", bad[:22] + b"\x12\x34" + bad[24:])
for name, kind, code in (("source-quench", 4, 0), ("redirect", 5, 1), ("port-unreachable", 3, 3), ("source-route", 3, 5), ("reassembly", 11, 1)):
    attack(name, error(kind, code, quoted(inner)))
attack("parameter-of-the-tunnel", error(12, 0, quoted(inner), bytes([9, 0, 0, 0])))


def largest():
    """Prints the MTU that the agent reports to a sender of large packets."""
    list(up.frames())
    plain = udp(SENDER, VICTIM, 9000, bytes(1440), ttl=64)
    head = plain[:6] + b"\x40\0" + plain[8:10] + b"\0\0" + plain[12:20]
    from_up(head[:10] + struct.pack("!H", checksum(head)) + head[12:] + plain[20:])
    reports = [struct.unpack("!H", frame[40:42])[0] for frame in hear() if frame[23] == 1 and frame[34:36] == b"\3\4"]
    print("reported-mtu", *reports or ["none"], flush=True)


largest()
attack("too-big-above", error(3, 4, quoted(inner), mtu(9000)))
largest()
for value in (0, 20, 67, 68, 575):
    attack(f"too-big-{value}", error(3, 4, quoted(inner), mtu(value)))
largest()
delivered("after-too-big")
attack("unreachable-with-eight-octets", error(3, 1, quoted(inner, octets=8)))
attack("time-exceeded-with-eight-octets", error(11, 0, quoted(inner, octets=8)))
delivered("after-unreachable")

# --- errors that a forged source would send to many hosts -------------------------------------------------------------


def broadcasts(name, datagram):
    """Prints the number of packets that the agent sends to all hosts of a link because of a datagram, besides advertisements."""
    list(home.frames()), list(up.frames())
    from_up(datagram)
    frames = hear(home) + hear(up)
    print(name, sum(frame[0] & 1 and frame[12:14] == b"\x08\0" and frame[34] != 9 for frame in frames), flush=True)


for source in ("10.1.0.255", "10.9.0.255", "255.255.255.255", "224.0.0.1", "0.0.0.0", "127.0.0.1"):
    broadcasts("last-hop-from-" + source, udp(source, VICTIM, 9000, b"x", ttl=1))
    broadcasts("no-route-from-" + source, udp(source, "10.1.0.200", 9000, b"x", ttl=1))
    broadcasts("error-quotes-" + source, error(3, 1, quoted(udp(source, VICTIM, 9000, b"x"))))

# --- fragments ---------------------------------------------------------------------------------------------------------

whole = udp(VICTIM, SENDER, 9000, b"fragment" * 60, ttl=64)


def fragment(at, size, more, ident, payload=None, src=CARE_OF[VICTIM]):
    part = (payload or whole)[at : at + size]
    return ip(src, AGENT, 4, part, fragment=(0x2000 if more else 0) | at // 8, ident=ident)


def some(*fragments):
    return lambda: [from_up(one) for one in fragments]


daemon.attack("fragments-overlap", some(fragment(0, 64, True, 10), fragment(32, 64, True, 10)))
daemon.attack("fragment-overlaps-by-a-byte", some(fragment(0, 64, True, 11), fragment(56, 8, True, 11)))
daemon.attack("fragment-of-nothing", some(fragment(0, 0, True, 12)))
daemon.attack("fragment-not-of-eight", some(fragment(0, 63, True, 13)))
daemon.attack("fragment-beyond-the-end", some(ip(CARE_OF[VICTIM], AGENT, 4, bytes(64), fragment=8191, ident=14)))
daemon.attack("last-fragment-twice", some(fragment(480, 28, False, 15), fragment(400, 64, False, 15)))


def in_pieces(order, size, ident):
    """Prints whether a datagram in fragments arrives whole."""
    list(up.frames())
    steps = list(range(0, len(whole), size))
    for at in order(steps):
        from_up(fragment(at, size, at + size < len(whole), ident))
    print("in-pieces", size, any(whole[20:] in frame for frame in hear()), flush=True)


in_pieces(lambda steps: steps[::-1], 104, 20)
in_pieces(lambda steps: random.Random(3).sample(steps, len(steps)), 8, 21)


def never_complete():
    for number in range(3000):
        source = f"10.77.{number >> 8}.{number & 255}"
        # Alternately a large fragment of a new datagram, and tiny fragments of the same datagrams.
        from_up(ip(source, AGENT, 4, bytes(1400), fragment=0x2000, ident=number))
        for at in range(4):
            from_up(ip("10.78.0.1", AGENT, 4, bytes(8), fragment=0x2000 | (2 * (number * 4 + at) + 1) % 8000, ident=number // 1000))
        if number % 100 == 99:
            time.sleep(0.01)


state, _ = daemon.settled()
never_complete()
print("fragments-without-end", "same" if daemon.settled()[0] == state else "CHANGED", flush=True)
in_pieces(lambda steps: steps, 104, 22)
delivered("after-fragments")

# --- broadcasts of the home network, and several bindings --------------------------------------------------------------

text = b"a broadcast"
print("a-broadcast", *exits(udp("10.1.0.66", "10.1.0.255", 9000, text), text, lambda d: from_home(d, ALL)), flush=True)
print("a-broadcast-as-the-agent", *exits(udp(AGENT, "10.1.0.255", 9000, text), text, lambda d: from_home(d, ALL)) or ["none"], flush=True)
print("a-broadcast-from-elsewhere", *exits(udp(SENDER, "10.1.0.255", 9000, text), text) or ["none"], flush=True)
register(INSIDER, "10.5.0.2", T | S)
text = b"for two"
print("two-bindings", *sorted(exits(udp(SENDER, INSIDER, 9000, text, ttl=64), text)), flush=True)
attack("last-hop-to-two", udp(SENDER, INSIDER, 9000, b"x", ttl=1))
attack("as-the-agent-to-two", udp(AGENT, INSIDER, 9000, b"x", ttl=64))

# --- floods --------------------------------------------------------------------------------------------------------------

daemon.flood("forged-reverse-tunnels", "no_reverse_tunnel", many(lambda n: ip(f"10.77.{n >> 8}.{n & 255}", AGENT, 4, data)), up, UP_MAC)
daemon.flood("errors-about-a-tunnel", "", ((n, error(3, n % 5, quoted(inner), mtu(n % 600), f"10.77.{n >> 8}.{n & 255}")) for n in range(3000)), up, UP_MAC)
delivered("at-the-end")
largest()
