"""Messages of route optimization to a home agent (draft-ietf-mobileip-optim-09), from hosts with and without the key.

Arguments: the control socket, the interface to the home link, the one to the home agent's uplink.
"""

import sys
import time

from bench import Daemon, Link, mac, udp
from mip import A, ACKNOWLEDGE, BINDING_REQUEST, UPDATE, acknowledge, binding_request, body, generalized, ntp, signed, update, warning

AGENT, NODE, CARE_OF, SENDER, OTHER = "10.1.0.2", "10.1.0.7", "10.3.0.1", "10.2.0.2", "10.66.0.2"
UP_MAC, ROUTER, ROUTER_IP = mac("020000000002"), mac("020000000009"), "10.9.0.2"
daemon, up = Daemon(sys.argv[1]), Link(sys.argv[3])


def hear(seconds=0.15):
    frames = []
    for frame in up.hear(seconds):
        up.answer_arp(frame, ROUTER_IP, ROUTER)
        frames.append(frame)
    return frames


def send(message, src=SENDER):
    list(up.frames())
    up.send(UP_MAC, ROUTER, udp(src, AGENT, 434, message))
    return [frame[42:] for frame in hear() if frame[23] == 17 and frame[42] == UPDATE]


def attack(name, message, **more):
    daemon.attack(name, lambda: send(message, **more))


def asked(step, message, **more):
    """Prints the number of Binding Updates that a message causes, and returns the last one."""
    updates = send(message, **more)
    print(step, len(updates), flush=True)
    return updates[-1] if updates else None


for _ in range(5):
    send(signed(body(NODE, AGENT, CARE_OF)), src=CARE_OF)
last = asked("request", binding_request(NODE))
attack("request-again", binding_request(NODE))

# --- Acknowledges: forged, reflected, truncated -------------------------------------------------------------------------
identification = last[12:20]
attack("acknowledge-of-another", acknowledge(NODE, identification), src=OTHER)
attack("acknowledge-other-update", acknowledge(NODE, ntp()))
attack("acknowledge-without-identification", acknowledge(NODE, signed=False))
attack("acknowledge-unsigned", acknowledge(NODE, identification, signed=False))
answer = acknowledge(NODE, identification)
attack("acknowledge-reserved", answer[:1] + b"\1" + answer[2:])
attack("acknowledge-wrong-key", acknowledge(NODE, identification, key=bytes(16)))
attack("acknowledge-of-another-node", acknowledge("10.1.0.9", identification))
attack("acknowledge-truncated", acknowledge(NODE, identification)[:-1])
attack("acknowledge-short", acknowledge(NODE, identification)[:7])
attack("update-reflected", last)

# --- Requests and Warnings ------------------------------------------------------------------------------------------------
attack("request-of-another", binding_request(NODE), src=OTHER)
attack("request-for-another-node", binding_request("10.1.0.99"))
attack("request-truncated", binding_request(NODE)[:15])
attack("request-trailing", binding_request(NODE) + b"\0")
asking = binding_request(NODE)
attack("request-wrong-key", asking + generalized(asking, key=bytes(16)))
attack("request-reserved", asking[:3] + b"\1" + asking[4:])
attack("no-target", warning(NODE, []))
attack("17-targets", warning(NODE, [SENDER] * 17))
attack("half-a-target", warning(NODE, [SENDER]) + b"\x0a\x02")
attack("other-targets", warning(NODE, [f"10.66.0.{number}" for number in range(1, 17)]))
attack("group-target", warning(NODE, ["224.0.0.1"]))
attack("own-target", warning(NODE, [AGENT]))
attack("another-node", warning("10.1.0.99", [SENDER]))
time.sleep(2.1)
asked("16-targets", warning(NODE, [SENDER] * 16), src=OTHER)
asked("16-targets-again", warning(NODE, [SENDER] * 16), src=OTHER)
