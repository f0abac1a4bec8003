#!/bin/sh
# Installs the missing packages for building (`run`) or testing (`test`), on Debian and its derivatives, as root. Otherwise it names
# the missing packages and ends with 1.
#
# usage: setup.sh run|test
set -eu
case ${1:-} in run | test) ;; *) echo "usage: $0 run|test" >&2; exit 2 ;; esac
cd "$(dirname "$0")/.."

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! version=$("${CARGO:-cargo}" --version 2>&1); then
    echo "Wayfare needs Rust $wanted or newer; https://rustup.rs installs it. output of cargo: $version" >&2
    exit 1
fi
version=$(echo "$version" | cut -d' ' -f2)
oldest=$(printf '%s\n%s\n' "$wanted" "$version" | sort -V | head -n 1)
if [ "$oldest" != "$wanted" ]; then
    echo "Wayfare needs Rust $wanted or newer; this is cargo $version; https://rustup.rs installs a newer version" >&2
    exit 1
fi

missing=""
need() { # program package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
# A compiler without the C library's start files cannot link.
echo 'int main(void) { return 0; }' | cc -x c - -o /dev/null 2>/dev/null || missing="$missing gcc libc6-dev"
if [ "$1" = test ]; then
    need clang clang     # the build compiles the data path in the kernel with it
    need g++ g++         # libFuzzer, and programs that use ns-3
    need nft nftables    # tests plant faults with it
    need tc iproute2     # `make sctp-rate` limits the rate of a link with it
    need tshark tshark   # tests read captures with it
    need chrt util-linux # `IDLE` in the Makefile: builds beside timed runs use only idle processor time
    need strace strace   # tests make system calls fail or block
    need dig bind9-dnsutils # a test queries and updates our location manager with dig and nsupdate
    need python3 python3 # tests run programs written in it
    need dnsmasq dnsmasq-base # a client of a daemon gets its address from it
    need iperf3 iperf3   # a test downloads with it while its host moves
    need iptables iptables # tests change the time to live of packets with it
    need ping iputils-ping # tests ping a mobile node with it
    # Tests exchange messages of Mobile IP with it. Another python3 than Debian's can be first in the PATH.
    /usr/bin/python3 -c 'import scapy' 2>/dev/null || missing="$missing python3-scapy"
    need curl curl       # a test downloads with it through a role of a daemon
    need ssh openssh-client # a test reaches a mobile node with it
    need dropbear dropbear-bin # the server of that test
    [ -e /usr/include/usrsctp.h ] || missing="$missing libusrsctp-dev" # tests exchange SCTP with it
    [ -e /usr/include/ns3/core-module.h ] || missing="$missing libns3-dev" # tests and `make bench` compare with ns-3
fi

if [ "$1" = run ] && ! command -v clang >/dev/null 2>&1; then
    echo "there is no clang: the build has no data path in the kernel, which daemons need for \`data_path = \"kernel\"\` only" >&2
fi
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "missing:$missing; install them as root: apt-get install$missing" >&2
    exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of packages
apt-get install -y -qq --no-install-recommends $missing >/dev/null
