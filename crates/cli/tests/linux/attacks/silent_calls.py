"""Hosts that open TCP connections to a server and send nothing, more than the daemon has descriptors.

Arguments: the control socket. This host has the addresses 10.3.0.11 to 10.3.0.18.
"""

import contextlib
import os
import socket
import struct
import sys
import time

from bench import Daemon

SERVER, EACH, ADDRESSES = ("10.3.0.1", 9000), 60, [f"10.3.0.{last}" for last in range(11, 19)]
REFUSED = "tcp_too_many_of_peer"
daemon = Daemon(sys.argv[1])
with daemon.connect() as client:
    pid = struct.unpack("iII", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def cpu():
    """Returns the processor time of the daemon's threads, in seconds."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def calls():
    """Opens connections at the same time. Returns those that the daemon and its kernel accept."""
    held = []
    for source in ADDRESSES:
        for _ in range(EACH):
            stream = socket.socket()
            stream.bind((source, 0))
            stream.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                stream.connect(SERVER)
            held.append(stream)
    return held


def descriptors():
    return len(os.listdir(f"/proc/{pid}/fd"))


state, before = daemon.settled()
limit = int(next(line for line in open(f"/proc/{pid}/limits") if "open files" in line).split()[3])
held = calls()
time.sleep(1)
slowest, begun, ran = 0, time.monotonic(), cpu()
while time.monotonic() < begun + 3:
    asked = time.monotonic()
    now, after = daemon.look()
    slowest = max(slowest, time.monotonic() - asked)
    time.sleep(0.1)
print("answers", "promptly" if slowest < 1 else f"after {slowest:.1f} s", flush=True)
share = (cpu() - ran) / (time.monotonic() - begun)
print("processor", "free" if share < 0.3 else f"taken for {share:.0%}")
print("descriptors", "left" if descriptors() <= limit - 8 else f"{descriptors()} of {limit}")
print("one-address", "limited" if after.get(REFUSED, 0) > before.get(REFUSED, 0) else "unlimited")
for stream in held:
    stream.close()
time.sleep(1)
print("afterwards", "same" if daemon.settled()[0] == state else "CHANGED")


def served():
    with socket.create_connection(SERVER, timeout=5, source_address=(ADDRESSES[0], 0)) as stream:
        stream.sendall(struct.pack("!QII", 1, 16, 8))
        return len(stream.recv(100))


print("answers", served(), "bytes")
# The daemon must end while it has no free descriptors.
held = calls()
time.sleep(0.5)
os.kill(pid, 15)
time.sleep(2)
