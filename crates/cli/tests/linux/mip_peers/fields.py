"""Prints the registrations and agent advertisements of a capture as scapy reads them: one line of JSON for each message.

usage: fields.py CAPTURE
"""

import json
import sys

import mip
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.mobileip import MobileIPRRP, MobileIPRRQ
from scapy.utils import PcapReader


def registration(packet):
    payload = mip.payload_of(packet)
    found = mip.extensions(payload)
    # scapy has layers for the fixed part only.
    part = packet[MobileIPRRQ] if MobileIPRRQ in packet else packet[MobileIPRRP]
    row = {
        "type": payload[0],
        "lifetime": part.lifetime,
        "home": part.homeaddr,
        "home_agent": part.haaddr,
        "identification": f"{part.id:016x}",
        "extensions": [kind for kind, _, _ in found],
        "spis": [int.from_bytes(data[:4], "big") for kind, _, data in found if 32 <= kind <= 34],
        "authenticators": [data[4:].hex() for kind, _, data in found if 32 <= kind <= 34],
    }
    if MobileIPRRQ in packet:
        row |= {"flags": part.flags, "care_of": part.coaddr}
    else:
        row |= {"code": part.code}
    return row


def advertisement(packet):
    read = mip.read_advertisement(packet)
    wanted = ("lifetime", "routers", "extensions", "sequence", "registration_lifetime", "care_of", "prefixes")
    flags = read["flags"] << 8 | read["more_flags"]
    return {"type": 9, "flags": flags, "prefixes": []} | {name: read[name] for name in wanted if name in read}


for frame in PcapReader(sys.argv[1]):
    if MobileIPRRQ in frame or MobileIPRRP in frame:
        print(json.dumps(registration(frame), sort_keys=True))
    elif UDP not in frame and ICMP in frame and IP in frame and frame[ICMP].type == 9:
        print(json.dumps(advertisement(frame), sort_keys=True))
