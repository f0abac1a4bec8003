"""Hosts without a key, at a support router of Indirect TCP, over UDP and TCP port 4954.

Arguments: the control socket. This host has the addresses of the mobile host and of an unauthenticated one.
"""

import os
import random
import socket
import struct
import sys
import time

from bench import Daemon
from itcp import HOST, KEY, LATE, OTHER, PORT, ROUTER, greeting, send, signed

ROUTERS_KEY = bytes(range(16, 32))
daemon = Daemon(sys.argv[1])

daemon.attack("wrong-key", send(greeting(key=bytes(16)), HOST))
daemon.attack("routers-key", send(greeting(key=ROUTERS_KEY), HOST))
daemon.attack("from-another", send(greeting()))
daemon.attack("to-another-router", send(greeting(router="10.4.0.1"), HOST))
daemon.attack("unknown-host", send(greeting(host=OTHER)))
daemon.attack("empty", send(b""))
daemon.attack("magic", send(b"XX" + greeting()[2:]))
daemon.attack("version", send(greeting()[:2] + b"\x09" + greeting()[3:]))
daemon.attack("unknown-type", send(signed(99, bytes(20), KEY)))
daemon.attack("truncated", send(greeting()[:30]))
daemon.attack("trailing", send(greeting() + b"x"))
daemon.attack("lying-count", send(greeting(entries=200)))
daemon.attack("too-few-entries", send(greeting(entries=3)))
daemon.attack("a-pointer-of-unknown-router", send(signed(3, bytes(60), bytes(16))))
daemon.attack("a-reply-of-unknown-router", send(signed(2, bytes(20), bytes(16))))


def call(src, payload):
    """Opens a connection and sends this. The caller keeps it open."""
    stream = socket.socket()
    stream.bind((src, 0))
    stream.settimeout(3)
    stream.connect((ROUTER, PORT))
    stream.sendall(payload)
    return stream


def ended(stream):
    """Returns whether the router has ended this connection."""
    stream.settimeout(0.01)
    try:
        return stream.recv(1) == b""
    except socket.timeout:
        return False
    except OSError:
        return True


def one_call(payload, src=OTHER):
    def act():
        stream = call(src, payload)
        for _ in range(100):
            if ended(stream):
                return
        print("was not ended", flush=True)

    return act


daemon.attack("call-magic", one_call(b"GET / HTTP/1.1\r\nHost: 10.3.0.1\r\n\r\n"))
CALL = socket.inet_aton(HOST) + struct.pack("!IQ", 1, LATE) + socket.inet_aton(ROUTER)
CALL += socket.inet_aton("10.0.0.1") + struct.pack("!HH", 80, 0)
daemon.attack("call-forged", one_call(signed(16, CALL, bytes(16)), HOST))
daemon.attack("call-from-another", one_call(signed(16, CALL, KEY)))
daemon.attack("frame-too-long", one_call(struct.pack("!IBBHIQ", 0x49544350, 1, 0, 0, 0xFFFFFFFF, 0)))


def flood():
    """Sends eight bytes of a frame on many connections of one address. The router keeps only a few, and answers other hosts."""
    held, refused = [], 0
    for _ in range(200):
        try:
            held.append(call(OTHER, b"ITCP\x01\0\0\0"))
        except OSError:
            refused += 1
    began = time.time()
    daemon.look()
    prompt = time.time() - began < 1
    time.sleep(0.2)
    alive = [stream for stream in held if not ended(stream)]
    print("flood-held", len(alive), "prompt" if prompt else "LATE", flush=True)
    # The host with the key gets an answer meanwhile.
    daemon.attack("beside-the-flood", send(greeting(sequence=LATE + 1), HOST))
    time.sleep(5.2)
    print("flood-later", len([stream for stream in alive if not ended(stream)]), flush=True)


flood()
print("flood-counted", *(f"{reason}+{count}" for reason, count in sorted(daemon.settled()[1].items()) if "busy" in reason or "silent" in reason))
daemon.attack("replay", send(greeting(sequence=LATE + 1), HOST))
daemon.attack("older", send(greeting(sequence=LATE), HOST))

state, _ = daemon.settled()
chance = random.Random(14)
for _ in range(1500):
    bad = bytearray(greeting(sequence=chance.randrange(1 << 40), key=bytes(16)))
    for _ in range(chance.randrange(1, 6)):
        bad[chance.randrange(len(bad))] = chance.randrange(256)
    send(bytes(bad[: chance.randrange(1, len(bad) + 1)]), chance.choice((HOST, OTHER)))()
    send(os.urandom(chance.randrange(1, 200)), OTHER)()
print("noise", "same" if daemon.settled()[0] == state else "CHANGED")
