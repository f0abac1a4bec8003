#!/usr/bin/env python3
"""Measures the effect of the medium's grant per frame, and prints the table of docs/medium.md.

    tools/medium.py [WAYFARE]

Each row is one scenario with its default values, in the simulator, with one queue for all radios of a channel (`fifo`) and with a
queue for each radio (`fair`). The table has the commands. A value is median (5th..95th percentile).
"""

import csv
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WAYFARE = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target", "release", "wayfare")
RUNS = 20
FRAMES = "mobile-ip/download"

# Scenario, metric, unit, cells.
ROWS = [
    ("mobile-ip/download", "outage_ms", "ms", (1, 2)),
    ("mobile-ip/download", "goodput_kbps", "kb/s", (1, 2)),
    ("sigma/handoff", "longest_stall_ms", "ms", (1, 2)),
    ("sigma/handoff", "goodput_kbps", "kb/s", (1, 2)),
    ("sigma/mobile-ip", "outage_ms", "ms", (1, 2)),
    ("sigma/mobile-ip", "goodput_kbps", "kb/s", (1, 2)),
    ("indirect-tcp/handoff-time", "outage_ms", "ms", (1, 2)),
    ("cellular-ip/udp-loss", "lost_packets", "packets", (2, 3)),
    ("air/walk", "outage_ms", "ms", (1, 2)),
] + [
    (f"compare/{leg}/{move}/bulk", "outage_ms", "ms", (1, 2))
    for move in ("overlap", "gap")
    for leg in ("mobile-ip", "indirect-tcp", "cellular-ip-hard", "cellular-ip-semisoft", "sigma")
    if (leg, move) != ("cellular-ip-semisoft", "gap")  # It needs the new cell before it leaves the old one.
]


def settings(cells, access):
    return [word for cell in cells for word in ("--set", f"cell.{cell}.access={access}")]


def run(*words):
    done = subprocess.run([WAYFARE, "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # 1: a check failed, for example a flow that never recovered; the values exist.
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def values(scenario, cells, access, folder):
    text = run(scenario, *settings(cells, access), "--runs", str(RUNS), "--format", "json", "--out", folder)
    return {row["metric"]: row for row in json.loads(text)["summary"]}


def middle(row):
    # An outage that never ends has no number.
    number = lambda value: "never" if value is None else f"{value:.4g}"
    return f"{number(row['median'])} ({number(row['p5'])}..{number(row['p95'])})"


def delays(folder, sender, receivers):
    """Returns the times in milliseconds from a frame's offer to its arrival, over the air."""
    offered, delays = {}, []
    with open(os.path.join(folder, "packets.csv"), encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if row["interface"] != "air":
                continue
            if row["host"] in sender and row["direction"] == "out":
                offered[row["packet"]] = float(row["time_s"])
            elif row["host"] in receivers and row["direction"] == "in" and row["packet"] in offered:
                delays.append(1e3 * (float(row["time_s"]) - offered.pop(row["packet"])))
    delays.sort()
    return " / ".join(f"{delays[int(share * (len(delays) - 1))]:.1f}" for share in (0.5, 0.9, 0.99))


def main():
    print("| what | one queue (`fifo`) | a queue for each radio (`fair`) | command, with `--set cell.N.access=fifo` or `fair` |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        stations, mobile = {"home", "foreign"}, {"mobile"}
        ways = (("mobile to station", mobile, stations), ("station to mobile", stations, mobile))
        for access in ("fifo", "fair"):
            run(FRAMES, *settings((1, 2), access), "--out", f"{folder}/frames-{access}")
        for name, sender, receiver in ways:
            both = [delays(f"{folder}/frames-{access}", sender, receiver) for access in ("fifo", "fair")]
            print(f"| delay of frames, {name}, ms, p50 / p90 / p99 | {both[0]} | {both[1]} | `wayfare run {FRAMES}` |")
        known = {}
        for scenario, metric, unit, cells in ROWS:
            for access in ("fifo", "fair"):
                if (scenario, access) not in known:
                    place = f"{folder}/{len(known)}"
                    known[scenario, access] = values(scenario, cells, access, place)
            both = [middle(known[scenario, access][metric]) for access in ("fifo", "fair")]
            name = metric.rsplit("_", 1)[0].replace("_", " ")
            print(f"| `{scenario}`: {name}, {unit} | {both[0]} | {both[1]} | `wayfare run {scenario} --runs {RUNS}` |", flush=True)


if __name__ == "__main__":
    main()
