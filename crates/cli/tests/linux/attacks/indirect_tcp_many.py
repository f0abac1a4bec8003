"""Floods of many hosts without a key, at a support router of Indirect TCP, over UDP and TCP port 4954.

Arguments: the control socket, the interface to the router. This host has the addresses of the mobile host and of an unauthenticated one.
"""

import socket
import struct
import sys

from bench import NOBODY, Daemon, Link, checksum, during, icmp_errors, ip, mac, many, one_of_many, udp
from itcp import HOST, LATE, OTHER, PORT, ROUTER, doors, greeting, send

ROUTER_LINK = mac("020000000001")
daemon, air = Daemon(sys.argv[1], NOBODY), Link(sys.argv[2])


def of_many(payload):
    return many(lambda number: udp(one_of_many(number), ROUTER, PORT, payload(number)))


def unknown_host(number):
    return greeting(host=one_of_many(number), sequence=number)


def syn(number):
    """The first segment of a connection (RFC 9293, section 3.1)."""
    src = one_of_many(number)
    head = struct.pack("!HHIIBBHHH", 20000 + number, PORT, number, 0, 0x50, 2, 65535, 0, 0)
    pseudo = socket.inet_aton(src) + socket.inet_aton(ROUTER) + struct.pack("!HH", 6, len(head))
    return number, ip(src, ROUTER, 6, head[:16] + struct.pack("!H", checksum(pseudo + head)) + head[18:])


daemon.attack("authentic", send(greeting(sequence=LATE + 1), HOST))
forged = greeting(key=bytes(16), sequence=LATE + 9)
daemon.flood("greetings-of-many", "itcp_stranger", of_many(unknown_host), air, ROUTER_LINK)
daemon.flood("forged-by-many", "itcp_forged itcp_misdirected", of_many(lambda _: forged), air, ROUTER_LINK)
daemon.flood("replayed-by-many", "itcp_misdirected itcp_stale", of_many(lambda _: greeting(sequence=LATE + 1)), air, ROUTER_LINK)
daemon.flood("noise-of-many", "itcp_truncated itcp_magic", of_many(lambda number: bytes([number & 255]) * (number % 100)), air, ROUTER_LINK)
daemon.flood("icmp-errors-of-many", "", icmp_errors(ROUTER, 17, PORT), air, ROUTER_LINK)
daemon.flood("icmp-errors-about-calls", "", icmp_errors(ROUTER, 6, PORT), air, ROUTER_LINK)
daemon.flood("calls-of-many", "", map(syn, range(3000)), air, ROUTER_LINK)


def called():
    """A call with a wrong first message: the router reads it, and ends the connection."""
    with socket.create_connection((ROUTER, PORT), 3, (OTHER, 0)) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nHost: 10.3.0.1\r\n\r\n")
        try:
            stream.recv(1)
        except ConnectionError:
            pass


daemon.attack("a-call-behind-them", called)
sequences = iter(range(LATE + 2, LATE + 100))


def welcomed():
    """Returns whether the router answers a valid greeting, and is ready."""
    sequence = next(sequences)
    door = doors[HOST]
    send(greeting(sequence=sequence), HOST)()
    door.settimeout(0.5)
    try:
        while True:
            answer = door.recv(2000)
            if answer[3] == 2 and answer[8:16] == struct.pack("!Q", sequence):
                return answer[20] == 0
    except socket.timeout:
        return False


def any_of_many(number):
    return [unknown_host(number), forged, greeting(sequence=LATE + 1), bytes(number % 100)][number % 4]


print("the-host-in-the-flood", during(lambda: of_many(any_of_many), air, ROUTER_LINK, welcomed))
