"""The messages of Mobile IP (RFC 5944) and their authenticators, for the attack scripts."""

import hashlib
import hmac
import socket
import struct
import time

from bench import icmp, ip

REQUEST, REPLY = 1, 3
MOBILE_HOME, MOBILE_FOREIGN, FOREIGN_HOME = 32, 33, 34
KEY = bytes(range(16))
# Flags of requests.
S, B, D, M, G, T, RESERVED = 0x80, 0x40, 0x20, 0x10, 0x08, 0x02, 0x01


def address(text):
    return socket.inet_aton(text)


def ntp(ahead=0):
    """The time as an Identification. No two calls return the same."""
    now = time.time() + ahead + 2208988800
    return struct.pack("!II", int(now), int((now % 1) * (1 << 32)) & 0xFFFFFFFF)


def nonce(high, low):
    return struct.pack("!II", high, low)


def extension(kind, data=b"", length=None):
    return struct.pack("!BB", kind, len(data) if length is None else length) + data


def sha256(key, covered):
    return hmac.new(key, covered, hashlib.sha256).digest()


def hmac_md5(key, covered):
    return hmac.new(key, covered, hashlib.md5).digest()


def keyed_md5(key, covered):
    return hashlib.md5(key + covered + key).digest()


def authentication(covered, key=KEY, spi=256, kind=MOBILE_HOME, algorithm=sha256):
    """The extension that authenticates the bytes before it."""
    head = struct.pack("!BBI", kind, 4 + len(algorithm(b"", b"")), spi)
    return head + algorithm(key, covered + head)


def signed(covered, **more):
    return covered + authentication(covered, **more)


def body(home, agent, care_of, lifetime=300, identification=None, flags=0, kind=REQUEST):
    fields = struct.pack("!BBH", kind, flags, lifetime) + address(home) + address(agent)
    return fields + (address(care_of) if kind == REQUEST else b"") + (identification or ntp())


def answer(request, code=0, lifetime=None, high=None, agent=None):
    """The reply to a request, without extensions. `high`: the high half of its Identification."""
    lifetime = struct.unpack("!H", request[2:4])[0] if lifetime is None else lifetime
    identification = request[16:24] if high is None else struct.pack("!I", high) + request[20:24]
    return struct.pack("!BBH", REPLY, code, lifetime) + request[4:8] + (agent or request[8:12]) + identification


def advertisement(src, dst="224.0.0.1", ttl=1, lifetime=3, routers=None, count=None, size=2, extensions=None, code=0, bad_sum=False, **more):
    """An agent advertisement as a datagram."""
    routers = [(src, 0)] if routers is None else routers
    content = struct.pack("!BBH", len(routers) if count is None else count, size, lifetime)
    content += b"".join(address(router) + struct.pack("!i", preference) for router, preference in routers)
    content += mobility(**more) + extension(19, b"\x18" * len(routers)) if extensions is None else extensions
    message = icmp(src, dst, 9, code, content)[20:]
    if bad_sum:
        message = message[:2] + bytes([message[2] ^ 0x55]) + message[3:]
    return ip(src, dst, 1, message, ttl=ttl)


def mobility(sequence=1, registration=300, flags=0x1000, care_of=(), length=None):
    content = struct.pack("!HHH", sequence, registration, flags) + b"".join(map(address, care_of))
    return extension(16, content, length)


def solicitation(src, dst="224.0.0.11", ttl=1, code=0, content=bytes(4), bad_sum=False):
    message = icmp(src, dst, 10, code, content)[20:]
    if bad_sum:
        message = message[:2] + bytes([message[2] ^ 0x55]) + message[3:]
    return ip(src, dst, 1, message, ttl=ttl)


def tunneled(entry, exit, inner, **more):
    return ip(entry, exit, 4, inner, **more)


def ports(frame):
    """The source and destination port of a UDP datagram in a frame, or `None`."""
    is_udp = frame[12:14] == b"\x08\0" and frame[23] == 17
    return struct.unpack("!HH", frame[34:38]) if is_udp else None


# --- route optimization (draft-ietf-mobileip-optim-09) ----------------------------------------------------------------

WARNING, BINDING_REQUEST, UPDATE, ACKNOWLEDGE = 16, 17, 18, 19
# Flags of Binding Updates, and the subtypes of their authentication.
A, I = 0x80, 0x40
ROUTE, SMOOTH = 250, 251


def generalized(covered, key=KEY, spi=400, subtype=ROUTE, algorithm=sha256, length=None):
    """The Generalized Authentication (RFC 4721, section 5) of the bytes before it."""
    size = 4 + len(algorithm(b"", b""))
    head = struct.pack("!BBHI", 36, subtype, size if length is None else length, spi)
    return head + algorithm(key, covered + head)


def update(home, care_of, lifetime=100, identification=None, flags=A | I, **more):
    fields = struct.pack("!BBH", UPDATE, flags, lifetime) + address(home) + address(care_of)
    fields += (identification or ntp()) if flags & I else b""
    return fields + generalized(fields, **more)


def acknowledge(home, identification=b"", status=0, signed=True, **more):
    fields = struct.pack("!BHB", ACKNOWLEDGE, 0, status) + address(home) + identification
    return fields + generalized(fields, **more) if signed else fields


def binding_request(home, identification=None):
    return struct.pack("!BBH", BINDING_REQUEST, 0, 0) + address(home) + (identification or ntp())


def warning(home, targets):
    return struct.pack("!BBH", WARNING, 0, 0) + address(home) + b"".join(map(address, targets))
