"""A foreign agent and a home agent of scapy, for a mobile node of Wayfare. Prints a line for each step.

usage: agents.py CONTROL INTERFACE CAPTURE ALGORITHM
"""

import sys

import mip
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.layers.mobileip import MobileIPRRP, MobileIPRRQ

CONTROL, INTERFACE, CAPTURE, ALGORITHM = sys.argv[1:]
FOREIGN_MAC, HOME_MAC = "02:00:00:00:02:66", "02:00:00:00:02:67"
FOREIGN, HOME_AGENT, NODE, ELSEWHERE = "10.3.0.1", "10.1.0.1", "10.1.0.7", "10.0.0.9"
FA, REGISTRATION_REQUIRED, HA = 0x10, 0x80, 0x20
HOUR = 3600

link = mip.Link(INTERFACE, FOREIGN_MAC, [FOREIGN])
mobile = mip.Daemon(CONTROL)


def advertise(source, mac, flags, sequence):
    care_of = [FOREIGN] if flags & FA else []
    packet = mip.advertisement(source, care_of, flags, sequence)
    packet.src = mac
    link.send(packet)


def request(agent=FOREIGN, care_of=FOREIGN, lifetime=300):
    """Waits for a request of the mobile node, and checks it."""
    frame = link.hear("a request", mip.is_request)
    payload, fixed = mip.payload_of(frame), frame[MobileIPRRQ]
    assert frame[IP].src == NODE and frame[IP].dst == agent, frame.summary()
    assert frame.dst == (HOME_MAC if agent == HOME_AGENT else FOREIGN_MAC), frame.dst
    assert frame[UDP].dport == 434, frame[UDP].dport
    assert (fixed.homeaddr, fixed.haaddr, fixed.coaddr) == (NODE, HOME_AGENT, care_of), fixed.show(dump=True)
    assert fixed.lifetime == lifetime, fixed.lifetime
    assert mip.is_signed(payload, mip.MOBILE_HOME, mip.SPI, mip.KEY, ALGORITHM), payload.hex()
    return frame


def reply(frame, code=0, lifetime=300, identification=None, key=mip.KEY):
    """Answers a request as the agent to which it was sent."""
    fixed = frame[MobileIPRRQ]
    identification = fixed.id if identification is None else identification
    answer = MobileIPRRP(code=code, lifetime=lifetime, homeaddr=fixed.homeaddr, haaddr=fixed.haaddr, id=identification)
    payload = mip.sign(mip.registration(answer), mip.MOBILE_HOME, mip.SPI, key, ALGORITHM)
    packet = mip.datagram(frame[IP].dst, frame[IP].src, payload, sport=434, dport=frame[UDP].sport)
    link.send(Ether(src=frame.dst, dst=frame.src) / packet)


heard = link.hear("a solicitation", lambda packet: ICMP in packet and packet[ICMP].type == 10)
assert heard[IP].ttl == 1 and heard[ICMP].code == 0, heard.summary()
print("solicitation to", heard[IP].dst)

# Its authenticator is wrong, so this reply changes nothing. The mobile node repeats its request.
advertise(FOREIGN, FOREIGN_MAC, FA | REGISTRATION_REQUIRED, 0)
reply(request(), key=bytes(16))
second = request()
state = mobile.status()["mobile_node"]["state"]
assert state == "registering", state
print("forged reply: no effect")

# The home agent's clock is an hour ahead: code 133 with its time (RFC 5944, section 5.7.1).
advertise(FOREIGN, FOREIGN_MAC, FA | REGISTRATION_REQUIRED, 1)
ours = mip.timestamp(HOUR) >> 32 << 32
reply(second, code=133, identification=ours | second[MobileIPRRQ].id & 0xFFFFFFFF)
third = request()
ahead = mip.unix(third[MobileIPRRQ].id) - mip.time.time()
assert abs(ahead - HOUR) < 3, ahead
reply(third)
mobile.wait("mobile_node", "registered", link)
print("registered after code 133")

# A packet that the foreign agent took from a tunnel, and the answer of the host's kernel.
sent = IP(src=ELSEWHERE, dst=NODE) / ICMP(type=8, id=7, seq=1) / (b"by scapy" * 20)
link.send_ip(third.src, sent)
echo = link.hear("an echo", mip.is_echo(0, ELSEWHERE))
assert echo.dst == FOREIGN_MAC and bytes(echo[ICMP].payload) == bytes(sent[ICMP].payload), echo.summary()
print("the kernel of the mobile node answers an echo")

# A number below 256 that is lower than the last one: the agent has restarted (RFC 5944, section 2.1.1).
for sequence in (2, 3, 0):
    advertise(FOREIGN, FOREIGN_MAC, FA | REGISTRATION_REQUIRED, sequence)
again = request()
assert again[MobileIPRRQ].id > third[MobileIPRRQ].id, (again[MobileIPRRQ].id, third[MobileIPRRQ].id)
reply(again)
print("registered again after a restart of the agent")
mobile.wait("mobile_node", "registered", link)

# The home agent is heard: the mobile node announces itself by gratuitous ARP, and deregisters.
mip.time.sleep(1)
advertise(HOME_AGENT, HOME_MAC, HA, 0)
link.hear("gratuitous ARP", lambda packet: ARP in packet and packet[ARP].psrc == packet[ARP].pdst == NODE)
reply(request(agent=HOME_AGENT, care_of=NODE, lifetime=0), lifetime=0)
mobile.wait("mobile_node", "home", link)
print("deregistered at home")
mip.save(CAPTURE, link)
