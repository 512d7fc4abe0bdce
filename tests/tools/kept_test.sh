#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Results that ci/kept.py keeps: taken where all is as it was, and only what passed; and shares (ci/share).
set -u
. "$(dirname "$0")/../rig/report.sh"
ci=$(cd "$(dirname "$0")/../../ci" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset WEIR_CI_ALL
export WEIR_CI_CACHE=$work/cache WEIR_CI_TAKEN=$work/taken PATH=$work/bin:$PATH
mkdir -p "$work/bin" "$work/source/more"
echo one >"$work/source/file"
echo two >"$work/source/more/file"
echo three >"$work/single"

# Says that it ran, in a file, and then what its file says.
cat >"$work/bin/program" <<'END'
#!/bin/sh
echo ran >>"$1.ran"
cat "$1"
exit "$2"
END
printf '#!/bin/sh\necho 1.0\n' >"$work/bin/compiler"
chmod +x "$work/bin"/*

# expect WHAT TIMES [OPTION...]: the program, which prints $tap and ends with $ends, has run so many times
ends=0
expect() {
  local what=$1 times=$2 output status
  shift 2
  output=$("$ci/kept.py" run sort "$work/source" "$work/single" --tool compiler "$@" -- program "$work/$tap" "$ends" 2>&1)
  status=$?
  ran=$(wc -l <"$work/$tap.ran")
  [ "$ran" = "$times" ] && [ "$status" = "$ends" ] && [ "$(grep -v '^# from' <<<"$output")" = "$(cat "$work/$tap")" ]
  report $? "$what" "ran $ran times, not $times; status $status: $output"
}

tap=good
printf 'ok 1 - a\nok 2 - b\n1..2\n' >"$work/good"
expect 'what was not seen before runs' 1
expect 'what passed is taken, with what it printed' 1
[ "$(wc -l <"$work/taken")" = 2 ]
report $? 'each of its cases is counted as taken'
WEIR_CI_ALL=1 expect 'nothing is taken where everything is to run' 2
WEIR_CI_CACHE= expect 'nothing is taken or kept without a folder' 3
[ "$(find "$work/cache" -type f | wc -l)" = 1 ]
report $? 'one result is kept'
echo on >>"$work/source/file"
expect 'a changed file in a folder runs it' 4
expect '... once' 4
echo on >>"$work/single"
expect 'a changed file by itself runs it' 5
touch "$work/source/more/new"
expect 'a new file runs it' 6
mv "$work/source/more/new" "$work/source/more/newer"
expect 'a file with another name runs it' 7
rm "$work/source/more/file"
expect 'a file that has gone runs it' 8
expect 'another word runs it' 9 --word flags
printf '#!/bin/sh\necho 1.1\n' >"$work/bin/compiler"
expect 'another version of a tool runs it' 10
expect '... once' 10
printf '#!/bin/sh\necho 1.0\n' >"$work/bin/compiler"
expect 'what was there before is there still' 10

# Whatever is no pass is not kept: run twice, it runs twice.
twice() {
  tap=$1
  printf '%b' "$3" >"$work/$1"
  expect "$2" 1
  expect "$2, again" 2
}
before=$(find "$work/cache" -type f | wc -l)
ends=1
twice status 'a failing program is not kept' 'ok 1 - a\n'
ends=0
twice failed 'a failing case is not kept' 'ok 1 - a\nnot ok 2 - b\n'
twice skipped 'a skipped case is not kept' 'ok 1 - a\nok 2 - b # SKIP none here\n'
twice bail 'a test that gave up is not kept' 'ok 1 - a\nBail out! no\n'
twice silent 'a test without cases is not kept' '# nothing\n'
[ "$(find "$work/cache" -type f | wc -l)" = "$before" ]
report $? 'nothing of these is in the folder'

# By keys.
key=$("$ci/kept.py" key "$work/source" --word a)
! "$ci/kept.py" has other "$key" && "$ci/kept.py" keep other "$key" && "$ci/kept.py" has other "$key"
report $? 'a key that is kept is there'
! "$ci/kept.py" has sort "$key"
report $? 'of its kind alone'
echo more >>"$work/source/file"
[ "$("$ci/kept.py" key "$work/source" --word a)" != "$key" ]
report $? 'another content has another key'

# The closing line, and the one before it.
printf 'ok 1 - a\nok 2 - b\n' >"$work/all.tap"
printf 'x\n' >"$WEIR_CI_TAKEN"
[ "$("$ci/count" "$work/all.tap")" = "of which 1 from the cache"$'\n'"2 passed, 0 failed" ]
report $? 'the line before the last counts what was taken'
rm "$WEIR_CI_TAKEN"
[ "$("$ci/count" "$work/all.tap")" = "2 passed, 0 failed" ]
report $? 'nothing is said where nothing was'
printf 'ok - a\nok - b\n1..3\n' >"$work/short.tap"
output=$("$ci/count" "$work/short.tap")
[ $? = 1 ] && [ "$(tail -n 1 <<<"$output")" = '2 passed, 1 failed' ]
report $? 'a planned case that said nothing is a failure' "$output"

# Logs of Meson's, as it leaves them: good cases of a program that died are no failure in the one, and are one in the other.
cat >"$work/log.junit.xml" <<'END'
<testsuites><testsuite name="weir.weir / dies" failures="0" errors="0"><testcase name="1 - a"/></testsuite>
<testsuite name="weir.weir:waits / late" failures="0" errors="0"><testcase name="1 - a"/></testsuite>
<testsuite name="weir.weir / fails" failures="1" errors="0"><testcase name="1 - a"/><testcase name="2 - b"><failure/></testcase></testsuite>
<testsuite name="weir" failures="1" errors="0"><testcase name="weir / whole"><failure/></testcase></testsuite>
<testsuite name="weir.weir / good" failures="0" errors="0"><testcase name="1 - a"/></testsuite></testsuites>
END
printf '{"name": "%s", "result": "%s"}\n' 'weir / dies' ERROR 'weir:waits / late' TIMEOUT 'weir / fails' ERROR 'weir / whole' FAIL 'weir / good' OK >"$work/log.json"
output=$("$ci/count" "$work/log.junit.xml")
[ $? = 1 ] && [ "$(tail -n 1 <<<"$output")" = '4 passed, 4 failed' ] && grep -q 'weir / dies: .*(ERROR)' <<<"$output"
report $? 'a program that ended badly without a failing case is counted once, one with such a case by its cases' "$output"

# Shares.
[ "$(for share in 0 1 2; do seq 10 | "$ci/share" "$share/3"; done | sort -n)" = "$(seq 10)" ]
report $? 'all shares are everything'
[ "$(seq 10 | "$ci/share" 4/3)" = "$(seq 10 | "$ci/share" 1/3)" ]
report $? 'numbers of shares go around'
share=$(seq 10 | "$ci/share" commit/2)
[ "$share" = "$(seq 10 | "$ci/share" 0/2)" ] || [ "$share" = "$(seq 10 | "$ci/share" 1/2)" ]
report $? "the commit's share is one of them"
[ "$(seq 10 | WEIR_CI_ALL=1 "$ci/share" commit/2)" = "$(seq 10)" ]
report $? 'with WEIR_CI_ALL it is everything'
echo "1..$count"
