#!/bin/sh
# Runs one phase of a longer job, and reports its progress in one line each: at the start with an estimate, every minute, and at the
# end with the time taken. Its exit status is that of the command.
#
# usage: phase.sh NAME SECONDS COMMAND...   SECONDS is the estimate for two cores.
#
# The lines go to file descriptor 9 if it is open, else to standard error. `make --output-sync` delays the output of a command until it
# ends; then 9 is the terminal. A failed phase adds a line to the file that WAYFARE_FAILED names (tools/summary.sh).
set -u
name=${1:?usage: $0 NAME SECONDS COMMAND...}
estimate=${2:?}
shift 2

if ! { true >&9; } 2>/dev/null; then
    exec 9>&2
fi
span() { # seconds
    if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}
report() {
    echo "$(date +%T) $name: $*" >&9
}
began=$(date +%s)
report "about $(span "$estimate")"
(
    # The reports end with the parent process.
    trap 'kill "$pause" 2>/dev/null; exit' TERM
    while :; do
        sleep 60 </dev/null >/dev/null 2>&1 9>&- &
        pause=$!
        wait "$pause"
        passed=$(($(date +%s) - began))
        left=$((estimate - passed))
        if [ "$left" -gt 0 ]; then
            report "$(span "$passed"), about $(span "$left") left"
        else
            report "$(span "$passed"), longer than estimated"
        fi
    done
) >/dev/null 2>&1 &
reports=$!
trap 'kill "$reports" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$@" 9>&-
status=$?
kill "$reports" 2>/dev/null
if [ "$status" -eq 0 ]; then verdict="done"; else verdict="FAILED ($status)"; fi
verdict="$verdict after $(span $(($(date +%s) - began)))"
report "$verdict"
if [ "$status" -ne 0 ] && [ -n "${WAYFARE_FAILED:-}" ]; then
    mkdir -p "$(dirname "$WAYFARE_FAILED")" # a first build that fails leaves no folder
    echo "$name: $verdict" >>"$WAYFARE_FAILED"
fi
exit "$status"
