"""A flow to a visitor of a foreign agent whose data path is in the kernel. The script is the mobile node, the home agent, the next
foreign agent and the router. It prints where the datagrams went, and who forwarded them.

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink, and `leave`, `flow` or
`register`.
"""

import json
import socket
import sys
import time

from bench import Daemon, Link, ip, mac, sent_by, udp
from mip import MOBILE_FOREIGN, SMOOTH, answer, body, signed, update

AGENT_VISITED, AGENT_UP, ROUTER = mac("020000000001"), mac("020000000002"), mac("020000000009")
CARE_OF, HOME_AGENT, ROUTER_IP, SENDER = "10.3.0.1", "10.1.0.2", "10.9.0.2", "10.2.0.2"
VISITOR, NEXT, MOBILE = "10.1.0.7", "10.4.0.1", mac("020000000007")
KEPT = 3  # `packets` of the agent
daemon, visited, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])
for link in (visited, up):
    link.socket.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE


def serve(seconds=0.2):
    return sent_by((visited, AGENT_VISITED), (up, AGENT_UP), (ROUTER_IP, ROUTER), seconds)


def status():
    return json.loads(daemon.ask(b'{"do":{"verb":"status"}}'))["ok"]


def buffered():
    return next(role["buffer"]["packets"] for role in status().values() if isinstance(role, dict) and "buffer" in role)


def register():
    asked = signed(body(VISITOR, HOME_AGENT, CARE_OF))
    visited.send(AGENT_VISITED, MOBILE, udp(VISITOR, CARE_OF, 434, signed(asked, spi=301, kind=MOBILE_FOREIGN)))
    serve()
    up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, signed(answer(asked))))
    serve()


def data(number):
    text = b"flow%06d" % number
    inner = udp(SENDER, VISITOR, 9000, text, ttl=64, ident=number + 1)
    up.send(AGENT_UP, ROUTER, ip(HOME_AGENT, CARE_OF, 4, inner))


def numbers(frames):
    """The numbers of the datagrams in these frames."""
    return [int(frame[frame.index(b"flow") + 4 :][:6]) for frame in frames if b"flow" in frame]


def moves(key=None):
    more = {} if key is None else {"key": key}
    up.send(AGENT_UP, ROUTER, udp(NEXT, CARE_OF, 434, update(VISITOR, NEXT, spi=301, subtype=SMOOTH, **more)))


def tunneled(on_uplink):
    """What is in the tunnel to the next agent, and its times to live."""
    inside = [frame for frame in on_uplink if frame[23] == 4 and frame[30:34] == socket.inet_aton(NEXT)]
    return numbers(inside), sorted({frame[42] for frame in inside if b"flow" in frame})


def flow(count):
    """A flow to the visitor, and who forwarded it."""
    before = status()["data_path"]
    for number in range(count):
        data(number)
        if number % 50 == 49:
            time.sleep(0.005)
    on_link, _ = serve(0.5)
    after = status()["data_path"]
    changes = {name: after[name] - before[name] for name in ("forwarded", "kept", "passed")}
    few = "few" if changes["passed"] < count // 10 else "all" if changes["passed"] >= count else "some"
    whole = "all-in-order" if numbers(on_link) == list(range(count)) else f"ONLY {len(numbers(on_link))}"
    print("flow", whole, "forwarded", changes["forwarded"], "kept", changes["kept"], "passed", few, flush=True)


if sys.argv[4] == "flow":
    flow(1000)
    sys.exit()
if sys.argv[4] == "register":
    register()
    data(0)
    print(numbers(serve()[0]), flush=True)
    sys.exit()

# The visitor stays, and then leaves while nothing arrives.
register()
flow(2000)
print("buffered", buffered(), flush=True)
moves(key=bytes(16))
on_link, on_uplink = serve()
print("forged", numbers(on_link), *tunneled(on_uplink), flush=True)
moves()
for number in range(2000, 2005):
    data(number)
on_link, on_uplink = serve(0.3)
print("left", numbers(on_link), *tunneled(on_uplink), "buffered", buffered(), flush=True)

# It leaves in the middle of a flow.
register()
count = 3000
for number in range(count):
    data(number)
    if number == count // 2:
        moves()
    if number % 20 == 19:
        time.sleep(0.002)
on_link, on_uplink = serve(0.8)
direct, (onward, _) = numbers(on_link), tunneled(on_uplink)
is_whole = sorted(set(direct + onward)) == list(range(count))
# The first ones in the tunnel are the last ones of the link. A datagram on its way through the kernel may be another one.
again = [number for number in onward if number in set(direct)]
is_kept = KEPT <= len(again) <= KEPT + 2 and onward[: len(again)] == direct[-len(again) :] == again
is_ordered = direct == sorted(direct) and onward == sorted(onward)
print("moved", "whole" if is_whole else "LOST", "kept" if is_kept else f"NOT KEPT {again}", "ordered" if is_ordered else "UNORDERED", flush=True)
register()
