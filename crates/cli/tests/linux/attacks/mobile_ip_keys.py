"""Attacks on the keys of smooth handoffs that a home agent distributes, at a foreign agent. The script is also the mobile node, the
home agent and the new foreign agent: it derives the keys itself (RFC 5869).

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink.
"""

import struct
import sys

from bench import Daemon, Link, ip, mac, sent_by, udp
from mip import FOREIGN_HOME, KEY, SMOOTH, address, answer, body, extension, sha256, signed
from mip import update as binding_update

AGENT_VISITED, AGENT_UP, ROUTER = mac("020000000001"), mac("020000000002"), mac("020000000009")
CARE_OF, HOME_AGENT, ROUTER_IP, SENDER = "10.3.0.1", "10.1.0.2", "10.9.0.2", "10.2.0.2"
VICTIM, OTHER = "10.1.0.7", "10.4.0.1"
MOBILE, ATTACKER = mac("020000000007"), mac("020000000066")
AGENTS_KEY = bytes(range(100, 116))
AGENTS_SPI, VENDOR_EXTENSION, VENDOR, VENDOR_KEY = 400, 134, 32473, 1
daemon, visited, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def hkdf(key, salt, info, length):
    secret = sha256(salt, key)
    block = out = b""
    for number in range(1, 2 + (length - 1) // 32):
        block = sha256(secret, block + info + bytes([number]))
        out += block
    return out[:length]


def scope(asked, spi=256):
    """The addresses of home agent, mobile node and foreign agent in a request, and the SPI of its authentication."""
    return asked[8:12] + asked[4:8] + asked[12:16] + struct.pack("!I", spi)


def derived(asked):
    """The SPI and the key of the registration that a request asks for."""
    out = hkdf(KEY, asked[16:24], b"wayfare mobile-foreign key" + scope(asked), 36)
    return struct.unpack("!I", out[32:])[0] | 1 << 31, out[:32]


def key_extension(asked, vendor=VENDOR, length=32):
    spi, key = derived(asked)
    mask = hkdf(AGENTS_KEY, asked[16:24], b"wayfare mobile-foreign mask" + scope(asked), 32)
    masked = bytes(a ^ b for a, b in zip(key, mask))
    return extension(VENDOR_EXTENSION, struct.pack("!HIHI", 0, vendor, VENDOR_KEY, spi) + masked[:length])


def serve(seconds=0.15):
    """Answers ARP for the router; returns what the agent sent on the visited link and on the uplink."""
    return sent_by((visited, AGENT_VISITED), (up, AGENT_UP), (ROUTER_IP, ROUTER), seconds)


def ask():
    asked = signed(body(VICTIM, HOME_AGENT, CARE_OF))
    visited.send(AGENT_VISITED, MOBILE, udp(VICTIM, CARE_OF, 434, asked))
    serve()
    return asked


def reply(asked, between=b"", behind=b"", key=AGENTS_KEY):
    whole = signed(signed(answer(asked)) + between, spi=AGENTS_SPI, kind=FOREIGN_HOME, key=key)
    return udp(HOME_AGENT, CARE_OF, 434, whole + behind)


def send_up(datagram):
    up.send(AGENT_UP, ROUTER, datagram)


def register(name, **more):
    """Registers with such a reply. Says whether the agent has taken a key."""
    asked = ask()
    between = more.pop("between", key_extension)(asked)
    daemon.attack(name, lambda: send_up(reply(asked, between, **more)))
    return asked


def update(asked, **more):
    spi, key = derived(asked)
    return binding_update(VICTIM, OTHER, 30, **{"spi": spi, "key": key, "subtype": SMOOTH, **more})


def attack(name, payload):
    daemon.attack(name, lambda: send_up(udp(OTHER, CARE_OF, 434, payload)))


def delivered(step):
    """Where a datagram for the victim, out of the home agent's tunnel, goes: to a link address or into a tunnel."""
    serve(0.05)
    text = step.encode()
    send_up(ip(HOME_AGENT, CARE_OF, 4, udp(SENDER, VICTIM, 9000, text, ttl=64)))
    on_link, on_uplink = serve()
    places = [frame[:6].hex() for frame in on_link if text in frame]
    places += ["tunnel-to-" + ".".join(map(str, frame[30:34])) for frame in on_uplink if text in frame]
    print(step, *places or ["none"], flush=True)


# --- what the agent takes for a key ------------------------------------------------------------------------------------------

first = register("first", between=lambda asked: b"")
attack("without-a-key", update(first))
unsigned = ask()
daemon.attack("reply-signed-by-another", lambda: send_up(reply(unsigned, key_extension(unsigned), key=KEY)))
appended = register("appended", between=lambda asked: b"", behind=key_extension(first))
attack("by-the-appended-key", update(first))
short = register("short", between=lambda asked: key_extension(asked, length=31))
attack("by-the-short-key", update(short))
twice = register("twice", between=lambda asked: 2 * key_extension(asked))
attack("by-one-of-two", update(twice))
foreign = register("of-another-vendor", between=lambda asked: key_extension(asked, vendor=9))
attack("by-the-key-of-another-vendor", update(foreign))
mixed = register("of-another-registration", between=lambda asked: key_extension(first))
attack("by-the-key-of-another-registration", update(first))
attack("by-the-key-of-this-registration", update(mixed))
delivered("before-a-key")

# --- a key, and its end --------------------------------------------------------------------------------------------------------

asked = ask()
send_up(reply(asked, key_extension(asked)))
on_link = b"".join(serve()[0])
print("on-the-link", "reply" if asked[16:24] in on_link else "none", key_extension(asked)[:14] in on_link, flush=True)
attack("with-wrong-key", update(asked, key=bytes(32)))
attack("with-the-agents-key", update(asked, key=AGENTS_KEY))
attack("with-the-masked-key", update(asked, key=key_extension(asked)[14:]))
attack("with-another-spi", update(asked, spi=derived(asked)[0] ^ 1))
lost = ask()
send_up(reply(lost, key_extension(lost)))
serve()
delivered("with-two-keys")
attack("by-the-mobile-node", update(asked))
delivered("forwarded")
attack("by-the-later-key", update(lost))
delivered("at-the-end")
