#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What counts as caught: verdicts of ci/mutants over a tree that is none.
set -u
. "$(dirname "$0")/../rig/report.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A tree with one mutant of either kind, whose halves say what they are told to say: $core_says and $host_says, with these exit statuses.
mkdir -p "$work/ci" "$work/tests/mutants/host"
cp "$root/ci/mutants" "$work/ci"
printf '#!/bin/sh\n' | tee "$work/ci/setup" >"$work/ci/build"
echo one >"$work/file"
printf -- '--- a/file\n+++ b/file\n@@ -1 +1 @@\n-one\n+two\n' | tee "$work/tests/mutants/first.patch" >"$work/tests/mutants/host/second.patch"
printf '#!/bin/sh\nprintf "%%b" "$core_says"\nexit ${core_ends-0}\n' >"$work/tests/mutants/all"
printf '#!/bin/sh\nprintf "%%b" "$host_says"\nexit ${host_ends-0}\n' >"$work/tests/mutants/host/all"
chmod +x "$work"/ci/* "$work"/tests/mutants/all "$work/tests/mutants/host/all"

verdict() { # verdict STATUS LAST NAME, of both halves
  local output status
  output=$("$work/ci/mutants" --all 2>&1)
  status=$?
  [ "$status" = "$1" ] && [ "$(tail -n 1 <<<"$output")" = "$2" ]
  report $? "$3" "status $status: $output"
}
export core_says='1..2\nok 1 - a\nok 2 - b\n' host_says='1..1\nok 1 - c\n'
verdict 0 'caught 3 of 3' 'all are caught'
core_says='1..2\nok 1 - a\nnot ok 2 - SURVIVED b\n' verdict 1 'caught 2 of 3' 'one survives'
core_says='1..2\nok 1 - a\n' verdict 1 'caught 2 of 3' 'of one nothing is said'
host_says='1..1\n' host_ends=1 verdict 1 'caught 2 of 3' 'the half of the host side breaks off'
host_says='' host_ends=1 verdict 1 'caught 2 of 2' '... before it says how many there are'
core_ends=1 verdict 1 'caught 3 of 3' 'the half of the core says that it failed'

echo "1..$count"
