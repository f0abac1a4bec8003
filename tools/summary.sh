#!/bin/sh
# Runs a command that has several steps. When it ends, prints which steps failed (tools/phase.sh) and which tests were inconclusive
# because of a busy host (tools/measured.sh). Its exit status is that of the command, or 1 if a step failed.
#
# usage: summary.sh COMMAND...   WAYFARE_FAILED and WAYFARE_INCONCLUSIVE name the files with a line for each.
set -u
failed=${WAYFARE_FAILED:?} inconclusive=${WAYFARE_INCONCLUSIVE:?}
mkdir -p "$(dirname "$failed")" "$(dirname "$inconclusive")"
rm -f "$failed" "$inconclusive"
trap : INT TERM # signals end the command; the summary follows
"$@"
status=$?
if [ -s "$inconclusive" ]; then
    echo "inconclusive, because this host was too busy:"
    sed 's/^/    /' "$inconclusive"
else
    echo "inconclusive: none"
fi
if [ -s "$failed" ]; then
    echo "FAILED:"
    sed 's/^/    /' "$failed"
    [ "$status" -ne 0 ] || status=1
elif [ "$status" -ne 0 ]; then
    echo "FAILED ($status)"
else
    echo "all steps passed"
fi
exit "$status"
