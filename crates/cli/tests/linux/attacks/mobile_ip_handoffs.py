"""Attacks on smooth handoffs (draft-ietf-mobileip-optim-09) at a foreign agent, first as the previous and then as the new agent. The
script is also the mobile node, the home agent, the other foreign agents and the router.

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink.
"""

import struct
import sys

from bench import Daemon, Link, ip, mac, sent_by, udp
from mip import KEY, MOBILE_FOREIGN, SMOOTH, acknowledge, address, answer, body, extension, hmac_md5, ntp, signed, warning
from mip import update as binding_update

AGENT_VISITED, AGENT_UP, ROUTER = mac("020000000001"), mac("020000000002"), mac("020000000009")
CARE_OF, HOME_AGENT, ROUTER_IP, SENDER = "10.3.0.1", "10.1.0.2", "10.9.0.2", "10.2.0.2"
VICTIM, STRANGER, OTHER, THIRD = "10.1.0.7", "10.1.0.66", "10.4.0.1", "10.5.0.1"
MOBILE, ATTACKER = mac("020000000007"), mac("020000000066")
PREVIOUS_AGENT = 96
daemon, visited, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def serve(seconds=0.15):
    """Answers ARP for the router; returns what the agent sent on the visited link and on the uplink."""
    return sent_by((visited, AGENT_VISITED), (up, AGENT_UP), (ROUTER_IP, ROUTER), seconds)


def update(care_of=OTHER, home=VICTIM, lifetime=30, **more):
    return binding_update(home, care_of, lifetime, **{"spi": 301, "subtype": SMOOTH, **more})


def send_up(payload, src=OTHER):
    up.send(AGENT_UP, ROUTER, udp(src, CARE_OF, 434, payload))


def attack(name, payload, **more):
    daemon.attack(name, lambda: send_up(payload, **more))


def tunnel(name, entry, home=VICTIM):
    inner = udp(SENDER, home, 9000, name.encode(), ttl=64)
    daemon.attack(name, lambda: up.send(AGENT_UP, ROUTER, ip(entry, CARE_OF, 4, inner)))


def request(previous=None, cut=None, home=VICTIM, identification=None, new=CARE_OF, key=KEY):
    """A request that names its previous agent."""
    identification = identification or ntp()
    asked = signed(body(home, HOME_AGENT, CARE_OF, identification=identification))
    if previous is not None:
        wanted = update(care_of=new, home=home, identification=identification, key=key)
        data = struct.pack("!H", 30) + address(previous) + address(new) + wanted[-36:]
        asked += extension(PREVIOUS_AGENT, data[:cut])
    return asked


def send(asked, link_address=MOBILE, home=VICTIM, signs=True):
    whole = signed(asked, spi=301, kind=MOBILE_FOREIGN) if signs else asked
    visited.send(AGENT_VISITED, link_address, udp(home, CARE_OF, 434, whole))


def register(**more):
    asked = request(**more)
    send(asked)
    serve()
    up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, signed(answer(asked))))
    return serve()


def delivered(step, entry=HOME_AGENT):
    """Where a datagram for the victim, out of a tunnel from `entry`, goes: to a link address or into a tunnel."""
    serve(0.05)
    text = step.encode()
    up.send(AGENT_UP, ROUTER, ip(entry, CARE_OF, 4, udp(SENDER, VICTIM, 9000, text, ttl=64)))
    on_link, on_uplink = serve()
    places = [frame[:6].hex() for frame in on_link if text in frame]
    places += ["tunnel-to-" + ".".join(map(str, frame[30:34])) for frame in on_uplink if text in frame]
    print(step, *places or ["none"], flush=True)


# --- the agent is the previous one -----------------------------------------------------------------------------------------

register()
delivered("at-first")
attack("update-with-wrong-key", update(key=bytes(16)))
attack("update-with-wrong-spi", update(spi=302))
attack("update-with-wrong-subtype", update(subtype=250))
attack("update-with-weaker-algorithm", update(algorithm=hmac_md5))
attack("update-of-unknown-node", update(home=STRANGER))
attack("update-without-identification", update(flags=0x80))
attack("update-from-yesterday", update(identification=ntp(-86400)))
attack("update-to-this-agent", update(care_of=CARE_OF))
attack("update-to-a-group", update(care_of="224.0.0.9"))
attack("update-to-the-broadcast-address", update(care_of="10.3.0.255"))
attack("update-to-the-home-agent", update(care_of=HOME_AGENT))
attack("update-without-authentication", update()[:20])
attack("update-of-one-octet", update()[:1])
attack("update-cut-in-the-authenticator", update()[:-1])
attack("update-longer", update() + b"x")
attack("acknowledge", acknowledge(VICTIM, ntp(), signed=False))
attack("warning", warning(VICTIM, [SENDER]))
attack("warning-without-targets", warning(VICTIM, []))
changed = bytearray(update())
changed[15] ^= 1
attack("update-with-another-care-of-address", bytes(changed))
daemon.attack("update-from-the-visited-link", lambda: visited.send(AGENT_VISITED, ATTACKER, udp(OTHER, CARE_OF, 434, update(key=bytes(16)))))
delivered("after-updates")
accepted = update()
send_up(accepted)
serve()
delivered("forwarded")
attack("replayed", accepted)
attack("replayed-by-another", accepted, src="10.6.6.6")
attack("older", update(care_of=THIRD, identification=ntp(-5)))
tunnel("tunnel-of-another-host", "198.51.100.66")
tunnel("tunnel-of-the-new-agent", OTHER)
tunnel("tunnel-for-another-host", HOME_AGENT, home=STRANGER)
delivered("still-forwarded")

# --- the agent is the new one: the mobile node comes back --------------------------------------------------------------------

for length in (0, 13):
    daemon.attack(f"notification-of-{length}", lambda length=length: send(request(previous=OTHER, cut=length)))
daemon.attack("notification-without-authentication", lambda: send(request(previous=OTHER), signs=False))
asked = request(previous=OTHER)
send(asked)
sent = [frame for frame in serve()[1] if frame[30:34] == address(OTHER) and frame[42:43] == b"\x12"]
identification = asked[16:24]
print("update-is-that-of-the-mobile-node", [frame[42:] for frame in sent] == [update(care_of=CARE_OF, identification=identification)], flush=True)
tunnel("early-tunnel-of-another-host", "198.51.100.66")
daemon.attack("request-of-another-link-address", lambda: send(asked, ATTACKER))
serve(0.05)
for number in range(80):
    up.send(AGENT_UP, ROUTER, ip(OTHER, CARE_OF, 4, udp(SENDER, VICTIM, 9000, b"early" + bytes([number]), ttl=64)))
early = [frame[:6].hex() for frame in serve(0.5)[0] if b"early" in frame]
print("early-packets", len(early), *sorted(set(early)), flush=True)
up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, signed(answer(asked))))
serve()
delivered("registered")
delivered("registered-by-the-previous-agent", OTHER)
attack("old-update-after-the-return", accepted)
delivered("at-the-end")
