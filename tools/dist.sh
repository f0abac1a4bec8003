#!/bin/sh
# Builds the release artifact, target/dist/wayfare, which is optimized across crates and with a profile. So it is built twice. The
# first build counts its branches and calls while it runs the list below, which covers each protocol and both backends. The second
# build is optimized by these counts. Reading the counts needs the llvm-profdata of rustc's LLVM. Without it, the command is built
# without a profile, and the script reports this.
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

build() { # flags of the compiler, further arguments of cargo
    flags=$1
    shift
    RUSTFLAGS=$flags "$CARGO" build --profile dist --locked -p cli "$@"
}

# The compiler treats code that does not run here as rarely used.
train() {
    for scenario in "evidence/bulk" "scale/tree --set tree.hosts=1000" "scale/cellular-ip --set tree.hosts=1000"; do
        # shellcheck disable=SC2086 # a name and its settings
        "$wayfare" run $scenario --no-records || return 1
    done
    "$wayfare" compare --quick || return 1
    for scenario in first mobile-ip/download sigma/handoff indirect-tcp/handoff-time; do
        "$wayfare" run "$scenario" --on linux --out "$trained/runs/$scenario" ||
            echo "not in the profile: $scenario with daemons, which failed" >&2
    done
}

if ! profdata >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "installing: llvm-$llvm"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "llvm-$llvm"; } >/dev/null 2>&1 || true
fi
if ! profdata=$(profdata); then
    echo "built without a profile, so it is slower: this machine has no llvm-profdata of LLVM $llvm." >&2
    echo "Install it by: rustup component add llvm-tools, or Debian's package llvm-$llvm." >&2
    build ""
    echo "built without a profile" >target/dist/wayfare.built
    exit 0
fi

build "-Cprofile-generate=$counts" --target-dir "$trained"
if [ ! -e "$trained/profile" ] || [ "$wayfare" -nt "$trained/profile" ]; then
    rm -rf "$counts"
    train >"$trained/log" 2>&1 || { tail -20 "$trained/log" >&2 && exit 1; }
    "$profdata" merge -o "$trained/merged" "$counts"
    # The checksum in the name shows cargo whether it must build again.
    sum=$(cksum <"$trained/merged" | cut -d' ' -f1)
    rm -f "$trained"/*.profdata
    mv "$trained/merged" "$trained/$sum.profdata"
    echo "$sum" >"$trained/profile"
fi
build "-Cprofile-use=$PWD/$trained/$(cat "$trained/profile").profdata"
echo "built with a profile" >target/dist/wayfare.built
