#!/bin/sh
# Builds the command as it is handed out, target/dist/wayfare: optimized across crates, and by a profile of what it does most.
# It is built twice. The first one counts what it does while it runs the list below, which has something of every system and of
# both worlds; by what was counted, the second is made quick where it matters. Counts are read by the llvm-profdata of rustc's
# own LLVM; without one the command is built without a profile, and that is said.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
trained=target/trained
counts=$PWD/$trained/counts
wayfare=$trained/dist/wayfare

llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
host=$(rustc -vV | sed -n 's/^host: //p')

profdata() {
    for tool in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "llvm-profdata-$llvm" llvm-profdata; do
        "$tool" --version 2>/dev/null | grep -q "LLVM version $llvm\." && echo "$tool" && return
    done
    return 1
}

build() { # how: what the compiler is to do besides, and more words for cargo
    flags=$1
    shift
    RUSTFLAGS=$flags "$CARGO" build --profile dist --locked -p cli "$@"
}

# What it does not run is taken for seldom.
train() {
    for scenario in "evidence/bulk" "scale/tree --set tree.hosts=1000" "scale/cellular-ip --set tree.hosts=1000"; do
        # shellcheck disable=SC2086 # a name and its settings
        "$wayfare" run $scenario --set duration=10s --no-records || return 1
    done
    "$wayfare" compare --quick || return 1
    for scenario in first mobile-ip/download sigma/handoff indirect-tcp/handoff-time; do
        "$wayfare" run "$scenario" --on linux --out "$trained/runs/$scenario" ||
            echo "not counted: $scenario with daemons, which did not run as it should" >&2
    done
}

if ! profdata >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "installing: llvm-$llvm"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "llvm-$llvm"; } >/dev/null 2>&1 || true
fi
if ! profdata=$(profdata); then
    echo "without a profile, and so slower: there is no llvm-profdata of LLVM $llvm here." >&2
    echo "rustup component add llvm-tools brings one, or Debian's package llvm-$llvm." >&2
    build ""
    echo "built without a profile" >target/dist/wayfare.built
    exit 0
fi

build "-Cprofile-generate=$counts" --target-dir "$trained"
if [ ! -e "$trained/profile" ] || [ "$wayfare" -nt "$trained/profile" ]; then
    rm -rf "$counts"
    train >"$trained/log" 2>&1 || { tail -20 "$trained/log" >&2 && exit 1; }
    "$profdata" merge -o "$trained/merged" "$counts"
    # By the sum in its name cargo knows whether there is anything to build.
    sum=$(cksum <"$trained/merged" | cut -d' ' -f1)
    rm -f "$trained"/*.profdata
    mv "$trained/merged" "$trained/$sum.profdata"
    echo "$sum" >"$trained/profile"
fi
build "-Cprofile-use=$PWD/$trained/$(cat "$trained/profile").profdata"
echo "built by a profile" >target/dist/wayfare.built
