#!/usr/bin/env bash
# Runs a command of Wayfare. If its only doubts are that this machine delayed the links (exit 4, `timing:`), nothing was
# measured and nothing was refuted: the command is inconclusive, which is not a failure. Every other failure is passed on.
#
# Each inconclusive command is one line, `command<TAB>reason`, of the file that WAYFARE_INCONCLUSIVE names; .ci/run counts
# them and runs them again.
set -u
complaints=$(mktemp)
trap 'rm -f "$complaints"' EXIT
exec 3>&1
"$@" 2>&1 >&3 3>&- | tee "$complaints" >&2 3>&-
status=${PIPESTATUS[0]}
if [ "$status" -eq 4 ] && grep -q '^not to be trusted: .*timing: ' "$complaints" &&
    ! grep '^not to be trusted: ' "$complaints" | grep -qv 'timing: '; then
    reason=$(grep -m 1 '^not to be trusted: ' "$complaints" | cut -c 20-)
    echo "INCONCLUSIVE: host too busy; on a quiet one, run: $*" >&2
    [ -z "${WAYFARE_INCONCLUSIVE:-}" ] || printf '%s\t%s\n' "$*" "$reason" >>"$WAYFARE_INCONCLUSIVE"
    exit 0
fi
exit "$status"
