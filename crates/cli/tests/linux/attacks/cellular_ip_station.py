"""A host in the cell of a base station of Cellular IP, below a gateway, which is this script.

Arguments: the control socket, the interface to the cell, the one to the station's uplink.
"""

import sys
import time

from bench import Daemon, Link, during, icmp_errors, mac, many, udp
from cip import GATEWAY, HOST, data_for, data_of, host_of, mover, ntp, update

STATION_AIR, STATION_UP, UPLINK = mac("020000000001"), mac("020000000002"), mac("020000000009")
ATTACKER, MOBILE, CELLS = mac("020000000066"), mac("020000000007"), 2
daemon, air, up = Daemon(sys.argv[1]), Link(sys.argv[2]), Link(sys.argv[3])


def here(**more):
    return update(station=CELLS, **more)


def send(datagram, link=air, to=STATION_AIR, by=ATTACKER):
    return lambda: link.send(to, by, datagram)


def downlink(step):
    """Prints the hosts in the cell that get a datagram for the host."""
    list(air.hear(0.1))  # update-requests of the floods fill the buffers of this host's kernel
    text = b"for the host alone " + step.encode()
    up.send(STATION_UP, UPLINK, udp("10.9.0.2", HOST, 9000, text))
    time.sleep(0.2)
    print(step, *(frame[:6].hex() for frame in air.frames() if text in frame and frame[6:12] == STATION_AIR), flush=True)


def uplink(step, datagram):
    """Prints the number of frames that the station sends up for this datagram."""
    list(up.frames())
    air.send(STATION_AIR, MOBILE, datagram)
    time.sleep(0.2)
    print(step, sum(datagram[28:] in frame for frame in up.frames() if frame[6:12] == STATION_UP), flush=True)


first = here()
daemon.attack("authentic", send(first, by=MOBILE))
downlink("after-the-authentic")
daemon.attack("replay", send(first))
daemon.attack("older", send(here(stamp=ntp(-1))))
daemon.attack("out-of-window", send(here(stamp=ntp(-60))))
daemon.attack("wrong-key", send(here(key=bytes(16))))
daemon.attack("other-station", send(update(station=9)))
daemon.attack("other-gateway", send(here(gateway="10.9.0.9")))
daemon.attack("from-above", send(here(), link=up, to=STATION_UP, by=UPLINK))
daemon.attack("data-of-another", send(udp(HOST, "10.9.0.2", 9000, b"x")))
uplink("data-of-the-host", udp(HOST, "10.9.0.2", 9000, b"of the host itself"))


def forged_for(number):
    return here(host=host_of(number), key=bytes(16))


def refresh():
    """Refreshes the host's route, which is soft state. On a slow machine the floods take longer than its lifetime."""
    send(here(), by=MOBILE)()
    time.sleep(0.2)


forged = here(key=bytes(16))
daemon.flood("forged-by-many", "bad_auth auth_limit", many(lambda _: forged), air, STATION_AIR)
daemon.flood("replayed-by-many", "stale_timestamp auth_limit", many(lambda _: first), air, STATION_AIR)
refresh()
daemon.flood("forged-for-many", "bad_auth auth_limit", many(forged_for), air, STATION_AIR)
daemon.flood("data-of-many", "uplink_no_mapping", many(data_of), air, STATION_AIR)
refresh()
daemon.flood("data-for-many", "no_mapping", many(data_for), up, STATION_UP)
daemon.flood("icmp-errors-of-many", "", icmp_errors(GATEWAY, 17, 9000), air, STATION_AIR)
downlink("after-the-floods")
time.sleep(1)  # until the limits of the floods are over
daemon.attack("authentic-elsewhere", send(here(), by=UPLINK))
downlink("after-the-host-moved")


def mixed(number):
    return [forged, first, forged_for(number), data_of(number)][number % 4]


moved_back = mover(air, (STATION_AIR, STATION_UP), up, UPLINK, MOBILE, here)
print("a-move-in-the-flood", during(lambda: many(mixed), air, STATION_AIR, moved_back))
