#!/bin/sh
# Runs a scenario (`first`, if none is named) in both worlds with so many seeds and compares them. Prints a line for each,
# fails on any divergence.
# `run` itself repeats a run that the machine disturbed; where it was never quiet for long enough, the seed is tried
# again a little later, and in the end named as not compared, which is no agreement.
set -u
wayfare=${WAYFARE:-target/release/wayfare}
runs=${1:?usage: $0 RUNS [SCENARIO]}
scenario=${2:-first}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
agreed=0
seed=1
while [ "$seed" -le "$runs" ]; do
    "$wayfare" run "$scenario" --seed "$seed" --out "$out/sim" >/dev/null || exit 1
    for pause in 0 5 20; do
        sleep "$pause"
        "$wayfare" run "$scenario" --on linux --seed "$seed" --out "$out/linux" >/dev/null
        status=$?
        [ "$status" -eq 4 ] || break
    done
    if [ "$status" -ne 0 ]; then
        verdict="not compared: run ended with $status"
    elif verdict=$("$wayfare" diff "$out/sim" "$out/linux"); then
        agreed=$((agreed + 1))
        verdict=$(echo "$verdict" | grep '^no divergence')
    fi
    echo "seed $seed: $verdict"
    seed=$((seed + 1))
done
echo "$scenario: $agreed of $runs agree"
[ "$agreed" -eq "$runs" ]
