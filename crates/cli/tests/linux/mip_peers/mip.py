"""Hosts made of scapy: whole frames on an interface, messages of Mobile IP, and their authenticators by Python's own `hmac`.

Nothing here is of Wayfare. scapy 2.5 has layers for the fixed part of requests and replies. Extensions and advertisements are packed
here as RFC 5944 draws them.
"""

import hashlib
import hmac
import json
import select
import socket
import struct
import time

from scapy.config import conf
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.layers.mobileip import MobileIP, MobileIPRRP, MobileIPRRQ
from scapy.packet import Raw
from scapy.utils import PcapWriter

KEY = bytes.fromhex("000102030405060708090a0b0c0d0e0f")
AGENT_KEY = bytes.fromhex("101112131415161718191a1b1c1d1e1f")
VISITOR_KEY = bytes.fromhex("202122232425262728292a2b2c2d2e2f")
SPI, AGENT_SPI, VISITOR_SPI = 256, 4000, 0xFFFFFFFE
MOBILE_HOME, MOBILE_FOREIGN, FOREIGN_HOME = 32, 33, 34
ALL_SYSTEMS, ALL_SYSTEMS_MAC = "224.0.0.1", "01:00:5e:00:00:01"
BROADCAST = "ff:ff:ff:ff:ff:ff"
# Seconds between the epochs of NTP and of Unix.
NTP = 2208988800


def authenticator(algorithm, key, covered):
    if algorithm == "hmac-sha256":
        return hmac.new(key, covered, hashlib.sha256).digest()
    if algorithm == "hmac-md5":
        return hmac.new(key, covered, hashlib.md5).digest()
    if algorithm == "keyed-md5-without-spi":  # RFC 2002: the SPI is not covered
        covered = covered[:-4]
    return hashlib.md5(key + covered + key).digest()


def sign(payload, kind, spi, key, algorithm):
    """Appends an authentication extension (RFC 5944, section 3.5)."""
    size = 32 if algorithm == "hmac-sha256" else 16
    covered = payload + struct.pack("!BBI", kind, 4 + size, spi)
    return covered + authenticator(algorithm, key, covered)


def extensions(payload):
    """Returns type, offset and data of each extension of a request or reply."""
    at = 24 if payload[0] == 1 else 20
    found = []
    while at < len(payload):
        kind, length = payload[at], payload[at + 1]
        assert at + 2 + length <= len(payload), payload.hex()
        found.append((kind, at, payload[at + 2 : at + 2 + length]))
        at += 2 + length
    return found


def is_signed(payload, kind, spi, key, algorithm):
    """Returns whether a message has exactly one valid authentication of this kind."""
    found = [(at, data) for what, at, data in extensions(payload) if what == kind]
    if len(found) != 1:
        return False
    at, data = found[0]
    covered = payload[: at + 6]
    valid = hmac.compare_digest(authenticator(algorithm, key, covered), data[4:])
    return valid and struct.unpack("!I", data[:4])[0] == spi


def timestamp(ahead=0.0):
    """Returns an Identification: a time in the format of NTP."""
    seconds = time.time() + NTP + ahead
    return int(seconds) << 32 | int((seconds % 1) * (1 << 32))


def unix(identification):
    return identification / (1 << 32) - NTP


def registration(message):
    """Returns the bytes of a request or reply: the payload of UDP."""
    return bytes(MobileIP(type=1 if isinstance(message, MobileIPRRQ) else 3) / message)


def datagram(src, dst, payload, ttl=64, sport=434, dport=434):
    return IP(src=src, dst=dst, ttl=ttl) / UDP(sport=sport, dport=dport) / Raw(payload)


def advertisement(source, care_of, flags, sequence, lifetime=3, registration_lifetime=600, more=b"", code=16):
    """Returns an agent advertisement: ICMP type 9 with extension 16 (RFC 5944, section 2.1)."""
    routers = [source]
    content = b"".join(socket.inet_aton(router) + struct.pack("!i", 0) for router in routers)
    content += struct.pack("!BBHHBB", 16, 6 + 4 * len(care_of), sequence, registration_lifetime, flags, 0)
    content += b"".join(map(socket.inet_aton, care_of)) + more
    counts = struct.unpack("!I", struct.pack("!BBH", len(routers), 2, lifetime))[0]
    ip = IP(src=source, dst=ALL_SYSTEMS, ttl=1)
    return Ether(dst=ALL_SYSTEMS_MAC) / ip / ICMP(type=9, code=code, unused=counts) / Raw(content)


def read_advertisement(packet):
    """Returns the fields of an agent advertisement. `packet` begins with the header of IP."""
    body = bytes(packet[ICMP])
    count, size, lifetime = struct.unpack("!BBH", body[4:8])
    found = {"code": body[1], "lifetime": lifetime, "ttl": packet[IP].ttl, "source": packet[IP].src, "to": packet[IP].dst}
    found["routers"] = [socket.inet_ntoa(body[8 + 8 * i : 12 + 8 * i]) for i in range(count)]
    at, found["extensions"] = 8 + count * size * 4, []
    while at < len(body):
        kind = body[at]
        if kind == 0:  # one byte of padding
            at += 1
            continue
        length = body[at + 1]
        data = body[at + 2 : at + 2 + length]
        found["extensions"].append(kind)
        if kind == 16:
            found["sequence"], found["registration_lifetime"], found["flags"], found["more_flags"] = struct.unpack("!HHBB", data[:6])
            found["care_of"] = [socket.inet_ntoa(data[6 + i : 10 + i]) for i in range(0, length - 6, 4)]
        elif kind == 19:
            found["prefixes"] = list(data)
        at += 2 + length
    return found


class Link:
    """An interface by a raw socket of scapy. It answers ARP for the addresses that were given to it, and keeps each frame with
    its time."""

    def __init__(self, name, mac, addresses=()):
        self.socket, self.mac, self.addresses = conf.L2socket(iface=name), mac, set(addresses)
        self.own, self.kept = {mac}, []

    def keep(self, packet):
        packet.time = time.time()
        self.kept.append(packet)

    def send(self, packet):
        packet = Ether(bytes(packet))
        self.own.add(packet.src)
        self.keep(packet)
        self.socket.send(packet)

    def send_ip(self, to, packet):
        self.send(Ether(src=self.mac, dst=to) / packet)

    def packets(self, seconds):
        """Returns the frames of others that arrive within this time. ARP is answered first."""
        end = time.time() + seconds
        while (left := end - time.time()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                return
            packet = self.socket.recv()
            if packet is None or packet.src in self.own:
                continue
            self.keep(packet)
            if ARP in packet and packet[ARP].op == 1 and packet[ARP].pdst in self.addresses:
                arp = packet[ARP]
                answer = ARP(op=2, hwsrc=self.mac, psrc=arp.pdst, hwdst=arp.hwsrc, pdst=arp.psrc)
                self.send(Ether(src=self.mac, dst=packet.src) / answer)
            yield packet

    def hear(self, what, is_wanted, seconds=10):
        """Returns the next frame that is wanted."""
        for packet in self.packets(seconds):
            if is_wanted(packet):
                return packet
        raise SystemExit(f"{what} did not come; last frames: {[kept.summary() for kept in self.kept[-8:]]}")

    def hears(self, is_wanted, seconds):
        """Returns whether a frame that is wanted arrives within this time."""
        return any(is_wanted(packet) for packet in self.packets(seconds))

    def resolve(self, address, own):
        """Returns the link address of a neighbor, asked from the address `own`."""
        question = ARP(op=1, hwsrc=self.mac, psrc=own, pdst=address)
        self.send(Ether(src=self.mac, dst=BROADCAST) / question)
        answer = self.hear(f"ARP of {address}", lambda packet: ARP in packet and packet[ARP].op == 2 and packet[ARP].psrc == address)
        return answer[ARP].hwsrc


def save(path, *links):
    """Writes the frames of these links to a capture, in the order of their times."""
    frames = sorted((packet for link in links for packet in link.kept), key=lambda packet: packet.time)
    with PcapWriter(path, linktype=1, sync=True) as capture:
        for packet in frames:
            capture.write(packet)


def payload_of(packet):
    """Returns the payload of UDP as bytes."""
    return bytes(packet[UDP].payload)


def is_request(packet):
    return MobileIPRRQ in packet


def is_reply(packet):
    return MobileIPRRP in packet


def is_echo(kind, to=None):
    """Returns a test: whether the innermost ICMP message of a frame is an echo of this kind, to this address."""
    return lambda packet: ICMP in packet and packet[ICMP].type == kind and (to is None or packet[IP].dst == to)


class Daemon:
    """A daemon by its control socket."""

    def __init__(self, control):
        self.control = control

    def ask(self, verb):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(self.control)
            client.sendall(json.dumps({"do": {"verb": verb}}).encode() + b"\n")
            return json.loads(client.makefile().readline())["ok"]

    def status(self):
        return self.ask("status")

    def wait(self, role, state, link, seconds=10):
        """Waits until a role has this state. The link answers ARP meanwhile."""
        end = time.time() + seconds
        while time.time() < end:
            status = self.status()[role]
            if status["state"] == state:
                return status
            for _ in link.packets(0.02):
                pass
        raise SystemExit(f"{role} is not {state}: {status}")
