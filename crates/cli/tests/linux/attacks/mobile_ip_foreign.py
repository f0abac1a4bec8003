"""A host on a visited link that has no key, and a home agent that answers an honest mobile node (RFC 5944).

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink.
"""

import socket
import struct
import sys
import time

from bench import Daemon, Link, ip, mac, udp

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
# The victim's request, repeated by the attacker while it waits, and answered by the home agent from another address.
assert ask(VICTIM, 0x2_0000_0002), "the request is relayed"
daemon.attack("repeated-request", on_visited(message(1, 0x2_0000_0002)))
up.send(AGENT_UP, ROUTER, udp("10.9.9.9", CARE_OF, 434, message(3, 0x2_0000_0002)))
serve()
tunneled("after-repeated-request", HOME_AGENT)
# The victim's request, repeated by the attacker after it was accepted.
daemon.attack("repeated-later", on_visited(message(1, 0x2_0000_0002)))
tunneled("after-repeated-later", HOME_AGENT)
daemon.attack("strange-tunnel", lambda: tunneled("from-an-unknown-agent", UNKNOWN))
daemon.attack("unknown-type", on_visited(b"\x63" + message(1, 1)[1:]))
daemon.attack("truncated", on_visited(message(1, 1)[:20]))
daemon.attack("fragment", on_visited(message(1, 1), fragment=0x2000))
daemon.attack("last-hop", on_visited(message(1, 3), src="0.0.0.0"))
daemon.attack(
    "reply-to-nothing", lambda: up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, message(3, 0x9_0000_0009)))
)
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
