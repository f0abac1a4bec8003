"""The messages of DHCP (RFC 2131, RFC 2132), for the attack scripts."""

import socket
import struct

from bench import ip

DISCOVER, OFFER, REQUEST, DECLINE, ACK, NAK, RELEASE, INFORM = range(1, 9)
COOKIE = bytes([99, 130, 83, 99])
MASK, ROUTER, REQUESTED, LEASE, OVERLOAD, KIND, SERVER, IDENTIFIER = 1, 3, 50, 51, 52, 53, 54, 61


def address(text):
    return socket.inet_aton(text)


def option(code, value, length=None):
    return bytes([code, len(value) if length is None else length]) + value


def message(kind, transaction, client, options=b"", op=None, current="0.0.0.0", yours="0.0.0.0", relay="0.0.0.0", flags=0x8000,
            hardware=b"\x01\x06", cookie=COOKIE, end=b"\xff", file=b"", typed=True):
    """A message. `options` are those besides the type."""
    op = (2 if kind in (OFFER, ACK, NAK) else 1) if op is None else op
    head = bytes([op]) + hardware + b"\0" + struct.pack("!IHH", transaction, 0, flags)
    head += address(current) + address(yours) + bytes(4) + address(relay) + client + bytes(10)
    whole = head + bytes(64) + file + bytes(128 - len(file)) + cookie
    whole += (option(KIND, bytes([kind])) if typed else b"") + options + end
    return whole + bytes(max(0, 300 - len(whole)))


def datagram(src, dst, to_client, payload, **more):
    ports = (67, 68) if to_client else (68, 67)
    return ip(src, dst, 17, struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload, **more)


def read(frame):
    """The type, transaction, client, `yiaddr` and options of the DHCP message in a frame, or `None`."""
    payload = frame[42:]
    if frame[12:14] != b"\x08\0" or frame[23] != 17 or frame[36:38] not in (b"\0\x43", b"\0\x44") or payload[236:240] != COOKIE:
        return None
    options, rest = {}, payload[240:]
    while rest and rest[0] != 255:
        if rest[0]:
            options[rest[0]] = rest[2 : 2 + rest[1]]
        rest = rest[1:] if rest[0] == 0 else rest[2 + rest[1] :]
    return options[KIND][0], struct.unpack("!I", payload[4:8])[0], payload[28:34], socket.inet_ntoa(payload[16:20]), options
