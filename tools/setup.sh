#!/bin/sh
# Installs what building and testing need and the machine lacks. Debian and its derivatives; elsewhere it names what is
# missing.
set -eu

missing=""
need() { # program package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need cc gcc
need g++ g++         # libFuzzer
need nft nftables    # tests plant faults with it
need tshark tshark   # tests read captures with it
need strace strace   # tests make calls of the system fail, or take their time
need dig bind9-dnsutils # a test asks and updates our location manager with dig and nsupdate
need python3 python3 # a test runs a program of somebody else's
[ -e /usr/include/usrsctp.h ] || missing="$missing libusrsctp-dev" # tests speak SCTP with it
[ -e /usr/include/ns3/core-module.h ] || missing="$missing libns3-dev" # tests and `make bench` compare with ns-3

[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "missing:$missing; install them, as root: apt-get install$missing" >&2
    exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of packages
apt-get install -y -qq --no-install-recommends $missing >/dev/null
