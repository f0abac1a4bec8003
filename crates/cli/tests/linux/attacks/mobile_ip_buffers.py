"""Attacks on the packets that a foreign agent keeps for a visitor (draft-mkhalil-mobileip-buffer-00): forged, repeated and malformed
Buffer Control Requests, and Binding Updates that would send the packets to another host. The script is also the mobile node, the home
agent, the next foreign agent and the router.

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink.
"""

import json
import struct
import sys

from bench import Daemon, Link, ip, mac, sent_by, udp
from mip import KEY, MOBILE_FOREIGN, ROUTE, SMOOTH, address, answer, body, generalized, hmac_md5, ntp, signed, update

AGENT_VISITED, AGENT_UP, ROUTER = mac("020000000001"), mac("020000000002"), mac("020000000009")
CARE_OF, HOME_AGENT, ROUTER_IP, SENDER = "10.3.0.1", "10.1.0.2", "10.9.0.2", "10.2.0.2"
VICTIM, STRANGER, THIEF, NEXT = "10.1.0.7", "10.1.0.66", "198.51.100.66", "10.4.0.1"
MOBILE, ATTACKER = mac("020000000007"), mac("020000000066")
KEEP, FORWARD, STOP, IDENTIFIED = 0x40, 0x20, 0x02, 0x10
daemon, visited, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def serve(seconds=0.15):
    """Answers ARP for the router; returns what the agent sent on the visited link and on the uplink."""
    return sent_by((visited, AGENT_VISITED), (up, AGENT_UP), (ROUTER_IP, ROUTER), seconds)


def named(*packets):
    """The IP Filter Extension: packets of one source by their identifications."""
    ids = b"".join(struct.pack("!H", packet) for packet in packets)
    data = bytes([1, 0]) + address(SENDER) + bytes([0, len(packets)]) + ids + (b"" if len(packets) % 2 else bytes(2))
    return bytes([200, len(data)]) + data


def control(asks, home=VICTIM, identification=None, flags=IDENTIFIED, reserved=0, filter=b"", **more):
    head = struct.pack("!BBH", 20, asks | flags, reserved) + address(home) + (identification or ntp()) + filter
    return head + generalized(head, **{"spi": 301, "subtype": SMOOTH, **more})


def send(payload, src=VICTIM, link_address=MOBILE):
    visited.send(AGENT_VISITED, link_address, udp(src, CARE_OF, 434, payload))


def attack(name, payload, **more):
    daemon.attack(name, lambda: send(payload, **more))


def from_afar(name, payload, src=NEXT):
    daemon.attack(name, lambda: up.send(AGENT_UP, ROUTER, udp(src, CARE_OF, 434, payload)))


def kept():
    status = json.loads(daemon.ask(b'{"do":{"verb":"status"}}'))["ok"]
    return next(role["buffer"]["packets"] for role in status.values() if isinstance(role, dict) and "buffer" in role)


def data(text):
    up.send(AGENT_UP, ROUTER, ip(HOME_AGENT, CARE_OF, 4, udp(SENDER, VICTIM, 9000, text, ttl=64)))


def places(frames, text):
    """Where a datagram went: to a link address, or into a tunnel."""
    on_link, on_uplink = frames
    found = [frame[:6].hex() for frame in on_link if text in frame]
    return found + ["tunnel-to-" + ".".join(map(str, frame[30:34])) for frame in on_uplink if text in frame]


def show(step):
    serve(0.05)
    text = step.encode()
    data(text)
    print(step, *places(serve(), text) or ["none"], "kept", kept(), flush=True)


def register():
    asked = signed(body(VICTIM, HOME_AGENT, CARE_OF))
    send(signed(asked, spi=301, kind=MOBILE_FOREIGN))
    serve()
    up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, signed(answer(asked))))
    serve()


register()
show("not-asked")

# --- no other host asks for a buffer -----------------------------------------------------------------------------------------

attack("keep-with-wrong-key", control(KEEP, key=bytes(16)))
attack("keep-with-wrong-spi", control(KEEP, spi=302))
attack("keep-with-wrong-subtype", control(KEEP, subtype=ROUTE))
attack("keep-with-weaker-algorithm", control(KEEP, algorithm=hmac_md5))
attack("keep-for-another-host", control(KEEP, home=STRANGER), src=STRANGER, link_address=ATTACKER)
attack("keep-without-identification", control(KEEP, flags=0))
attack("keep-and-stop", control(KEEP | STOP))
attack("with-sizes", control(KEEP, flags=IDENTIFIED | 0x08))
attack("with-reserved-bits", control(KEEP, reserved=1))
attack("without-authentication", control(KEEP)[:16])
attack("of-one-octet", control(KEEP)[:1])
attack("cut-in-the-authenticator", control(KEEP)[:-1])
attack("longer", control(KEEP) + b"x")
attack("filter-beyond-the-end", control(KEEP, filter=bytes([200, 255, 1, 0])))
attack("filter-of-another-type", control(KEEP, filter=bytes([201, 2, 0, 0])))
changed = bytearray(control(KEEP))
changed[7] ^= 1
attack("for-another-home-address", bytes(changed))
show("after-forgeries")

# --- the visitor asks, and leaves -------------------------------------------------------------------------------------------

first = control(KEEP)
send(first)
show("asked")
attack("keep-again", first)
attack("keep-again-by-another", first, link_address=ATTACKER)
attack("stop-with-wrong-key", control(STOP, key=bytes(16)))
attack("stop-from-earlier", control(STOP, identification=ntp(-5)))
attack("named-with-wrong-key", control(FORWARD, filter=named(1, 2), key=bytes(16)))
for number in range(10):
    data(b"many" + bytes([number]))
serve()
print("of-11-packets", kept(), flush=True)

# --- only the visitor gets the packets --------------------------------------------------------------------------------------

theft = update(VICTIM, THIEF, spi=301, subtype=SMOOTH)
from_afar("theft-with-wrong-key", update(VICTIM, THIEF, spi=301, subtype=SMOOTH, key=bytes(16)), src=THIEF)
from_afar("theft-changed", theft[:8] + address("198.51.100.67") + theft[12:], src=THIEF)
from_afar("theft-from-earlier", update(VICTIM, THIEF, identification=ntp(-3600), spi=301, subtype=SMOOTH), src=THIEF)
print("after-thefts", kept(), flush=True)
accepted = update(VICTIM, NEXT, spi=301, subtype=SMOOTH)
up.send(AGENT_UP, ROUTER, udp(NEXT, CARE_OF, 434, accepted))
frames = serve(0.3)
gone = places(frames, b"many")
print("flushed", len(gone), *sorted(set(gone)), "kept", kept(), flush=True)
from_afar("update-again", accepted)
print("not-flushed-again", len(places(serve(), b"many")), flush=True)
attack("keep-after-leaving", first)
show("at-the-end")

# --- a request of the earlier visit is none of the next one ------------------------------------------------------------------

register()
show("returned")
attack("keep-of-the-earlier-visit", first)
show("after-the-return")
