"""Route-updates of Cellular IP (draft-ietf-mobileip-cellularip-00, section 3.3.2), with the session keys of its networks."""

import hashlib
import hmac
import socket
import struct
import time

from bench import ip, udp

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


def host_of(number):
    return f"10.1.{(number + 16) >> 8}.{(number + 16) & 255}"


def data_of(number):
    return udp(host_of(number), "10.9.0.2", 9000, b"x")


def data_for(number):
    return udp("10.9.0.2", host_of(number), 9000, b"x")


def mover(air, own, up, router, mobile, update):
    """Returns a function that moves the host back by its own update, and returns whether data for the host then go to its present
    place, and never to a third one. `own`: the daemon's link addresses on the air and above it; `router`: the link address of
    the node above, which was the host's last place."""
    tries = iter(range(100))

    def moved_back():
        text = b"for the host in the flood %03d" % next(tries)
        air.send(own[0], mobile, update())
        time.sleep(0.1)
        up.send(own[1], router, udp("10.9.0.2", HOST, 9000, text))
        got = {frame[:6] for frame in air.hear(0.4) if text in frame and frame[6:12] == own[0]}
        if got - {mobile, router}:
            print("A WRONG ONE", *got, flush=True)
        return got == {mobile}

    return moved_back
