#!/usr/bin/env bash
# Runs a command of Wayfare. If it ends with 4 and a busy host may be the cause of each of its doubts, nothing was measured and
# nothing was refuted: the command is inconclusive, which is not a failure. Every other failure is passed on.
#
# Wayfare leaves its doubts in the file that WAYFARE_DOUBTS names, one line of JSON each; `timing` says whether a busy host may be
# the cause. Each inconclusive command is one line, `command<TAB>reason`, of the file that WAYFARE_INCONCLUSIVE names; .ci/run
# counts them and runs them again.
set -u
WAYFARE_DOUBTS=$(mktemp)
export WAYFARE_DOUBTS
trap 'rm -f "$WAYFARE_DOUBTS"' EXIT
"$@"
status=$?
if [ "$status" -eq 4 ] && [ -s "$WAYFARE_DOUBTS" ] && ! grep -qv '^{"timing":true,' "$WAYFARE_DOUBTS"; then
    echo "INCONCLUSIVE: host too busy; on a quiet one, run: $*" >&2
    [ -z "${WAYFARE_INCONCLUSIVE:-}" ] ||
        printf '%s\t%s\n' "$*" "$(head -n 1 "$WAYFARE_DOUBTS")" >>"$WAYFARE_INCONCLUSIVE"
    exit 0
fi
exit "$status"
