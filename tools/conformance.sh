#!/bin/sh
# Runs a scenario (`first`, if none is named) on both backends with so many seeds and compares them. Prints a line for each,
# fails on any divergence. What follows the scenario's name goes to `run`, such as `--set KEY=VALUE`.
# `run` itself repeats a run that the machine disturbed; where it was never quiet for long enough, the seed is tried
# again a little later, and in the end named as not compared, which is no agreement. Of a disk that takes its time `run`
# knows nothing: a message that waited for it is late once, and the seed is run again, which is said. What is late three
# times, or differs in order or in words, diverges. (crates/cli/tests/linux/conformance.rs has the same rule.)
set -u
wayfare=${WAYFARE:-target/release/wayfare}
runs=${1:?usage: $0 RUNS [SCENARIO [WORDS FOR RUN]]}
scenario=${2:-first}
[ $# -lt 2 ] || shift
shift
words=$*
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Runs a seed on Linux, as soon as the machine is quiet, and compares it. Whether it agrees; `verdict` is what there is to say.
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
        echo "seed $seed once more, for one message was late: $(echo "$verdict" | grep '^divergence')"
    done
    echo "seed $seed: $verdict"
    seed=$((seed + 1))
done
echo "$scenario: $agreed of $runs agree"
[ "$agreed" -eq "$runs" ]
