#!/bin/sh
# Runs a command that has several steps, and prints at its end, however it ended, which steps failed (tools/phase.sh) and which
# tests a busy host made inconclusive (tools/measured.sh). Ends as the command ends.
#
# usage: summary.sh COMMAND...   WAYFARE_FAILED and WAYFARE_INCONCLUSIVE name the files with a line for each.
set -u
failed=${WAYFARE_FAILED:?} inconclusive=${WAYFARE_INCONCLUSIVE:?}
mkdir -p "$(dirname "$failed")" "$(dirname "$inconclusive")"
rm -f "$failed" "$inconclusive"
trap : INT TERM # they end the command, and then comes the summary
"$@"
status=$?
if [ -s "$inconclusive" ]; then
    echo "inconclusive, for this host was too busy:"
    sed 's/^/    /' "$inconclusive"
else
    echo "inconclusive: none"
fi
if [ -s "$failed" ]; then
    echo "FAILED:"
    sed 's/^/    /' "$failed"
elif [ "$status" -ne 0 ]; then
    echo "FAILED ($status)"
else
    echo "all steps passed"
fi
exit "$status"
