#!/bin/sh
# Runs `first` in both worlds with so many seeds and compares them. Prints a line for each, fails on any divergence.
# `run` itself repeats a run that the machine disturbed, and says so.
set -u
wayfare=${WAYFARE:-target/release/wayfare}
runs=${1:?usage: $0 RUNS}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
agreed=0
seed=1
while [ "$seed" -le "$runs" ]; do
    "$wayfare" run first --seed "$seed" --out "$out/sim" >/dev/null || exit 1
    "$wayfare" run first --on linux --seed "$seed" --out "$out/linux" >/dev/null
    status=$?
    if [ "$status" -eq 0 ] && verdict=$("$wayfare" diff "$out/sim" "$out/linux"); then
        agreed=$((agreed + 1))
    fi
    echo "seed $seed: ${verdict:-no run: $status}"
    verdict=
    seed=$((seed + 1))
done
echo "$agreed of $runs agree"
[ "$agreed" -eq "$runs" ]
