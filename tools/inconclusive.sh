#!/usr/bin/env bash
# Evaluates the inconclusive tests of a run: a busy host made their timing invalid, so they neither passed nor failed. Each is
# repeated, at most three times, until it passes or fails. No repetition begins later than five minutes after the first, and a command
# that runs then is interrupted. The script fails if a repetition fails, if more than 10 % of the tests of runs on Linux never decide,
# or if more than 25 % were inconclusive: such a machine cannot measure. The last line is the count.
#
# usage: inconclusive.sh FILE TESTS   FILE has a line `name<TAB>reason` for each; TESTS is the number of tests of runs on Linux
set -uo pipefail
file=${1:?usage: $0 FILE TESTS}
tests=${2:?usage: $0 FILE TESTS}
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

names=()
while IFS= read -r name; do names+=("$name"); done < <(cut -f 1 "$file" 2>/dev/null | sort -u | sed '/^$/d')
again=$(mktemp)
LIMIT=${WAYFARE_INCONCLUSIVE_SECONDS:-300}
trap 'rm -f "$again"' EXIT

# A name is a command of tools/measured.sh, which begins with the program, or a test, which is a path of modules.
rerun() { # name, seconds; status 124: no time was left
    : >"$again"
    case $1 in
        */wayfare\ *)
            # shellcheck disable=SC2086 # a command and its arguments
            WAYFARE_INCONCLUSIVE=$again timeout --signal=INT --kill-after=20 "$2" tools/measured.sh $1
            ;;
        *)
            WAYFARE_INCONCLUSIVE=$again "$cargo" test --quiet --workspace --locked --tests -- --exact "$1" 2>&1 |
                tee -a /dev/stderr | awk '/^test result: .* [1-9][0-9]* passed/ { ran = 1 } END { exit !ran }'
            ;;
    esac
}

status=0
undecided=0
began=$(date +%s)
for name in ${names[@]+"${names[@]}"}; do
    reason=$(awk -F '\t' -v name="$name" '$1 == name { print $2; exit }' "$file")
    echo "inconclusive: $name: $reason; running it again"
    decided=no
    for _ in 1 2 3; do
        left=$((LIMIT - ($(date +%s) - began)))
        [ "$left" -gt 0 ] || break
        result=0
        rerun "$name" "$left" || result=$?
        [ "$result" -ne 124 ] || break
        if [ "$result" -ne 0 ]; then
            echo "FAILED when it was run again: $name"
            status=1
            decided=yes
        elif [ ! -s "$again" ]; then
            decided=yes
        fi
        [ "$decided" = no ] || break
    done
    if [ "$decided" = no ]; then
        echo "never decided: $name"
        undecided=$((undecided + 1))
    fi
done >&2
if [ "$tests" -le 0 ]; then
    echo "FAILED: no test of runs on Linux was found" >&2
    status=1
fi
if [ $((undecided * 10)) -gt "$tests" ]; then
    echo "FAILED: more than a tenth of the tests of runs on Linux never decided" >&2
    status=1
fi
if [ $((${#names[@]} * 4)) -gt "$tests" ]; then
    echo "FAILED: more than a quarter of the tests of runs on Linux were inconclusive" >&2
    status=1
fi
echo "${#names[@]} inconclusive of $tests tests of runs on Linux, $undecided never decided"
exit "$status"
