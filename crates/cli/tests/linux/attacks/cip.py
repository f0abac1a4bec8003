"""Route-updates of Cellular IP by hand (draft-ietf-mobileip-cellularip-00, section 3.3.2), with the session keys of its networks."""

import hashlib
import hmac
import socket
import struct
import time

from bench import ip

HOST, GATEWAY, STATION = "10.1.0.7", "10.9.0.1", 1
NETWORK_KEY, R_MH = bytes(range(16)), bytes(range(8))


def ntp(ahead=0):
    now = time.time() + ahead + 2208988800
    return struct.pack("!II", int(now), int((now % 1) * (1 << 32)) & 0xFFFFFFFF)


def checksummed(message):
    total = sum(struct.unpack("!%dH" % ((len(message) + 1) // 2), message + b"\0" * (len(message) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return message[:2] + struct.pack("!H", ~total & 0xFFFF) + message[4:]


def update(host=HOST, gateway=GATEWAY, stamp=None, flags=2, generation=1, station=STATION, key=NETWORK_KEY, code=0, more=b""):
    session = hmac.new(key, b"CIPv1 session" + bytes([generation]) + socket.inet_aton(host) + R_MH, hashlib.sha256).digest()
    head = (stamp or ntp()) + bytes([flags, 28, 0, 0, generation, 0, 0, 0]) + R_MH
    tail = bytes([3, 4]) + struct.pack("!I", station) + more
    covered = socket.inet_aton(host) + socket.inet_aton(gateway) + bytes([253, code, 0, 0]) + head + bytes(16) + tail
    digest = hmac.new(session, covered, hashlib.sha256).digest()[:16]
    return ip(host, gateway, 1, checksummed(bytes([253, code, 0, 0]) + head + digest + tail))
