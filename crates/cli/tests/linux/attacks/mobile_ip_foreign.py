"""A host on a visited link that has no key, and a home agent that answers an honest mobile node (RFC 5944).

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink.
"""

import socket
import struct
import sys
import time

from bench import Daemon, Link, icmp, ip, mac, many, udp
from mip import D, G, M, RESERVED, T, extension, solicitation

AGENT_VISITED, AGENT_UP = mac("020000000001"), mac("020000000002")
ATTACKER, VICTIM, ROUTER = mac("020000000066"), mac("020000000007"), mac("020000000009")
HOME, HOME_AGENT, CARE_OF, ROUTER_IP = "10.1.0.7", "10.1.0.2", "10.3.0.1", "10.9.0.2"
UNKNOWN, SENDER = "198.51.100.66", "10.2.0.2"
daemon, visited, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def message(kind, identification, home=HOME):
    fields = struct.pack("!BBH", kind, 0, 300) + socket.inet_aton(home) + socket.inet_aton(HOME_AGENT)
    fields += socket.inet_aton(CARE_OF) if kind == 1 else b""
    fields += struct.pack("!Q", identification)
    return fields + struct.pack("!BBI", 32, 36, 256) + bytes(32)  # a wrong authenticator


def serve(seconds=0.3):
    """Answers ARP for the router; returns what the agent sent on the visited link and on the uplink."""
    seen = ([], [])
    end = time.time() + seconds
    while time.time() < end:
        for link, frames, own in ((visited, seen[0], AGENT_VISITED), (up, seen[1], AGENT_UP)):
            for frame in link.frames():
                if frame[6:12] != own:
                    continue
                frames.append(frame)
                if link is up:
                    up.answer_arp(frame, ROUTER_IP, ROUTER)
    return seen


def ask(link_address, identification, home=HOME):
    """Sends a request on the visited link. Returns whether it was relayed."""
    visited.send(AGENT_VISITED, link_address, udp(home, CARE_OF, 434, message(1, identification, home)))
    wanted = struct.pack("!Q", identification)
    return any(frame[23:24] == b"\x11" and wanted in frame and frame[42:43] == b"\x01" for frame in serve(0.5)[1])


def on_visited(payload, src=HOME, frame_from=ATTACKER, **more):
    return lambda: visited.send(AGENT_VISITED, frame_from, udp(src, CARE_OF, 434, payload, **more))


def tunneled(step, entry):
    """Prints the hosts on the visited link that get a datagram for the victim out of a tunnel from `entry`."""
    text = b"for the victim alone " + step.encode()
    up.send(AGENT_UP, ROUTER, ip(entry, CARE_OF, 4, udp(SENDER, HOME, 9000, text)))
    got = [frame[:6].hex() for frame in serve()[0] if text in frame]
    print(step, *(sorted(got) or ["none"]), flush=True)


# The attacker's own request, and its replies on the visited link.
assert ask(ATTACKER, 0x1_0000_0001), "the request is relayed"
for number, source in enumerate((HOME_AGENT, "10.3.0.99")):
    daemon.attack(f"own-reply-{number}", on_visited(message(3, 0x1_0000_0001), src=source))
tunneled("after-own-replies", HOME_AGENT)
# The victim's request, repeated by the attacker while it waits. A host beyond the uplink answers it, and then the home agent.
assert ask(VICTIM, 0x2_0000_0002), "the request is relayed"
daemon.attack("repeated-request", on_visited(message(1, 0x2_0000_0002)))
daemon.attack(
    "reply-of-another-host", lambda: up.send(AGENT_UP, ROUTER, udp("10.9.9.9", CARE_OF, 434, message(3, 0x2_0000_0002)))
)
up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, message(3, 0x2_0000_0002)))
serve()
tunneled("after-repeated-request", HOME_AGENT)
# The victim's request, repeated by the attacker after it was accepted.
daemon.attack("repeated-later", on_visited(message(1, 0x2_0000_0002)))
tunneled("after-repeated-later", HOME_AGENT)
daemon.attack("strange-tunnel", lambda: tunneled("from-an-unknown-agent", UNKNOWN))
daemon.attack("unknown-type", on_visited(b"\x63" + message(1, 1)[1:]))
daemon.attack("truncated", on_visited(message(1, 1)[:20]))
daemon.attack("fragment", on_visited(message(1, 1), fragment=0x2000))
daemon.attack("from-no-address", on_visited(message(1, 3), src="0.0.0.0"))
daemon.attack(
    "reply-to-nothing", lambda: up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, message(3, 0x9_0000_0009)))
)
# --- malformed and impossible requests, with another link address for each denial -----------------------------------

strangers = (b"\x02\x77" + struct.pack("!I", number) for number in range(1000))


def fields(kind=1, flags=0, lifetime=300, home="10.1.0.66", agent=HOME_AGENT, care_of=CARE_OF, identification=0x9_0000_0001):
    start = struct.pack("!BBH", kind, flags, lifetime) + socket.inet_aton(home) + socket.inet_aton(agent)
    start += socket.inet_aton(care_of) if kind == 1 else b""
    return start + struct.pack("!Q", identification)


SIGNED = struct.pack("!BBI", 32, 36, 256) + bytes(32)


def denied(name, behind=SIGNED, src=None, ttl=255, **more):
    source = src or more.get("home", "10.1.0.66")
    daemon.attack(name, on_visited(fields(**more) + behind, src=source, frame_from=next(strangers), ttl=ttl))


denied("reserved-flag", flags=RESERVED)
denied("minimal", flags=M)
denied("gre", flags=G)
denied("reverse-tunnel", flags=T)
denied("delivery-style-alone", behind=SIGNED + extension(130))
denied("another-care-of-address", care_of="10.3.0.99")
denied("care-of-address-of-a-neighbor", care_of="10.3.0.99", flags=D, src="10.3.0.98")
denied("care-of-address-of-the-agent", care_of=CARE_OF, flags=D, src=CARE_OF)
denied("care-of-address-elsewhere", care_of="10.4.0.99", flags=D, src="10.4.0.99")
denied("lifetime-too-long", lifetime=0xFFFF)
denied("agent-is-the-home-agent", agent=CARE_OF)
for agent in ("0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255", "10.3.0.255", "10.1.0.66"):
    denied("home-agent-" + agent, agent=agent)
for home in ("10.3.0.77", "10.9.0.1"):
    denied("home-" + home, home=home)
for home in ("0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255", CARE_OF):
    denied("no-home-" + home, home=home)
denied("source-is-not-home", src="10.1.0.67")
daemon.attack("from-a-group", on_visited(fields(), src="10.1.0.66", frame_from=b"\x01\0\x5e\0\0\x01"))
denied("extension-overrun", behind=SIGNED + extension(130, b"", 9))
denied("extension-without-its-end", behind=SIGNED + b"\x82")
denied("unknown-extension", behind=SIGNED + extension(77, b"abc"))
denied("previous-agent-extension", behind=SIGNED + extension(96, bytes(14)))
denied("authentication-without-spi", behind=extension(32, b"\0\0\1"))
denied("authentication-twice", behind=SIGNED + SIGNED)
denied("many-extensions", behind=SIGNED + extension(200) * 700)
daemon.attack("empty", on_visited(b""))


def twice():
    """Two requests of one link address that are denied."""
    link_address = next(strangers)
    for number in range(2):
        visited.send(AGENT_VISITED, link_address, udp("10.1.0.66", CARE_OF, 434, fields(flags=RESERVED, identification=number) + SIGNED))


daemon.attack("denied-twice", twice)
daemon.attack("from-the-uplink", lambda: up.send(AGENT_UP, ROUTER, udp("10.1.0.66", CARE_OF, 434, fields() + SIGNED)))
daemon.attack("to-the-uplink", lambda: visited.send(AGENT_VISITED, ATTACKER, udp("10.1.0.66", "10.9.0.1", 434, fields() + SIGNED)))

# --- replies and errors about requests --------------------------------------------------------------------------------

WAITING = 0xA_0000_000A


def wait():
    """The victim renews; the home agent has not answered yet."""
    global WAITING
    WAITING += 0x1_0000_0001
    assert ask(VICTIM, WAITING), "the request is relayed"


def relayed(octets=28):
    """The begin of the relayed request, as a router quotes it."""
    return udp(CARE_OF, HOME_AGENT, 434, message(1, WAITING))[: 20 + octets]


def from_up(datagram):
    return lambda: up.send(AGENT_UP, ROUTER, datagram)


def error(quote):
    return icmp("10.9.9.9", CARE_OF, 3, 1, bytes(4) + quote)


wait()
daemon.attack("reply-from-the-link", on_visited(message(3, WAITING), src=HOME_AGENT))
daemon.attack("reply-to-another-node", from_up(udp(HOME_AGENT, CARE_OF, 434, message(3, WAITING, home="10.1.0.66"))))
daemon.attack("reply-to-another-request", from_up(udp(HOME_AGENT, CARE_OF, 434, message(3, WAITING + 1))))
daemon.attack("reply-of-a-second-server", from_up(udp("10.9.0.3", CARE_OF, 434, message(3, WAITING ^ 0xFFFF))))
wait()
daemon.attack("error-from-the-link", lambda: visited.send(AGENT_VISITED, ATTACKER, error(relayed(40))))
daemon.attack("error-with-eight-octets", from_up(error(relayed(8))))
daemon.attack("error-about-another-request", from_up(error(relayed(40)[:48] + bytes(4) + relayed(40)[52:])))
tunneled("while-it-waits", HOME_AGENT)


# A malformed reply, or an error that quotes the whole request, can come from a host on the path only. It ends the wait, and not
# the visit.
def ended(name, reply):
    wait()
    from_up(reply())()
    serve()
    print(name, len(daemon.settled()[0]["foreign_agent"]["visitors"]), flush=True)
    tunneled("after-" + name, HOME_AGENT)


ended("malformed-reply", lambda: udp(HOME_AGENT, CARE_OF, 434, message(3, WAITING)[:-1]))
ended("error-about-the-request", lambda: error(relayed(40)))

# --- the tunnel of the home agent -------------------------------------------------------------------------------------

inner = udp(SENDER, HOME, 9000, b"x")


def out_of(name, payload, protocol=4, entry=HOME_AGENT, **more):
    daemon.attack(name, from_up(ip(entry, CARE_OF, protocol, payload, **more)))


out_of("to-another-visitor", udp(SENDER, "10.1.0.66", 9000, b"x"))
out_of("to-the-agent", udp(SENDER, CARE_OF, 9000, b"x"))
out_of("inner-truncated", inner[:12])
out_of("inner-empty", b"")
out_of("inner-version", b"\x65" + inner[1:])
out_of("inner-checksum", inner[:10] + b"\0\0" + inner[12:])
out_of("inner-no-hops", udp(SENDER, HOME, 9000, b"x", ttl=0))
out_of("inner-last-hop", udp(SENDER, HOME, 9000, b"x", ttl=1))
out_of("outer-no-hops", inner, ttl=0)
nested = inner
for _ in range(5):
    nested = ip(HOME_AGENT, CARE_OF, 4, nested)
out_of("nested", nested)
out_of("minimal-truncated", b"\x11\x80\0\0" + socket.inet_aton(HOME), 55)
out_of("minimal-checksum", b"\x11\x80\x12\x34" + socket.inet_aton(HOME) + socket.inet_aton(SENDER) + inner[20:], 55)
out_of("minimal-fragment", b"\x11\x80\0\0" + socket.inet_aton(HOME) + socket.inet_aton(SENDER) + bytes(8), 55, fragment=0x2000)
out_of("gre-truncated", b"\0\0\x08", 47)
out_of("gre-flags", b"\x40\0\x08\0" + inner, 47)
out_of("gre-version", b"\0\1\x08\0" + inner, 47)
out_of("gre-protocol", b"\0\0\x86\xdd" + inner, 47)
out_of("gre-checksum", b"\x80\0\x08\0\x12\x34\0\0" + inner, 47)
daemon.attack("tunnel-on-the-visited-link", lambda: visited.send(AGENT_VISITED, ATTACKER, ip("10.66.0.1", CARE_OF, 4, inner)))
tunneled("after-tunnels", HOME_AGENT)

# --- discovery ---------------------------------------------------------------------------------------------------------

for name, more in (("solicitation-from-afar", {"ttl": 2}), ("solicitation-code", {"code": 16}), ("solicitation-short", {"content": bytes(3)}), ("solicitation-checksum", {"bad_sum": True})):
    daemon.attack(name, lambda: visited.send(b"\xff" * 6, ATTACKER, solicitation("10.1.0.66", **more)))
daemon.attack("advertisement-as-the-agent", lambda: visited.send(b"\xff" * 6, ATTACKER, icmp(CARE_OF, "224.0.0.1", 9, 0, bytes(20))))
tunneled("at-the-end", HOME_AGENT)

# More requests than can wait, each from another link address and for another home address.
for number in range(1500):
    home, link_address = f"10.77.{number >> 8}.{number & 255}", mac(f"02000900{number:04x}")
    visited.send(AGENT_VISITED, link_address, udp(home, CARE_OF, 434, message(1, (3 << 32) | number, home)))
    if number % 100 == 99:
        serve(0.01)
print("a-renewal-during-a-flood", ask(VICTIM, 0x4_0000_0004))
# The flood has waited for more than 250 ms by now.
print("a-newcomer-during-a-flood", ask(mac("020000000008"), 0x5_0000_0005, "10.1.0.8"))

# Requests with many small extensions. The memory of the daemon is checked at the end.
FILL = b"".join(extension(200) for _ in range(690))
daemon.flood(
    "large-requests-of-many", "mip_extensions_count",
    ((n, udp(f"10.78.{n >> 8}.{n & 255}", CARE_OF, 434, fields(home=f"10.78.{n >> 8}.{n & 255}", identification=n) + FILL)) for n in range(3000)),
    visited, AGENT_VISITED,
)
