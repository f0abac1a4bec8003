"""A program of the daemon's user that sends invalid lines to the control socket. Arguments: the control socket."""

import contextlib
import json
import os
import random
import sys

from bench import Daemon

daemon = Daemon(sys.argv[1])


def says(name, line):
    """Sends one line, and prints the kind of the answer."""
    state, _ = daemon.look()
    answer = daemon.ask(line)
    kind = next(iter(json.loads(answer))) if answer else "gone"
    print(name, kind, "same" if daemon.look()[0] == state else "CHANGED", flush=True)


says("empty", b"")
says("words", b"hello")
says("zeros", bytes(100))
says("not-utf-8", b"\xff\xfe\xfd")
says("number", b"1")
says("unknown", b'{"reboot":{}}')
says("unknown-verb", b'{"do":{"verb":"reboot"}}')
says("wrong-type", b'{"do":{"verb":7}}')
says("begin-again", b'{"begin":{"t0":0}}')
says("begin-at-the-end-of-time", b'{"begin":{"t0":18446744073709551615,"end":18446744073709551615}}')
says("deep", b'{"do":{"verb":"x","args":' + b"[" * 100000 + b"]" * 100000 + b"}}")
says("long-verb", b'{"do":{"verb":"' + b"v" * 900000 + b'"}}')


def endless():
    """A line without an end."""
    client = daemon.connect()
    sent = 0
    try:
        while sent < 64 << 20:
            sent += client.send(b"x" * 65536)
    except OSError:
        pass
    print("endless", "given-up" if sent < 8 << 20 else "TAKEN", flush=True)


endless()


def half():
    """Many clients that disconnect in the middle of a line."""
    for _ in range(500):
        # The client beyond the limit gets no answer.
        with daemon.connect() as client, contextlib.suppress(OSError):
            client.send(b'{"do":{"verb":"sta')


state, _ = daemon.look()
half()
chance = random.Random(14)
for _ in range(300):
    line = bytearray(b'{"do":{"verb":"status","args":{"a":[1,2,3]}}}')
    for _ in range(chance.randrange(1, 5)):
        line[chance.randrange(len(line))] = chance.randrange(256)
    with daemon.connect() as client, contextlib.suppress(OSError):
        client.sendall(bytes(line) + os.urandom(chance.randrange(20)) + b"\n")
print("noise", "same" if daemon.look()[0] == state else "CHANGED")
