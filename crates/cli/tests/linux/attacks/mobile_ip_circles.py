"""Attacks on smooth handoffs with valid keys: previous foreign agents that forward to each other in a circle, and notifications that
name a victim as the previous agent. The script is the mobile nodes, the home agent, the other foreign agents and the router.

Arguments: the control socket, the interface to the visited link, the one to the foreign agent's uplink.
"""

import struct
import sys
import time

from bench import Daemon, Link, ip, mac, sent_by, station, udp
from mip import KEY, MOBILE_FOREIGN, SMOOTH, UPDATE, address, answer, body, extension, ntp, signed
from mip import update as binding_update

AGENT_VISITED, AGENT_UP, ROUTER = mac("020000000001"), mac("020000000002"), mac("020000000009")
CARE_OF, HOME_AGENT, ROUTER_IP, SENDER = "10.3.0.1", "10.1.0.2", "10.9.0.2", "10.2.0.2"
NODE, SECOND, THIRD, VICTIM = "10.1.0.7", "10.4.0.1", "10.5.0.1", "198.51.100.66"
MOBILE, ATTACKER = mac("020000000007"), mac("020000000066")
PREVIOUS_AGENT = 96
PACKETS, MOST_ROUNDS = 20, 100
daemon, visited, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def serve(seconds=0.15):
    """Answers ARP for the router; returns what the agent sent on the visited link and on the uplink."""
    return sent_by((visited, AGENT_VISITED), (up, AGENT_UP), (ROUTER_IP, ROUTER), seconds)


def update(care_of, home=NODE, **more):
    return binding_update(home, care_of, 30, **{"spi": 301, "subtype": SMOOTH, **more})


def request(previous, home=NODE):
    """A request that names its previous agent, without an authentication for the foreign agent."""
    identification = ntp()
    wanted = update(CARE_OF, home, identification=identification)
    data = struct.pack("!H", 30) + address(previous) + address(CARE_OF) + wanted[-36:]
    return signed(body(home, HOME_AGENT, CARE_OF, identification=identification)) + extension(PREVIOUS_AGENT, data)


def register(previous):
    """The mobile node comes from `previous`, and is accepted."""
    asked = request(previous)
    whole = signed(asked, spi=301, kind=MOBILE_FOREIGN)
    visited.send(AGENT_VISITED, MOBILE, udp(NODE, CARE_OF, 434, whole))
    serve()
    up.send(AGENT_UP, ROUTER, udp(HOME_AGENT, CARE_OF, 434, signed(answer(asked))))
    serve()


def leave(care_of):
    """The mobile node leaves to `care_of` by a Binding Update."""
    up.send(AGENT_UP, ROUTER, udp(care_of, CARE_OF, 434, update(care_of)))
    serve()


def lower(datagram, hops):
    """A datagram after this number of hops, or `None` if its time to live has ended."""
    if datagram[8] <= hops:
        return None
    head = datagram[:8] + bytes([datagram[8] - hops]) + datagram[9:10] + b"\0\0" + datagram[12:20]
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:] + datagram[20:]


def circle(name, others, entry):
    """Sends packets for the mobile node out of a tunnel from `entry`. The `others` forward each packet from one to the next, and the
    last one to the agent, as agents without a check. Prints how often the wire has a tunnel from the agent for one packet."""
    rounds = {}

    def forward():
        for number in range(PACKETS):
            inner = udp(SENDER, NODE, 9000, f"{name} {number}".encode(), ttl=64, ident=1000 + number)
            up.send(AGENT_UP, ROUTER, ip(entry, CARE_OF, 4, inner))
        for _ in range(MOST_ROUNDS):
            tunnels = [frame[34:] for frame in serve(0.1)[1] if frame[23] == 4 and frame[30:34] == address(others[0])]
            if not tunnels:
                return
            for inner in tunnels:
                rounds[inner[28:]] = rounds.get(inner[28:], 0) + 1
                further = lower(inner, len(others))
                if further:
                    up.send(AGENT_UP, ROUTER, ip(others[-1], CARE_OF, 4, further))

    daemon.attack(name, forward)
    print(name, "packets", len(rounds), "rounds", *sorted(set(rounds.values())), flush=True)


def updates(frames):
    return [frame[14:] for frame in frames if frame[23] == 17 and frame[30:34] == address(VICTIM) and frame[42] == UPDATE]


def flood(name, seconds, send, most):
    """Sends requests that name the victim for this time. Prints whether the victim gets Binding Updates, and at most `most` in each
    second. The agent counts in seconds of its own clock: the time of the flood touches two more."""
    heard, asked, begin, number = [], 0, time.time(), 0
    while time.time() - begin < seconds:
        for _ in range(15):
            asked += len(send(number))
            number += 1
        heard += updates(serve(0.05)[1])
    heard += updates(serve(0.3)[1])
    touched = int(time.time() - begin) + 2
    fits = f"{len(heard)} of {touched} seconds" if len(heard) > most * touched else "at-most"
    print(name, "some" if heard else "none", fits, most, "fewer-bytes" if sum(map(len, heard)) < asked else "MORE-BYTES", flush=True)


def from_many(number):
    home = ".".join(map(str, (10, 1, 16 + number // 250, 1 + number % 250)))
    message = udp(home, CARE_OF, 434, request(VICTIM, home))
    visited.send(AGENT_VISITED, station(number), message)
    return message


def from_one(number):
    home = ".".join(map(str, (10, 1, 200 + number // 250, 1 + number % 250)))
    message = udp(home, CARE_OF, 434, request(VICTIM, home))
    visited.send(AGENT_VISITED, ATTACKER, message)
    return message


# --- circles ------------------------------------------------------------------------------------------------------------------

serve()
register(SECOND)
leave(SECOND)
circle("two-agents", [SECOND], HOME_AGENT)
circle("two-agents-from-the-other", [SECOND], SECOND)
register(THIRD)
leave(SECOND)
circle("three-agents", [SECOND, THIRD], HOME_AGENT)
circle("three-agents-from-the-last", [SECOND, THIRD], THIRD)

# --- a victim that is named as the previous agent --------------------------------------------------------------------------------

flood("victim-of-many-hosts", 3, from_many, 64)
flood("victim-of-one-host", 3, from_one, 4)
