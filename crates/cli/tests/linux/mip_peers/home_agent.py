"""A home agent of scapy, for a foreign agent and a mobile node of Wayfare. Prints a line for each step.

usage: home_agent.py MOBILE_CONTROL INTERFACE CAPTURE
"""

import sys

import mip
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.mobileip import MobileIPRRP, MobileIPRRQ

CONTROL, INTERFACE, CAPTURE = sys.argv[1:]
MAC = "02:00:00:00:02:66"
ROUTER, HOME_AGENT, CARE_OF, NODE, ELSEWHERE = "10.9.0.2", "10.1.0.1", "10.3.0.1", "10.1.0.7", "10.0.0.9"
ALGORITHM = "hmac-sha256"

link = mip.Link(INTERFACE, MAC, [ROUTER])
mobile = mip.Daemon(CONTROL)


def request():
    """Waits for a relayed request, and checks it."""
    frame = link.hear("a request", mip.is_request)
    # While the router's link address was not known, several requests may have waited. Only the last one counts.
    frame = [frame, *filter(mip.is_request, link.packets(0.1))][-1]
    payload, fixed = mip.payload_of(frame), frame[MobileIPRRQ]
    assert (frame[IP].src, frame[IP].dst, frame[UDP].dport) == (CARE_OF, HOME_AGENT, 434), frame.summary()
    assert (fixed.homeaddr, fixed.haaddr, fixed.coaddr) == (NODE, HOME_AGENT, CARE_OF), fixed.show(dump=True)
    # The agent has removed the challenge and the Mobile-Foreign Authentication, and has added its own.
    kinds = [kind for kind, _, _ in mip.extensions(payload)]
    assert kinds == [mip.MOBILE_HOME, mip.FOREIGN_HOME], kinds
    assert mip.is_signed(payload, mip.FOREIGN_HOME, mip.AGENT_SPI, mip.AGENT_KEY, ALGORITHM), payload.hex()
    before, _, _ = payload.rpartition(mip.struct.pack("!BBI", mip.FOREIGN_HOME, 36, mip.AGENT_SPI))
    assert mip.is_signed(before, mip.MOBILE_HOME, mip.SPI, mip.KEY, ALGORITHM), payload.hex()
    assert fixed.flags == 0x02, fixed.flags  # a reverse tunnel
    return frame


def reply(frame, code=0, agents_key=mip.AGENT_KEY):
    fixed = frame[MobileIPRRQ]
    answer = MobileIPRRP(code=code, lifetime=fixed.lifetime, homeaddr=NODE, haaddr=HOME_AGENT, id=fixed.id)
    payload = mip.sign(mip.registration(answer), mip.MOBILE_HOME, mip.SPI, mip.KEY, ALGORITHM)
    payload = mip.sign(payload, mip.FOREIGN_HOME, mip.AGENT_SPI, agents_key, ALGORITHM)
    link.send_ip(frame.src, mip.datagram(HOME_AGENT, CARE_OF, payload, sport=434, dport=frame[UDP].sport))


def counted(code):
    """Waits until the mobile node has counted a reply with this code. Then its operator lets it register again: by itself it
    would wait, and twice as long after each request."""
    end = mip.time.time() + 10
    while code not in codes() and mip.time.time() < end:
        mip.time.sleep(0.02)
    mobile.ask("register")


def codes():
    found = mobile.status()["mobile_node"]["codes"]
    return {code: found[code] for code in sorted(found, key=int)}


# The Foreign-Home Authentication is wrong: the foreign agent reports code 68.
reply(request(), agents_key=bytes(16))
counted("68")
print("forged Foreign-Home Authentication:", codes())
reply(request(), code=130)
counted("130")
frame = request()
reply(frame)
mobile.wait("mobile_node", "registered", link)
print("registered:", codes())

# A packet in a tunnel, and the answer of the mobile node's kernel in the reverse tunnel.
inner = IP(src=ELSEWHERE, dst=NODE, ttl=9, id=77) / ICMP(type=8, id=7, seq=1) / (b"by scapy" * 20)
link.send_ip(frame.src, IP(src=HOME_AGENT, dst=CARE_OF, proto=4) / inner)
echo = link.hear("an echo in the reverse tunnel", mip.is_echo(0))
outer, answer = echo[IP], echo[IP].payload
assert (outer.proto, outer.src, outer.dst) == (4, CARE_OF, HOME_AGENT), echo.summary()
assert (answer.src, answer.dst) == (NODE, ELSEWHERE), echo.summary()
assert bytes(answer[ICMP].payload) == bytes(inner[ICMP].payload), echo.summary()
print("an echo through the tunnel and the reverse tunnel; time to live", answer.ttl)

# No visitor has this address: the agent drops the packet without an answer (RFC 5944, section 4.2.2).
link.send_ip(frame.src, IP(src=HOME_AGENT, dst=CARE_OF, proto=4) / IP(src=ELSEWHERE, dst="10.1.0.99") / ICMP(type=8))
answered = link.hears(lambda packet: IP in packet and UDP not in packet, 0.5)
print("a packet to another host:", "an answer" if answered else "no answer")
mip.save(CAPTURE, link)
