#!/bin/sh
# Builds a test program, or runs the one that was built last. It runs without cargo, because cargo would wait for other builds.
#
# usage: run_test.sh build NAME | run NAME
set -eu
cd "$(dirname "$0")/.."
name=${2:?usage: $0 build|run NAME}
kept=target/test-$name
case ${1:-} in
    build)
        messages=$(mktemp)
        trap 'rm -f "$messages"' EXIT
        "${CARGO:-cargo}" test --workspace --locked --test "$name" --no-run \
            --message-format json-render-diagnostics >"$messages"
        # One line for each program: the folder of its package, and its path.
        python3 - "$name" "$messages" >"$kept" <<'PYTHON'
import json, os, sys
for line in open(sys.argv[2]):
    message = json.loads(line)
    target = message.get("target", {})
    if message.get("executable") and target["kind"] == ["test"] and target["name"] == sys.argv[1]:
        print(os.path.dirname(message["manifest_path"]), message["executable"], sep="\t")
PYTHON
        [ -s "$kept" ] || { echo "no test program \`$name\`" >&2; exit 1; }
        ;;
    run)
        status=0
        while IFS='	' read -r folder program; do
            echo "     Running $program"
            (cd "$folder" && "$program") </dev/null || status=$?
        done <"$kept"
        exit "$status"
        ;;
    *) echo "usage: $0 build|run NAME" >&2; exit 2 ;;
esac
