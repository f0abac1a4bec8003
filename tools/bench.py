#!/usr/bin/env python3
"""`make bench`: compares the speed of the simulator with that of other simulators on the same machine.

Each pair is one scenario for `wayfare` and for another program. They run in turn, nine times each. The numbers are medians, and the
range is that of the ratio in each round. The command lines and versions are printed. The exit status is 1 if a ratio is below its
limit. docs/bench.md defines the numbers.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WAYFARE = os.path.join(ROOT, "target", "dist", "wayfare")
BUILT = os.path.join(ROOT, "target", "bench")
NS3_LIBRARIES = ["core", "network", "internet", "point-to-point", "applications", "traffic-control"]


def wayfare(scenario, *settings):
    words = [WAYFARE, "run", scenario, "--no-records", "--format", "json"]
    return words + [word for setting in settings for word in ("--set", setting)]


def ns3(program, *options):
    return [os.path.join(BUILT, program), *options]


# The pairs: name, our command, the other command, and the smallest ratio of wall times per second of virtual time, or None. By
# default, ns-3 has neither checksums nor payload bytes; with both it does the same work as ours. Both simulate about 70 s of the
# transfer: ns-3's frames are shorter by 12 bytes, and at this rate take as long as ours. Our run ends soon after the transfer,
# because idle seconds cost nothing and would count.
PAIRS = [
    (
        "TCP, 16 MiB over 2 Mb/s",
        wayfare("scale/transfer", "duration=71s"),
        ns3("bulk", "--window=1", "--rate=1984148"),
        15.0,
    ),
    (
        "the same, ns-3 with payload bytes, checksums, and a comparison on arrival",
        wayfare("scale/transfer", "duration=71s"),
        ns3("bulk", "--window=1", "--rate=1984148", "--checksums", "--payload"),
        None,
    ),
    (
        "tree of 1000 hosts, four links from the root",
        wayfare("scale/tree", "tree.hosts=1000", "duration=10s"),
        ns3("tree", "--hosts=1000", "--seconds=10"),
        15.0,
    ),
]


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def build():
    """Builds the programs for ns-3. make has built ours, and tools/setup.sh has installed the library."""
    os.makedirs(BUILT, exist_ok=True)
    for program in ("bulk", "tree"):
        source = os.path.join("bench", "ns3", program + ".cc")
        binary = os.path.join("target", "bench", program)
        options = ["-O2", "-DNDEBUG", "-o", binary, source, *(f"-lns3-{library}" for library in NS3_LIBRARIES)]
        # The headers of ns-3 in Debian 12 need C++17, and those in Debian 13 need C++20.
        words = ["g++", "-std=c++17", *options]
        if subprocess.run(words, capture_output=True, cwd=ROOT).returncode != 0:
            words[1] = "-std=c++20"
            subprocess.run(words, check=True, cwd=ROOT)
        print("built:", " ".join(words))


def how_built():
    """Returns how tools/dist.sh built the command, if it built it last."""
    note = WAYFARE + ".built"
    if not os.path.exists(note) or os.path.getmtime(note) < os.path.getmtime(WAYFARE):
        return "built by hand"
    with open(note, encoding="utf-8") as file:
        return file.read().strip()


def versions():
    cpu = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), cpu)
    print(f"machine: {cpu}, {os.cpu_count()} processors, Linux {platform.release()}, load {os.getloadavg()[0]:.2f}")
    print("wayfare:", output(WAYFARE, "--version"), "by", output("rustc", "--version") + ",", how_built())
    package = output("dpkg-query", "-W", "-f", "${Package} ${Version}", "libns3-dev") if shutil.which("dpkg-query") else "?"
    print("ns-3:", package, "by", output("g++", "--version").splitlines()[0])
    print("      Debian builds it with logging compiled in, which costs it a factor of about 1.4.")


def once(words):
    """Runs a command. Returns wall seconds per second of virtual time, and its output."""
    result = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    told = json.loads(result.stdout.strip().splitlines()[-1])
    return told["wall_s"] / told["simulated_s"], told


def memory(told):
    """Returns the largest resident set, and its share for each node, if there are many nodes."""
    if told.get("hosts", 0) < 100:
        return ""
    peak, nodes = told["peak_bytes"], told["hosts"]
    return f", {peak / 1e6:.0f} MB, {peak / nodes / 1e3:.1f} kB for each of {nodes} nodes"


def compare(name, ours, theirs, least, rounds):
    """Prints the numbers of a pair. Returns whether the ratio reaches its limit."""
    print(f"\n{name}")
    print("  ours:  ", " ".join(ours).replace(ROOT + "/", ""))
    print("  theirs:", " ".join(theirs).replace(ROOT + "/", ""))
    once(ours), once(theirs)  # files are in memory from here on
    pairs = [(once(ours), once(theirs)) for _ in range(rounds)]
    ours_told, theirs_told = pairs[-1][0][1], pairs[-1][1][1]
    if ours_told["hops"] < 0.98 * theirs_told["hops"]:
        sys.exit(f"not the same work: {ours_told['hops']} frames on links, the other program {theirs_told['hops']}")
    own, other = ([pair[side][0] for pair in pairs] for side in (0, 1))
    ratios = [b / a for a, b in zip(own, other)]
    ratio = statistics.median(other) / statistics.median(own)
    for title, times, told in (("ours", own, ours_told), ("theirs", other, theirs_told)):
        median = statistics.median(times)
        print(
            f"  {title + ':':8}{median * 1e3:9.4f} ms for a second ({min(times) * 1e3:.4f} to {max(times) * 1e3:.4f}), "
            f"{told['events'] / told['wall_s'] / 1e6:.2f} M events/s, {told['hops']} frames on links{memory(told)}"
        )
    holds = least is None or ratio >= least
    verdict = "no limit" if least is None else f"at least {least:.0f}: {'holds' if holds else 'DOES NOT HOLD'}"
    print(f"  ratio: {ratio:.1f} ({min(ratios):.1f} to {max(ratios):.1f}); {verdict}")
    return holds


def bare_tcp(rounds):
    """Prints the throughput of two TCP ends without a network, from the test that measures it (docs/bench.md)."""
    words = ["cargo", "test", "--release", "--locked", "-p", "tcp", "--test", "connection", "--", "--nocapture"]
    words += ["throughput::"]
    print("\ntcp, two ends without a network: " + " ".join(words))
    seen = []
    for _ in range(rounds):
        result = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
        told = re.search(r'\{"tcp_mb_s".*?\}', result.stdout)
        if result.returncode != 0 or told is None:
            sys.exit(f"exit {result.returncode}\n{result.stdout}{result.stderr}")
        told = json.loads(told[0])
        seen.append(told["tcp_mb_s"])
    median = statistics.median(seen)
    print(
        f"  {median:.0f} MB/s ({min(seen)} to {max(seen)}): {told['bytes'] / 2**20:.0f} MiB in {told['segments']} segments, "
        f"{told['bytes'] / told['segments'] / median * 1e3:.0f} ns each, written, emitted, parsed and read"
    )


def decide():
    """Prints the time of a forwarding decision, from the test that measures it (docs/bench.md)."""
    words = ["cargo", "test", "--release", "--locked", "-p", "house-tests", "--test", "budgets"]
    words += ["--", "--nocapture", "deciding"]
    print("\ndecide(): " + " ".join(words))
    result = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    told = re.search(r'\{"decide_ns".*?\}.*?\}', result.stdout)
    if result.returncode != 0 or told is None:
        sys.exit(f"exit {result.returncode}\n{result.stdout}{result.stderr}")
    told = json.loads(told[0])
    for hosts, ns in told["decide_ns"].items():
        print(f"  at {hosts} hosts: {ns} ns")
    print(f"  allocations: {told['allocations']}")


def frames():
    """Prints the processor time of a daemon for a frame, with few sockets and with many. Returns whether the ratios hold."""
    words = ["cargo", "test", "--release", "--locked", "-p", "daemon", "--", "--ignored", "--nocapture"]
    words += ["a_frame_costs_the_same_with_many_sockets"]
    print("\na frame through a daemon: " + " ".join(words))
    result = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    rows = [json.loads(row) for row in re.findall(r'\{"burst".*?\}', result.stdout + result.stderr)]
    if result.returncode != 0 or not rows:
        sys.exit(f"exit {result.returncode}\n{result.stdout}{result.stderr}")
    for row in rows:
        print(
            f"  bursts of {row['burst']}: {row['few_ns']} ns with {row['few']} sockets, {row['many_ns']} ns with {row['many']}; "
            f"ratio {row['ratio']:.2f} ({row['least']:.2f} to {row['largest']:.2f}); at most {row['at_most']}: {row['verdict']}"
        )
    return all(row["verdict"] == "holds" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="the number of runs of each [default: 9]")
    rounds = parser.parse_args().rounds
    build()
    versions()
    print(f"medians of {rounds} runs each, in turn; smallest and largest value in brackets")
    held = [compare(*pair, rounds) for pair in PAIRS]
    bare_tcp(rounds)
    decide()
    held.append(frames())
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
