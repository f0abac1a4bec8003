"""Hosts that are not an end of an SCTP association (RFC 9260), and one that opens an association.

Arguments: the control socket. This host has the addresses 10.3.0.7 and 10.3.0.66.
"""

import os
import random
import socket
import struct
import sys

from bench import NOBODY, Daemon, Link, during, icmp_errors, ip, mac, many, one_of_many

SERVER, PEER, OTHER, PORT, OWN_PORT = "10.3.0.1", "10.3.0.7", "10.3.0.66", 9000, 9001
TAG, TSN = 0x11223344, 1000
INIT, INIT_ACK, HEARTBEAT, ABORT, SHUTDOWN, COOKIE_ECHO, COOKIE_ACK, SHUTDOWN_COMPLETE = 1, 2, 4, 6, 7, 10, 11, 14
ASCONF = 0xC1
SERVER_LINK = mac("020000000001")
daemon, air = Daemon(sys.argv[1], NOBODY), Link(sys.argv[2])
raw = {}
for address in (PEER, OTHER):
    raw[address] = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)
    raw[address].bind((address, 0))
    raw[address].settimeout(0.3)

TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    TABLE.append(value)


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def chunk(kind, content=b"", flags=0, length=None):
    length = 4 + len(content) if length is None else length
    return struct.pack("!BBH", kind, flags, length) + content + b"\0" * (-len(content) % 4)


def packet(tag, *chunks, port=OWN_PORT):
    head = struct.pack("!HHII", port, PORT, tag, 0)
    body = b"".join(chunks)
    return head[:8] + struct.pack("<I", crc(head + body)) + body


def send(data, src=PEER):
    return lambda: raw[src].sendto(data, (SERVER, 0))


def heard(src, kind, port=OWN_PORT):
    """Returns the content of the first chunk of this type that arrives at this port of the address."""
    while True:
        data = raw[src].recv(4000)[20:]
        if data[12] == kind and struct.unpack("!H", data[2:4])[0] == port:
            return data[16 : 12 + struct.unpack("!H", data[14:16])[0]]


def parameter(kind, content):
    return struct.pack("!HH", kind, 4 + len(content)) + content + b"\0" * (-len(content) % 4)


# Addresses can change (RFC 5061), and these chunks are authenticated (RFC 4895) with SHA-256 or SHA-1.
EXTENSIONS = parameter(0x8008, b"\xc1\x80\x0f") + parameter(0x8002, bytes(range(32)))
EXTENSIONS += parameter(0x8003, b"\xc1\x80") + parameter(0x8004, b"\0\3\0\1")


def opening(tag=TAG):
    return chunk(INIT, struct.pack("!IIHHI", tag, 65536, 10, 10, TSN) + EXTENSIONS)


def cookie_of(answer):
    """Returns the cookie of an INIT ACK (RFC 9260, section 3.3.3)."""
    at = 16
    while struct.unpack("!H", answer[at : at + 2])[0] != 7:
        at += struct.unpack("!H", answer[at + 2 : at + 4])[0] + 3 & ~3
    return answer[at + 4 : at + struct.unpack("!H", answer[at + 2 : at + 4])[0]]


# For comparison: an association opens, and the daemon's state changes.
peers, cookie = 0, b""


def handshake():
    global peers, cookie
    send(packet(0, opening()))()
    answer = heard(PEER, INIT_ACK)
    peers, cookie = struct.unpack("!I", answer[:4])[0], cookie_of(answer)
    send(packet(peers, chunk(COOKIE_ECHO, cookie)))()
    heard(PEER, COOKIE_ACK)


daemon.attack("handshake", handshake)
ADD = struct.pack("!I", 1) + parameter(5, socket.inet_aton(PEER))
ADD += parameter(0xC001, struct.pack("!I", 1) + parameter(5, socket.inet_aton(OTHER)))
daemon.attack("abort-wrong-tag", send(packet(peers ^ 1, chunk(ABORT))))
daemon.attack("abort-own-tag-without-t", send(packet(TAG, chunk(ABORT))))
daemon.attack("abort-t-bit", send(packet(peers, chunk(ABORT, flags=1))))
daemon.attack("shutdown-wrong-tag", send(packet(peers ^ 1, chunk(SHUTDOWN, struct.pack("!I", 0)))))
daemon.attack("shutdown-complete-wrong-tag", send(packet(peers ^ 1, chunk(SHUTDOWN_COMPLETE))))
daemon.attack("wrong-checksum", send(packet(peers, chunk(ABORT))[:-1] + b"\x01"))
daemon.attack("from-another-address", send(packet(peers, chunk(ABORT)), OTHER))
daemon.attack("asconf-without-auth", send(packet(peers, chunk(ASCONF, ADD))))
signed = struct.pack("!HH", 0, 3) + bytes(32)  # by an unknown key
daemon.attack("asconf-forged", send(packet(peers, chunk(15, signed), chunk(ASCONF, ADD))))
daemon.attack("forged-cookie", send(packet(peers, chunk(COOKIE_ECHO, bytes(len(cookie))), port=9002)))
daemon.attack("short-cookie", send(packet(peers, chunk(COOKIE_ECHO, b"x"), port=9002)))
daemon.attack("cookie-repeated", send(packet(peers, chunk(COOKIE_ECHO, cookie))))
daemon.attack("init-repeated", send(packet(0, opening())))
daemon.attack("init-with-tag", send(packet(5, opening())))
daemon.attack("init-without-tag", send(packet(0, opening(tag=0))))
daemon.attack("init-short", send(packet(0, chunk(INIT, bytes(8)))))
daemon.attack("init-with-another", send(packet(0, opening(), chunk(ABORT))))
daemon.attack("data-of-nothing", send(packet(peers, chunk(0, b"\0" * 4))))
daemon.attack("lying-length", send(packet(peers, chunk(HEARTBEAT, bytes(8), length=2000))))
daemon.attack("length-zero", send(packet(peers, chunk(HEARTBEAT, bytes(8), length=0))))
daemon.attack("no-chunk", send(packet(peers)))
daemon.attack("truncated", send(packet(peers)[:9]))
daemon.attack("no-association", send(packet(7, chunk(HEARTBEAT, parameter(1, bytes(4))), port=9005), OTHER))


def floods():
    for number in range(1500):
        send(packet(0, opening(tag=number + 1), port=10000 + number), OTHER)()
    chance = random.Random(14)
    for _ in range(1500):
        bad = bytearray(packet(chance.randrange(1 << 32), chunk(chance.randrange(256), os.urandom(chance.randrange(60)))))
        send(bytes(bad), chance.choice((PEER, OTHER)))()
        # With the right tag, and an unknown type (RFC 9260, section 3.2: it is skipped).
        send(packet(peers, chunk(0x80 | chance.randrange(2, 0x3F), os.urandom(chance.randrange(60)))), PEER)()


state, _ = daemon.settled()
floods()
print("floods", "same" if daemon.settled()[0] == state else "CHANGED", flush=True)


def of_many(content):
    return many(lambda number: ip(one_of_many(number), SERVER, 132, content(number)))


daemon.flood("openings-of-many", "", of_many(lambda number: packet(0, opening(tag=number + 1))), air, SERVER_LINK)
forged, aborts = chunk(COOKIE_ECHO, os.urandom(len(cookie))), packet(peers, chunk(ABORT))
daemon.flood("forged-cookies-of-many", "sctp_cookie_forged", of_many(lambda number: packet(number + 1, forged)), air, SERVER_LINK)
daemon.flood("aborts-of-many", "sctp_no_association", of_many(lambda _: aborts), air, SERVER_LINK)
# ICMP errors about the association: with a wrong tag, and with the peer's address as the unreachable one.
disbelieved = "icmp_about_nothing icmp_ignored sctp_icmp_unknown sctp_icmp_tag"
about = struct.pack("!HHII", PORT, OWN_PORT, peers ^ 1, 0)
daemon.flood("icmp-errors-of-many", disbelieved, icmp_errors(SERVER, 132, PORT), air, SERVER_LINK)
daemon.flood("icmp-errors-about-it", disbelieved, icmp_errors(SERVER, 132, PORT, quoted=about), air, SERVER_LINK)


def newcomer():
    """Returns whether another host opens an association: its INIT is answered, and its cookie too."""
    try:
        send(packet(0, opening(tag=77), port=9100), OTHER)()
        answer = heard(OTHER, INIT_ACK, port=9100)
        tag = struct.unpack("!I", answer[:4])[0]
        send(packet(tag, chunk(COOKIE_ECHO, cookie_of(answer)), port=9100), OTHER)()
        heard(OTHER, COOKIE_ACK, port=9100)
        send(packet(tag, chunk(ABORT), port=9100), OTHER)()
        return True
    except socket.timeout:
        return False


flood = lambda: of_many(lambda number: packet(0, opening(tag=number + 1)))
print("a-newcomer-in-the-flood", during(flood, air, SERVER_LINK, newcomer), flush=True)
# It still answers its peer, after the frames that have waited for it.
daemon.settled()
send(packet(peers, chunk(HEARTBEAT, parameter(1, b"question"))))()
print("alive", "answered" if heard(PEER, 5)[4:] == b"question" else "another")
daemon.attack("abort", send(packet(peers, chunk(ABORT))))
