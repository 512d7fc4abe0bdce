#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What counts as caught: verdicts of ci/mutants and of tests/mutants/host/all over trees and tests that are none.
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

# The verdicts of tests/mutants/host/all, with tests that are one command.
cat >"$work/verdicts.py" <<'END'
import importlib.machinery, importlib.util, os, pathlib, sys, types
sys.dont_write_bytecode = True
os.environ['WEIR_CI_CACHE'] = os.environ['WEIR_CI_TAKEN'] = '/nowhere'
loader = importlib.machinery.SourceFileLoader('mutants', sys.argv[1])
mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader('mutants', loader))
loader.exec_module(mutants)
ROUND = 'echo 1..2; echo ok 1 - a; echo ok 2 - b'

def verdict(right, wrong, made=(0, 0), limit=20):
    """(caught, how), of a test that is @right on the right version and @wrong on the other."""
    state = types.SimpleNamespace(wrong=False)
    worker = object.__new__(mutants.Worker)
    worker.build = pathlib.Path('/')
    worker.tests = {'t': {'cmd': ['sh', '-c', right], 'env': {}, 'workdir': None, 'depends': []}}
    def patch(mutant, *options):
        state.wrong = not options
        worker.tests['t']['cmd'][2] = wrong if state.wrong else right
        return types.SimpleNamespace(returncode=0, stdout='')
    worker.patch = patch
    worker.make = lambda test: types.SimpleNamespace(returncode=made[state.wrong], stdout='error: made up')
    controls = mutants.Controls()
    measured = controls.limit(worker, 't', '')
    if not isinstance(measured, str):
        controls.known['t', ''] = limit
    return mutants.attempt_test(worker, types.SimpleNamespace(cases='', tests=['t']), 't', controls)

CASES = [ # what, caught, part of how
    ('a case fails', verdict(ROUND, 'echo 1..1; echo not ok 1 - a; exit 1'), True, 'not ok 1 - a'),
    ('a program dies', verdict(ROUND, 'echo 1..2; echo ok 1 - a; kill -SEGV $$'), True, 't'),
    ('a program ends before its plan', verdict(ROUND, 'echo 1..2; echo ok 1 - a'), True, 't'),
    ('a program goes on', verdict(ROUND, ROUND + '; sleep 100', limit=1), True, 'hangs'),
    ('a program that somebody else ended', verdict(ROUND, 'echo 1..2; echo ok 1 - a; kill -KILL $$'), False, 'was killed'),
    ('... below a shell', verdict(ROUND, 'echo 1..2; sh -c "kill -KILL \\$\\$"; exit $?'), False, 'was killed'),
    ('all passes', verdict(ROUND, ROUND), False, 'passes t, 3 times'),
    ('a wrong version that does not compile', verdict(ROUND, 'exit 1', made=(0, 1)), False, 'does not compile'),
    ('a right version that does not', verdict(ROUND, 'exit 1', made=(1, 1)), False, 'does not build'),
    ('a test that fails on the right version', verdict('echo 1..1; echo not ok 1 - a', 'exit 1'), False, 'fails on the right version'),
    ('a test without cases', verdict('echo 1..0', 'exit 1'), False, 'fails on the right version'),
    ('a control takes nothing from earlier runs', verdict(ROUND, '[ -n "$WEIR_CI_CACHE$WEIR_CI_TAKEN" ] || { ' + ROUND + '; }'), False, 'passes t'),
]
for what, (caught, how), wanted, part in CASES:
    print(f'{int(caught != wanted or part not in how)} {what}: {how}')
END
while read -r status name; do
  report "$status" "verdict: ${name//#/}" "$name"
done < <(timeout 300 python3 "$work/verdicts.py" "$root/tests/mutants/host/all" 2>&1 | sed 's/^\([^01]\)/1 \1/')
[ "$count" = 18 ]
report $? "there are twelve verdicts"
echo "1..$count"
