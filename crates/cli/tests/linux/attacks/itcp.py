"""Greetings of Indirect TCP, and the sockets of the mobile host and of an unauthenticated host."""

import hashlib
import hmac
import socket
import struct

ROUTER, HOST, OTHER, PORT = "10.3.0.1", "10.3.0.7", "10.3.0.66", 4954
KEY = bytes(range(16))
LATE = 1 << 62  # later than all sequence numbers of a host, which follow its clock
doors = {}
for address in (HOST, OTHER):
    doors[address] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    doors[address].bind((address, PORT))


def signed(kind, body, key):
    front = struct.pack("!HBB", 0x4954, 1, kind) + body
    return front + hmac.new(key, front, hashlib.sha256).digest()


def greeting(host=HOST, sequence=LATE, router=ROUTER, key=KEY, previous=0, entries=0, tail=b""):
    body = socket.inet_aton(host) + struct.pack("!Q", sequence) + socket.inet_aton(router)
    return signed(1, body + bytes([previous, entries, 0, 0]) + tail, key)


def send(payload, src=OTHER):
    return lambda: doors[src].sendto(payload, (ROUTER, PORT))
