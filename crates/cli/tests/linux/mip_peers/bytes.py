"""Sends bytes between two hosts with plain sockets, and counts them at the application.

usage: bytes.py serve tcp|udp ADDRESS PORT COUNT
       bytes.py send tcp|udp ADDRESS PORT COUNT

`COUNT` is the number of bytes of TCP in each direction at once, or the number of datagrams of UDP. A server prints `ready` first. A
datagram has 1472 bytes, so that its IP packet has 1500 bytes. It has no DF.
"""

import hashlib
import socket
import struct
import sys
import threading
import time

WHAT, TRANSPORT, ADDRESS, PORT, COUNT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
IP_MTU_DISCOVER, IP_PMTUDISC_OMIT = 10, 5
SIZE = 1472
INTERVAL = 0.003


def datagram(number):
    return struct.pack("!I", number) + bytes((number + at) % 251 for at in range(SIZE - 4))


def pattern(count):
    block = bytes(range(251))
    return (block * (count // len(block) + 1))[:count]


def read_all(connection, count):
    """Reads until the peer ends its direction. Returns the number of bytes, and whether they are the pattern."""
    got, digest = 0, hashlib.sha256()
    while part := connection.recv(65536):
        got += len(part)
        digest.update(part)
    return got, digest.digest() == hashlib.sha256(pattern(count)).digest()


def serve_udp():
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        server.bind((ADDRESS, PORT))
        server.settimeout(5)
        print("ready", flush=True)
        whole, wrong, seen = 0, 0, set()
        while len(seen) < COUNT:
            try:
                data = server.recv(4000)
            except TimeoutError:
                break
            number = struct.unpack("!I", data[:4])[0]
            if data != datagram(number):
                wrong += 1
            elif number not in seen:
                seen.add(number)
                whole += len(data)
        print(len(seen), "datagrams,", whole, "bytes,", wrong, "wrong")


def send_udp():
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        # The packets have no DF, and the path MTU that the kernel has learned is not used: a router has to cut them.
        client.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT)
        for number in range(COUNT):
            client.sendto(datagram(number), (ADDRESS, PORT))
            time.sleep(INTERVAL)


def exchange(connection):
    """Sends the pattern, reads what arrives meanwhile, and prints whether it is the pattern."""
    connection.settimeout(20)
    got = {}
    reader = threading.Thread(target=lambda: got.update(all=read_all(connection, COUNT)))
    reader.start()
    connection.sendall(pattern(COUNT))
    connection.shutdown(socket.SHUT_WR)
    reader.join()
    print(got["all"][0], "bytes,", "right" if got["all"][1] else "wrong")


def serve_tcp():
    with socket.create_server((ADDRESS, PORT)) as server:
        server.settimeout(20)
        print("ready", flush=True)
        connection, _ = server.accept()
        with connection:
            exchange(connection)


def send_tcp():
    with socket.create_connection((ADDRESS, PORT), timeout=20) as connection:
        exchange(connection)


{("serve", "udp"): serve_udp, ("send", "udp"): send_udp, ("serve", "tcp"): serve_tcp, ("send", "tcp"): send_tcp}[WHAT, TRANSPORT]()
