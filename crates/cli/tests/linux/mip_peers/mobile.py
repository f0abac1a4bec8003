"""A mobile node and a correspondent of scapy, for a foreign agent and a home agent of Wayfare. Prints a line for each step.

usage: mobile.py CELL LAN FOREIGN_SIDE HOME_SIDE CAPTURE

The links are those to the visited network and to the home network, and the two links of the kernel's router between the agents.
"""

import sys

import mip
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.layers.mobileip import MobileIPRRP, MobileIPRRQ
from scapy.packet import Raw

CELL, LAN, FOREIGN_SIDE, HOME_SIDE, CAPTURE = sys.argv[1:]
FOREIGN, HOME_AGENT, CORRESPONDENT = "10.3.0.1", "10.1.0.1", "10.1.0.99"
MOBILE_MAC, CORRESPONDENT_MAC = "02:00:00:00:02:66", "02:00:00:00:02:69"
NODES = {
    "10.1.0.7": "hmac-sha256",
    "10.1.0.8": "hmac-md5",
    "10.1.0.9": "keyed-md5",
    "10.1.0.10": "keyed-md5-without-spi",
}
NODE = "10.1.0.7"
PORT = 5434

cell, lan = mip.Link(CELL, MOBILE_MAC), mip.Link(LAN, CORRESPONDENT_MAC, [CORRESPONDENT])
foreign_side, home_side = mip.Link(FOREIGN_SIDE, "-"), mip.Link(HOME_SIDE, "-")


def is_advertisement(packet):
    return ICMP in packet and packet[ICMP].type == 9


def show(frame):
    read = mip.read_advertisement(frame[IP])
    names = ("code", "ttl", "lifetime", "flags", "registration_lifetime", "care_of", "extensions", "prefixes")
    assert read["routers"] == [read["source"]], read
    print("advertisement of", read["source"] + ":", *(f"{name} {read[name]}" for name in names))
    return frame.src


def request(home=NODE, algorithm=None, lifetime=300, care_of=FOREIGN, flags=0, ahead=0.0, key=mip.KEY):
    """Sends a request to the foreign agent."""
    fixed = MobileIPRRQ(flags=flags, lifetime=lifetime, homeaddr=home, haaddr=HOME_AGENT, coaddr=care_of, id=mip.timestamp(ahead))
    payload = mip.sign(mip.registration(fixed), mip.MOBILE_HOME, mip.SPI, key, algorithm or NODES[home])
    cell.send_ip(foreign_mac, mip.datagram(home, FOREIGN, payload, ttl=255, sport=PORT, dport=434))
    return fixed


def register(what, home=NODE, **more):
    """Sends a request, and prints the code of the reply. Returns the reply."""
    sent = request(home, **more)
    wanted = sent.id & 0xFFFFFFFF
    frame = cell.hear(f"a reply to `{what}`", lambda packet: mip.is_reply(packet) and packet[MobileIPRRP].id & 0xFFFFFFFF == wanted)
    reply, payload = frame[MobileIPRRP], mip.payload_of(frame)
    assert (frame.dst, frame[IP].dst, frame[UDP].dport) == (MOBILE_MAC, home, PORT), frame.summary()
    assert (reply.homeaddr, reply.haaddr) == (home, HOME_AGENT), reply.show(dump=True)
    if reply.code == 0 or reply.code >= 128:
        assert mip.is_signed(payload, mip.MOBILE_HOME, mip.SPI, mip.KEY, NODES[home]), payload.hex()
    else:  # the foreign agent has no key of the home agent
        assert not mip.extensions(payload), payload.hex()
    print(what + ":", "code", reply.code, "lifetime", reply.lifetime)
    return sent, reply


# --- agents are found --------------------------------------------------------------------------------------------------

solicitation = IP(src=NODE, dst="224.0.0.11", ttl=1) / ICMP(type=10, code=0, unused=0)
cell.send(Ether(src=MOBILE_MAC, dst="01:00:5e:00:00:0b") / solicitation)
foreign_mac = show(cell.hear("an advertisement", is_advertisement))
home_mac = show(lan.hear("an advertisement of the home agent", is_advertisement))

# --- a registration, and a packet of a correspondent ---------------------------------------------------------------------

register("accepted")
is_announcement = lambda packet: ARP in packet and packet[ARP].psrc == packet[ARP].pdst == NODE
announced = lan.hear("gratuitous ARP of the home agent", is_announcement)
assert announced[ARP].hwsrc == home_mac and announced.dst == mip.BROADCAST, announced.show(dump=True)
assert lan.resolve(NODE, CORRESPONDENT) == home_mac, "the home agent answers for its mobile node"
echo = IP(src=CORRESPONDENT, dst=NODE, ttl=64, id=4711, tos=0x48, flags="DF") / ICMP(type=8, id=7, seq=1) / (b"by scapy" * 20)
lan.send_ip(home_mac, echo)
tunnelled = home_side.hear("a tunnelled packet", mip.is_echo(8))
outer, inner = tunnelled[IP], tunnelled[IP].payload
assert (outer.proto, outer.src, outer.dst) == (4, HOME_AGENT, FOREIGN), tunnelled.show(dump=True)
assert outer.flags == "DF" and outer.tos == 0x48 and outer.len == inner.len + 20, tunnelled.show(dump=True)
assert (inner.src, inner.dst, inner.id, inner.ttl) == (CORRESPONDENT, NODE, 4711, 63), tunnelled.show(dump=True)
arrived = cell.hear("the packet", mip.is_echo(8))
assert arrived.dst == MOBILE_MAC and arrived[IP].ttl == 62, arrived.show(dump=True)
assert bytes(arrived[ICMP]) == bytes(Ether(bytes(Ether() / echo))[ICMP]), "the packet arrives as it was sent"
print("a packet through the tunnel: outer", outer.ttl, "inner", inner.ttl, "arrived", arrived[IP].ttl)

# --- denials ---------------------------------------------------------------------------------------------------------------

def later():
    """Agents deny at most one request per second."""
    mip.time.sleep(1.1)


later()
register("too long", lifetime=40000)
later()
register("another care-of address", care_of="10.3.0.2")
later()
register("minimal encapsulation", flags=0x10)
later()
register("a reserved flag", flags=0x01)
later()
register("a wrong key", key=bytes(16))
later()
sent, reply = register("a clock that is an hour slow", ahead=-3600.0)
difference = mip.unix(reply.id) - mip.time.time()
assert abs(difference) < 2, difference  # the upper half is the home agent's time
later()

# --- each algorithm, a reverse tunnel, and the end -----------------------------------------------------------------------

for home, algorithm in NODES.items():
    register(algorithm, home)
later()
register("with a reverse tunnel", flags=0x02)
back = IP(src=NODE, dst=CORRESPONDENT, ttl=64, id=4712) / ICMP(type=0, id=7, seq=1) / (b"by scapy" * 20)
cell.send_ip(foreign_mac, back)
tunnelled = foreign_side.hear("a packet in the reverse tunnel", mip.is_echo(0))
outer, inner = tunnelled[IP], tunnelled[IP].payload
assert (outer.proto, outer.src, outer.dst, inner.src, inner.ttl) == (4, FOREIGN, HOME_AGENT, NODE, 63), tunnelled.show(dump=True)
arrived = lan.hear("the packet at the correspondent", mip.is_echo(0))
assert (arrived.dst, arrived[IP].src, arrived[Raw].load) == (CORRESPONDENT_MAC, NODE, b"by scapy" * 20), arrived.show(dump=True)
print("a packet through the reverse tunnel: outer", outer.ttl, "inner", inner.ttl, "arrived", arrived[IP].ttl)
later()
register("deregistration", lifetime=0)
lan.hears(lambda packet: False, 0.2)
question = ARP(op=1, hwsrc=CORRESPONDENT_MAC, psrc=CORRESPONDENT, pdst=NODE)
lan.send(Ether(src=CORRESPONDENT_MAC, dst=mip.BROADCAST) / question)
answered = lan.hears(lambda packet: ARP in packet and packet[ARP].op == 2 and packet[ARP].psrc == NODE, 0.5)
print("ARP after it:", "an answer" if answered else "no answer")
mip.save(CAPTURE, cell, lan, foreign_side, home_side)
