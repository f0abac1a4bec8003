"""Hosts on a visited link at a foreign agent that has associations, requires a challenge (RFC 4721) and offers reverse tunnels
(RFC 3024). The script is also the home agent, the visitors and the router.

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink.
"""

import socket
import struct
import sys
import time

from bench import Daemon, Link, ip, mac, many, sent_by, udp
from mip import (D, FOREIGN_HOME, KEY, MOBILE_FOREIGN, T, address, answer, authentication, body, extension, nonce, ntp, signed,
                 solicitation)

AGENT_VISITED, AGENT_UP, ROUTER = mac("020000000001"), mac("020000000002"), mac("020000000009")
CARE_OF, HOME_AGENT, ROUTER_IP, SENDER = "10.3.0.1", "10.1.0.2", "10.9.0.2", "10.2.0.2"
# The victim uses the direct style, the second node the encapsulating style; the third is the attacker's own node.
VICTIM, SECOND, INSIDER, STRANGER = "10.1.0.7", "10.1.0.8", "10.1.0.9", "10.1.0.66"
MACS = {VICTIM: mac("020000000007"), SECOND: mac("020000000008"), INSIDER: mac("020000000066")}
ATTACKER = MACS[INSIDER]
CHALLENGE, STYLE = 132, 130
daemon, visited, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])
strangers = (b"\x02\x77" + struct.pack("!I", number) for number in range(1000))


def serve(seconds=0.15):
    """Answers ARP for the router; returns what the agent sent on the visited link and on the uplink."""
    return sent_by((visited, AGENT_VISITED), (up, AGENT_UP), (ROUTER_IP, ROUTER), seconds)


def newest():
    """The challenge of an advertisement that answers a solicitation."""
    list(visited.frames())
    visited.send(b"\xff" * 6, ATTACKER, solicitation("10.1.0.99"))
    for frame in serve()[0]:
        advertised = frame[34:]
        if frame[:6] == ATTACKER and advertised[:1] == b"\x09":
            at = advertised.index(b"\x18\x08", 8)
            return advertised[at + 2 : at + 10]
    raise SystemExit("no advertisement")


def request(home, challenge=None, key=KEY, spi=301, flags=T, style=None, lifetime=300, care_of=CARE_OF, signs=True):
    asked = signed(body(home, HOME_AGENT, care_of, lifetime=lifetime, flags=flags))
    asked += extension(STYLE, style) if style is not None else b""
    asked += extension(CHALLENGE, challenge) if challenge is not None else b""
    return signed(asked, key=key, spi=spi, kind=MOBILE_FOREIGN) if signs else asked


def send(asked, link_address, src=None, **more):
    source = src or socket.inet_ntoa(asked[4:8])
    visited.send(AGENT_VISITED, link_address, udp(source, CARE_OF, 434, asked, **more))


def attack(name, asked, link_address=None, **more):
    daemon.attack(name, lambda: send(asked, link_address or next(strangers), **more))


def reply(asked, key=KEY, spi=302, **more):
    """The home agent's reply, with its Foreign-Home Authentication."""
    message = signed(answer(asked, **more))
    return udp(HOME_AGENT, CARE_OF, 434, signed(message, key=key, spi=spi, kind=FOREIGN_HOME))


def register(home, link_address=None, **more):
    """Registers a node; returns the request, and the challenge in the reply."""
    for _ in range(5):
        asked = request(home, newest(), **more)
        send(asked, link_address or MACS[home])
        serve()
        up.send(AGENT_UP, ROUTER, reply(asked))
        for frame in serve()[0]:
            got = frame[42:]
            if got[:2] == b"\x03\0" and got[4:8] == address(home):
                at = got.index(bytes([CHALLENGE, 8]), 20)
                return asked, got[at + 2 : at + 10]
    raise SystemExit(f"{home} is not registered")


def tunneled(home, text):
    """The hosts on the visited link that get a datagram for `home` out of the home agent's tunnel."""
    list(visited.frames())
    up.send(AGENT_UP, ROUTER, ip(HOME_AGENT, CARE_OF, 4, udp(SENDER, home, 9000, text, ttl=64)))
    return sorted(frame[:6].hex() for frame in serve()[0] if text in frame) or ["none"]


def reversed_(home, text, link_address=None, encapsulating=False):
    """How a datagram from a link address with the source `home` leaves by the uplink: in the tunnel, plain or not at all."""
    list(up.frames())
    inner = udp(home, SENDER, 9000, text, ttl=64)
    packet = ip(home, CARE_OF, 4, inner) if encapsulating else inner
    visited.send(AGENT_VISITED, link_address or MACS[home], packet)
    frames = [frame for frame in serve()[1] if text in frame]
    return ["tunnel" if (frame[23], frame[30:34]) == (4, address(HOME_AGENT)) else "plain" for frame in frames] or ["none"]


def delivered(step):
    text = step.encode()
    print(step, *tunneled(VICTIM, text), *reversed_(VICTIM, text), *reversed_(SECOND, text, encapsulating=True), flush=True)


# --- challenges ----------------------------------------------------------------------------------------------------------

attack("without-challenge", request(VICTIM))
attack("unknown-challenge", request(VICTIM, b"8 bytes."))
attack("challenge-without-authentication", request(VICTIM, newest(), signs=False))
attack("challenge-behind-the-authentication", request(VICTIM) + extension(CHALLENGE, newest()))
attack("wrong-key", request(VICTIM, newest(), key=bytes(16)))
attack("wrong-spi", request(VICTIM, newest(), spi=999))
attack("unknown-node", request(STRANGER, newest()))
again = request(VICTIM, newest())
attack("authentication-twice", signed(again, spi=301, kind=MOBILE_FOREIGN))
attack("empty-challenge", request(VICTIM, b""))
attack("changed-lifetime", again[:2] + b"\0\x40" + again[4:])
attack("a-router-away", request(VICTIM, newest()), ttl=254)
attack("style-with-data", request(VICTIM, newest(), style=b"x"))
attack("style-without-tunnel", request(VICTIM, newest(), style=b"", flags=0))
old = newest()

# --- the home agent's replies --------------------------------------------------------------------------------------------


def answered(name, link_address, **more):
    """A request that the agent relays, and a forged reply from the uplink."""
    asked = request(VICTIM, newest())
    plain = more.pop("plain", False)

    def act():
        send(asked, link_address)
        serve()
        up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, signed(answer(asked))) if plain else reply(asked, **more))
        serve()

    daemon.attack(name, act)


answered("reply-without-authentication", mac("020000000017"), plain=True)
answered("reply-with-wrong-key", mac("020000000027"), key=bytes(16))
answered("reply-with-wrong-spi", mac("020000000037"), spi=999)

# --- visitors ------------------------------------------------------------------------------------------------------------

asked, issued = register(VICTIM)
register(SECOND, style=b"")
delivered("at-first")
attack("replayed-by-another", asked, ATTACKER)
attack("replayed-from-its-own-address", asked, MACS[VICTIM])
attack("challenge-of-another", request(INSIDER, issued), ATTACKER)
attack("deregistration-without-key", request(VICTIM, newest(), key=bytes(16), lifetime=0))
attack("deregistration-without-challenge", request(VICTIM, lifetime=0))
time.sleep(1.8)
attack("challenge-too-old", request(VICTIM, old))
delivered("after-requests")
print("from-another-link-address", *reversed_(VICTIM, b"other", ATTACKER), flush=True)
print("of-another-visitor", *reversed_(VICTIM, b"another", MACS[SECOND]), flush=True)
as_another = udp(VICTIM, SENDER, 9000, b"x", ttl=64)
daemon.attack("in-the-name-of-another-visitor", lambda: visited.send(AGENT_VISITED, MACS[SECOND], as_another))
print("of-no-visitor", *reversed_("10.3.0.88", b"own", MACS[SECOND]), flush=True)


def opened(name, link_address, inner, outer=SECOND, **more):
    daemon.attack(name, lambda: visited.send(AGENT_VISITED, link_address, ip(outer, CARE_OF, 4, inner, **more)))


data = udp(SECOND, SENDER, 9000, b"x", ttl=64)
opened("tunnel-of-another-link-address", ATTACKER, data)
opened("tunnel-with-the-source-of-another", MACS[SECOND], udp(VICTIM, SENDER, 9000, b"x", ttl=64))
opened("tunnel-of-a-direct-visitor", MACS[VICTIM], udp(VICTIM, SENDER, 9000, b"x", ttl=64), outer=VICTIM)
opened("tunnel-inner-truncated", MACS[SECOND], data[:10])
opened("tunnel-inner-no-hops", MACS[SECOND], udp(SECOND, SENDER, 9000, b"x", ttl=0))
opened("tunnel-inner-last-hop", MACS[SECOND], udp(SECOND, SENDER, 9000, b"x", ttl=1))
opened("tunnel-in-a-fragment", MACS[SECOND], data, fragment=0x2000)
nested = data
for _ in range(5):
    nested = ip(SECOND, CARE_OF, 4, nested)
opened("tunnel-nested", MACS[SECOND], nested)

# The attacker's own node registers from the victim's link address.
register(INSIDER, MACS[VICTIM])
print("an-insider-with-the-link-address-of-the-victim", *tunneled(INSIDER, b"insider"), flush=True)
delivered("beside-the-insider")

# --- floods ----------------------------------------------------------------------------------------------------------------

forged = request(VICTIM, old)
daemon.flood("forged-by-many", "answered_recently", many(lambda _: udp(VICTIM, CARE_OF, 434, forged)), visited, AGENT_VISITED)
daemon.flood("tunnels-by-many", "", many(lambda n: ip(SECOND, CARE_OF, 4, data)), visited, AGENT_VISITED)
delivered("at-the-end")
