"""Binding Updates to a correspondent (draft-ietf-mobileip-optim-09), from hosts with and without the key.

Arguments: the control socket, the interface to the correspondent's link, the one to its uplink.
"""

import json
import sys
import time

from bench import NOBODY, Daemon, Link, mac, udp
from mip import A, I, SMOOTH, acknowledge, address, body, keyed_md5, hmac_md5, ntp, signed, update, warning

OWN, AGENT, OTHER = "10.2.0.2", "10.1.0.2", "10.66.0.2"
NODE, CARE_OF, WRONG = "10.1.0.7", "10.3.0.1", "10.66.0.1"
DAEMON_MAC, ROUTER = mac("020000000002"), mac("020000000009")
# The router does not answer ARP, so acknowledgements end there.
daemon, up = Daemon(sys.argv[1], ignored=NOBODY), Link(sys.argv[3])


def send(message, src=AGENT, dst=OWN):
    up.send(DAEMON_MAC, ROUTER, udp(src, dst, 434, message))


def attack(name, message, **more):
    daemon.attack(name, lambda: send(message, **more))


def entry(step):
    """Prints the care-of address of the mobile node."""
    status = json.loads(daemon.ask(b'{"do":{"verb":"status"}}'))["ok"]
    known = status["binding_cache"]["bindings"].get(NODE)
    print(step, known["care_of"] if known else "none", flush=True)


first = update(NODE, CARE_OF)
daemon.attack("first", lambda: send(first))
entry("after-first")

# --- forged -----------------------------------------------------------------------------------------------------------
attack("wrong-key", update(NODE, WRONG, key=bytes(16)))
attack("unknown-spi", update(NODE, WRONG, spi=401))
attack("of-another-host", update(NODE, WRONG), src=OTHER)
attack("of-the-node", update(NODE, WRONG), src=NODE)
attack("subtype-of-handoffs", update(NODE, WRONG, subtype=SMOOTH))
attack("keyed-md5", update(NODE, WRONG, algorithm=keyed_md5))
attack("hmac-md5", update(NODE, WRONG, algorithm=hmac_md5))
genuine = update(NODE, WRONG)
attack("another-care-of-address", genuine[:8] + address(OTHER) + genuine[12:])
attack("another-lifetime", genuine[:2] + b"\xff\xff" + genuine[4:])
attack("another-flag", genuine[:1] + b"\xf0" + genuine[2:])
attack("reserved-bits", genuine[:1] + b"\xcf" + genuine[2:])

# --- repeated and old --------------------------------------------------------------------------------------------------
attack("without-identification", update(NODE, WRONG, flags=A))
attack("old", update(NODE, WRONG, identification=ntp(-3)))
time.sleep(1.1)
attack("too-old", update(NODE, WRONG, identification=ntp(-9)))
time.sleep(1.1)
early = update(NODE, WRONG, identification=ntp(9))
attack("too-early", early)
entry("after-too-early")
time.sleep(1.1)
attack("again", update(NODE, CARE_OF))
attack("too-early-again", early)
time.sleep(1.1)
attack("deletes-old", update(NODE, CARE_OF, lifetime=0, identification=ntp(-6)))

# --- truncated and malformed -------------------------------------------------------------------------------------------
for length in range(1, len(genuine)):
    send(genuine[:length])
attack("trailing", genuine + b"\0")
attack("no-authentication", genuine[:20])
attack("length-of-authentication", update(NODE, WRONG, length=3))
attack("other-extension", genuine[:20] + b"\x25" + genuine[21:])
attack("empty", b"")

# --- addresses ---------------------------------------------------------------------------------------------------------
time.sleep(1.1)
attack("home-of-another-network", update("10.7.0.7", WRONG))
attack("home-is-own", update(OWN, WRONG))
attack("home-is-the-agent", update(AGENT, WRONG))

# --- other messages ----------------------------------------------------------------------------------------------------
attack("own-acknowledge", acknowledge(NODE, ntp()))
attack("warning", warning(NODE, [OWN]))
attack("registration", signed(body(NODE, OWN, WRONG)))
entry("at-last")

# --- the key: nonsense of the home agent itself ends the entry, as it is newer -------------------------------------------
for name, care_of in (("own", OWN), ("loopback", "127.0.0.1"), ("group", "224.0.0.1"), ("all", "255.255.255.255"), ("none", "0.0.0.0")):
    attack("care-of-" + name, update(NODE, care_of))
entry("after-nonsense")

time.sleep(1.1)
attack("moves", update(NODE, "10.4.0.1"))
entry("after-move")
attack("replayed-first", first)
entry("after-replay")
attack("deletes", update(NODE, NODE))
attack("replayed-after-delete", first)
entry("after-delete")
