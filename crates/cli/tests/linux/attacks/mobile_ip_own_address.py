"""Hosts on a visited link, at a mobile node that acquires its care-of address by DHCP (RFC 2131) and opens its own tunnel. The
script is also the DHCP server, the router of the link and the home agent.

The kernel of the mobile node answers ICMP echo requests: their data are those of the victim.

Arguments: the control socket, the interface to the visited link, another interface to the mobile node.
"""

import random
import socket
import struct
import sys
import time

from bench import Daemon, Link, arp, icmp, ip, mac, many, udp
from dhcp import (ACK, DECLINE, DISCOVER, LEASE, MASK, NAK, OFFER, OVERLOAD, REQUEST, ROUTER, SERVER, address, datagram, message, option,
                  read)
from mip import KEY, answer, signed

NODE, SERVER_MAC, ATTACKER, ALL = mac("020000000001"), mac("020000000009"), mac("020000000066"), b"\xff" * 6
HOME, HOME_AGENT, SENDER = "10.1.0.7", "10.1.0.2", "10.2.0.2"
SERVER_IP, OWN, ROGUE = "10.3.0.1", "10.3.0.77", "10.3.0.66"
daemon, link, other = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def hear(seconds=0.2):
    """Returns the frames of the node. The router answers ARP."""
    frames = []
    for frame in link.hear(seconds):
        if frame[6:12] == NODE:
            frames.append(frame)
            link.answer_arp(frame, SERVER_IP, SERVER_MAC)
    return frames


def heard(kind, seconds=1.5):
    """Waits for a DHCP message of this type. Returns its transaction."""
    end = time.time() + seconds
    while time.time() < end:
        for frame in hear(0.1):
            got = read(frame)
            if got and got[0] == kind:
                return got[1]
    raise SystemExit(f"no message of type {kind}; {state()}")


def state():
    return daemon.look()[0]["dhcp_client"]


def terms(server=SERVER_IP, lease=600, mask=b"\xff\xff\xff\0", router=SERVER_IP, more=b""):
    parts = [(SERVER, server and address(server)), (LEASE, lease is not None and struct.pack("!I", lease)), (MASK, mask), (ROUTER, router and address(router))]
    return b"".join(option(code, value) for code, value in parts if value) + more


def send(kind, transaction, by=SERVER_MAC, src=SERVER_IP, to=ALL, dst="255.255.255.255", yours=OWN, options=None, client=NODE, over=link, **more):
    payload = message(kind, transaction, client, terms() if options is None else options, yours=yours, **more)
    over.send(to, by, datagram(src, dst, True, payload))


def attack(name, kind, transaction, **more):
    daemon.attack(name, lambda: send(kind, transaction, by=ATTACKER, **more))


def malformed(name, payload):
    daemon.attack(name, lambda: link.send(ALL, ATTACKER, datagram(SERVER_IP, "255.255.255.255", True, payload)))


# --- while the client selects: malformed and impossible offers -----------------------------------------------------------------------

daemon.ask(b'{"do":{"verb":"renew"}}')  # the first message may have been sent before this host listened
x = heard(DISCOVER)
good = message(OFFER, x, NODE, terms(), yours=OWN)
malformed("empty", b"")
malformed("truncated", good[:239])
malformed("cookie", message(OFFER, x, NODE, terms(), cookie=bytes(4)))
malformed("hardware", message(OFFER, x, NODE, terms(), hardware=b"\x01\x08"))
malformed("no-end", good[: 240 + 3 + 24])
malformed("option-truncated", message(OFFER, x, NODE, terms(), yours=OWN, end=b"")[:252])
malformed("wrong-direction", message(OFFER, x, NODE, terms(), op=1))
malformed("no-type", message(OFFER, x, NODE, terms(), typed=False))
malformed("option-twice", message(OFFER, x, NODE, terms(more=option(LEASE, bytes(4)))))
malformed("lease-of-three-bytes", message(OFFER, x, NODE, terms(lease=None, more=option(LEASE, bytes(3)))))
malformed("no-router-in-the-option", message(OFFER, x, NODE, terms(router=None, more=option(ROUTER, b""))))
malformed("overload-of-nothing", message(OFFER, x, NODE, terms(more=option(OVERLOAD, b"\0"))))
attack("another-transaction", OFFER, x ^ 1)
attack("for-another-client", OFFER, x, client=mac("020000000055"))
attack("no-server", OFFER, x, options=terms(server=None))
attack("server-is-no-host", OFFER, x, options=terms(server="224.0.0.1"))
attack("no-mask", OFFER, x, options=terms(mask=None))
attack("mask-of-no-bits", OFFER, x, options=terms(mask=bytes(4)))
attack("mask-with-a-hole", OFFER, x, options=terms(mask=b"\xff\0\xff\0"))
attack("no-lease-time", OFFER, x, options=terms(lease=None))
attack("lease-of-zero", OFFER, x, options=terms(lease=0))
for yours in ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.3.0.0", "10.3.0.255", SERVER_IP):
    attack("address-" + yours, OFFER, x, yours=yours)
attack("acknowledgment-of-nothing", ACK, x)
attack("refusal-of-nothing", NAK, x)
attack("on-another-link", OFFER, x, over=other)

# --- while the client requests ---------------------------------------------------------------------------------------------------------

send(OFFER, x)
x = heard(REQUEST)
attack("rogue-offer", OFFER, x, options=terms(server=ROGUE), yours="10.3.0.78")
attack("rogue-acknowledgment", ACK, x, options=terms(server=ROGUE))
attack("rogue-refusal", NAK, x, options=option(SERVER, address(ROGUE)))
attack("refusal-without-server", NAK, x, options=b"")
attack("another-address", ACK, x, yours="10.3.0.78")
attack("acknowledgment-of-zero-seconds", ACK, x, options=terms(lease=0))
attack("acknowledgment-of-another-transaction", ACK, x ^ 1)

# --- with an address ---------------------------------------------------------------------------------------------------------------------


def register():
    """Answers the registration requests of the node by its router."""
    for _ in range(30):
        for frame in hear(0.15):
            asked = frame[42:]
            if frame[23] == 17 and frame[36:38] == b"\x01\xb2" and asked[:1] == b"\x01":
                link.send(NODE, SERVER_MAC, udp(HOME_AGENT, OWN, 434, signed(answer(asked))))
        if daemon.look()[0]["mobile_node"]["state"] == "registered":
            return
    raise SystemExit(f"not registered: {daemon.look()[0]}")


def delivered(step):
    """Prints to which link address the answer to an echo request in the tunnel goes, if it has the same data."""
    data = struct.pack("!HH", 7, 7) + step.encode()
    link.send(NODE, SERVER_MAC, ip(HOME_AGENT, OWN, 4, icmp(SENDER, HOME, 8, 0, data)))
    print(step, *(frame[:6].hex() for frame in hear() if frame[38:].startswith(data)) or ["none"], flush=True)




def taken():
    """Answers the client's ARP probe. Returns whether the client declines the address."""
    end = time.time() + 2
    while time.time() < end:
        for frame in link.hear(0.05):
            if frame[6:12] == NODE and frame[12:14] == b"\x08\x06" and frame[28:32] == bytes(4) and frame[38:42] == address(OWN):
                link.send(NODE, ATTACKER, arp(2, ATTACKER, OWN) + NODE + bytes(4), 0x0806)
            got = read(frame)
            if got and got[0] == DECLINE:
                return True
    return False


send(ACK, x)
print("declines-an-address-in-use", taken(), state()["address"], flush=True)
daemon.ask(b'{"do":{"verb":"renew"}}')
send(OFFER, heard(DISCOVER))
send(ACK, heard(REQUEST))
register()
delivered("at-first")
for name, kind in (("offer-unasked", OFFER), ("acknowledgment-unasked", ACK), ("refusal-unasked", NAK)):
    attack(name, kind, x)
attack("acknowledgment-by-unicast", ACK, x, to=NODE, dst=OWN)

# --- the tunnel --------------------------------------------------------------------------------------------------------------------------


def tunnel(name, inner, entry=HOME_AGENT, protocol=4, **more):
    daemon.attack(name, lambda: link.send(NODE, ATTACKER, ip(entry, OWN, protocol, inner, **more)))


echo = icmp(SENDER, HOME, 8, 0, bytes(8))
tunnel("tunnel-of-another-home-agent", echo, entry="10.66.0.2")
tunnel("tunnel-of-the-router", echo, entry=SERVER_IP)
tunnel("tunnel-for-another-node", icmp(SENDER, "10.1.0.8", 8, 0, bytes(8)))
tunnel("tunnel-for-the-care-of-address", icmp(SENDER, OWN, 8, 0, bytes(8)))
tunnel("tunnel-inner-truncated", echo[:11])
tunnel("tunnel-inner-empty", b"")
tunnel("tunnel-inner-version", b"\x65" + echo[1:])
tunnel("tunnel-inner-checksum", echo[:10] + b"\0\0" + echo[12:])
tunnel("tunnel-inner-no-hops", ip(SENDER, HOME, 1, echo[20:], ttl=0))
nested = echo
for _ in range(5):
    nested = ip(HOME_AGENT, OWN, 4, nested)
tunnel("tunnel-nested", nested)
tunnel("tunnel-gre-checksum", b"\x80\0\x08\0\x12\x34\0\0" + echo, protocol=47)
tunnel("tunnel-minimal-checksum", b"\x01\x80\x12\x34" + address(HOME) + address(SENDER) + echo[20:], protocol=55)
delivered("after-tunnels")

# --- while the client extends its lease ----------------------------------------------------------------------------------------------------


def begin():
    """The operator lets the client extend its lease. Returns the transaction."""
    list(link.frames())
    daemon.ask(b'{"do":{"verb":"renew"}}')
    return heard(REQUEST)


x = begin()
attack("rogue-extension", ACK, x, options=terms(server=ROGUE))
attack("rogue-refusal-of-the-extension", NAK, x, options=option(SERVER, address(ROGUE)))
attack("extension-of-another-address", ACK, x, yours="10.3.0.78")
attack("extension-of-zero-seconds", ACK, x, options=terms(lease=0))
attack("extension-of-another-transaction", ACK, x ^ 1)
delivered("while-it-extends")
send(ACK, x, to=NODE, dst=OWN)
print("extended", daemon.settled()[0]["dhcp_client"]["state"], flush=True)

# --- address conflicts (RFC 5227, section 2.4) -----------------------------------------------------------------------------------------------


def claim():
    link.send(ALL, ATTACKER, arp(1, ATTACKER, OWN) + bytes(6) + address(OWN), 0x0806)


def defended():
    """Whether the node announces its address again."""
    return any(frame[12:14] == b"\x08\x06" and frame[28:32] == frame[38:42] == address(OWN) for frame in hear(0.3))


list(link.frames())
daemon.attack("address-claimed", claim)
print("address-defended", defended(), flush=True)
delivered("after-the-claim")

# --- floods --------------------------------------------------------------------------------------------------------------------------------------

answer_ = lambda n: datagram(SERVER_IP, "255.255.255.255", True, message(NAK, n, NODE, option(SERVER, address(SERVER_IP))))
daemon.flood("refusals-of-many", "dhcp_unexpected", many(answer_), link, ALL)
daemon.flood("tunnels-of-many", "not_home_agents_tunnel", many(lambda n: ip(f"10.77.{n >> 8}.{n & 255}", OWN, 4, echo)), link, NODE)


def noise():
    chance = random.Random(14)
    for number in range(2000):
        bad = bytearray(message(chance.choice((OFFER, ACK, NAK)), number, NODE, terms(), yours=OWN))
        for _ in range(chance.randrange(1, 6)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        link.send(ALL, ATTACKER, datagram(SERVER_IP, "255.255.255.255", True, bytes(bad[: chance.randrange(1, len(bad) + 1)])))


noise()
print("after-noise", daemon.settled()[0]["dhcp_client"]["state"], flush=True)
delivered("after-floods")
# A second claim soon after the first ends the use of the address: another host may have it.
time.sleep(0.1)
claim()
heard(DECLINE)
print("after-two-claims", daemon.settled()[0]["dhcp_client"]["state"], flush=True)
