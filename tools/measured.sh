#!/usr/bin/env bash
# Runs a command of Wayfare. If it ends with 4, and a busy host can be the cause of each of its doubts, the command is inconclusive:
# it measured nothing, and this is no failure. Any other failure is passed on.
#
# Wayfare writes its doubts to the file that WAYFARE_DOUBTS names, one line of JSON each. `timing` is true if a busy host can be the
# cause. This script appends one line, `command<TAB>reason`, for each inconclusive command to the file that WAYFARE_INCONCLUSIVE
# names. .ci/run counts and repeats them.
set -u
WAYFARE_DOUBTS=$(mktemp)
export WAYFARE_DOUBTS
trap 'rm -f "$WAYFARE_DOUBTS"' EXIT
"$@"
status=$?
if [ "$status" -eq 4 ] && [ -s "$WAYFARE_DOUBTS" ] && ! grep -qv '^{"timing":true,' "$WAYFARE_DOUBTS"; then
    echo "INCONCLUSIVE: host too busy; run this on an idle host: $*" >&2
    [ -z "${WAYFARE_INCONCLUSIVE:-}" ] ||
        printf '%s\t%s\n' "$*" "$(head -n 1 "$WAYFARE_DOUBTS")" >>"$WAYFARE_INCONCLUSIVE"
    exit 0
fi
exit "$status"
