#!/bin/sh
# Runs a command of wayfare's. Where the only complaint is that this machine kept the links waiting (exit 4, `timing:`),
# nothing was measured and nothing was refuted: that is said, and is no failure. Anything else is.
set -u
complaints=$(mktemp)
trap 'rm -f "$complaints"' EXIT
"$@" 2>"$complaints"
status=$?
cat "$complaints" >&2
if [ "$status" -eq 4 ] && grep -q '^not to be trusted: .*timing: ' "$complaints" &&
    ! grep '^not to be trusted: ' "$complaints" | grep -qv 'timing: '; then
    echo "NOT MEASURED HERE: this machine stood still too often; on a quiet one, run: $*" >&2
    exit 0
fi
exit "$status"
