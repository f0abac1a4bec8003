#!/bin/sh
# Fuzzes each target for an equal share of the given seconds, and prints a line for each. Fails if one crashes. With `build` it only
# builds the targets. Needs stable Rust and a C++ compiler for libFuzzer. New inputs are kept in corpus/, crashes in artifacts/.
set -eu
cd "$(dirname "$0")"

usage="usage: $0 SECONDS_TOTAL | build"
case ${1:-} in build) ;; '' | *[!0-9]*) echo "$usage" >&2; exit 2 ;; esac
total=$1

# These variables would replace the flags in .cargo/config.toml, and the fuzzer would have no coverage information.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET CARGO_BUILD_RUSTFLAGS
export CARGO_TARGET_DIR="$PWD/target"
cargo build --quiet --locked --release --bins
[ "$total" != build ] || exit 0
host=$(rustc -vV | sed -n 's/^host: //p')

# The folders of seeds are the list of targets.
count=$(find seeds -mindepth 1 -maxdepth 1 -type d | wc -l)
share=$((total / count))
[ "$share" -gt 0 ] || share=1 # zero means no limit

status=0
for seeds in seeds/*/; do
    target=$(basename "$seeds")
    mkdir -p "corpus/$target" "artifacts/$target"
    log=artifacts/$target/log
    # Longer than any Ethernet frame, so that inputs include padding and wrong lengths.
    if FUZZ_TARGET=$target "target/$host/release/fuzz" -max_total_time="$share" -max_len=2048 -rss_limit_mb=512 -timeout=10 \
        -print_final_stats=1 -artifact_prefix="artifacts/$target/" "corpus/$target" "$seeds" >"$log" 2>&1; then
        verdict=ok
    else
        verdict=CRASHED
        status=1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\).*/\1 edges, \2 features/p' "$log" | tail -n 1)
    echo "$target: $verdict, ${runs:-?} executions, coverage ${coverage:-none}"
    if [ "$verdict" = CRASHED ]; then
        # The panic, or the fuzzer's own error, and the place of the input.
        sed -n '/panicked at/,+1p; /^==.*ERROR/p; /Test unit written/p' "$log" >&2
    fi
done
exit "$status"
