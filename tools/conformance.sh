#!/bin/sh
# Runs a scenario [default: `first`] on both backends with RUNS seeds, and compares the runs. Prints a line for each seed, and fails
# if any run diverges. Arguments after the scenario are passed to `run`, for example `--set KEY=VALUE`.
#
# `run` repeats a run if the machine was stalled. If the machine is still too busy, the script tries the seed again after a pause, and at
# last reports it as not compared, which does not count as agreement. `run` does not detect a slow disk: if a message is late only once,
# the seed is run again, and this is printed. A run diverges if messages are late three times, or differ in order or content.
# (crates/cli/tests/linux/conformance.rs has the same rule.)
set -u
wayfare=${WAYFARE:-target/release/wayfare}
runs=${1:?usage: $0 RUNS [SCENARIO [ARGUMENTS OF RUN]]}
scenario=${2:-first}
[ $# -lt 2 ] || shift
shift
words=$*
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Runs a seed on Linux, when the machine is idle, and compares it. Returns 0 if it agrees; `verdict` is the text for the report.
agrees() {
    for pause in 0 5 20; do
        sleep "$pause"
        "$wayfare" run "$scenario" $words --on linux --seed "$1" --out "$out/linux-$1" >/dev/null
        status=$?
        [ "$status" -eq 4 ] || break
    done
    verdict="not compared: run ended with $status"
    [ "$status" -eq 0 ] || return 1
    verdict=$("$wayfare" diff "$out/sim-$1" "$out/linux-$1") || return 1
    verdict=$(echo "$verdict" | grep '^no divergence')
}

is_late() {
    case $verdict in *"ms apart"*) ;; *) return 1 ;; esac
}

agreed=0
seed=1
while [ "$seed" -le "$runs" ]; do
    "$wayfare" run "$scenario" $words --seed "$seed" --out "$out/sim-$seed" >/dev/null || exit 1
    for more in 2 1 0; do
        agrees "$seed" && agreed=$((agreed + 1)) && break
        is_late && [ "$more" -gt 0 ] || break
        echo "seed $seed is run again because a message was late: $(echo "$verdict" | grep '^divergence')"
    done
    echo "seed $seed: $verdict"
    seed=$((seed + 1))
done
echo "$scenario: $agreed of $runs agree"
[ "$agreed" -eq "$runs" ]
