#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-policies: its table, as text and JSON, and what it refuses; the sample with a policy of its own.
# usage: policies_cli_test.sh WEIR-POLICIES [WEIR-POLICY [FORGE]]    FORGE: samples/forge.c, as a library
set -u
policies=$1 sample=${2-} forge=${3-}
count=0

check() { # check NAME STATUS WORDS COMMAND...: exit status, and output with WORDS
  local name=$1 status=$2 words=$3 output rc; shift 3
  count=$((count + 1))
  output=$(timeout 1200 "$@" 2>&1); rc=$?
  if [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output"; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s (status %s, expected %s and /%s/)\n' "$count" "$name" "$rc" "$status" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

small=(--lines=64 --reads=3000)

# shellcheck disable=SC2016
check "every policy and trace agrees with its simulator" 0 '^True$' python3 -c '
import json, subprocess, sys
run = subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True)
d = json.loads(run.stdout)
traces = ["zipf", "scan", "loop", "mixed", "bfs"]
rows = {row["name"]: row for row in d["rows"]}
measured = [n for n in rows if "misses" in rows[n]["zipf"]]
assert measured == ["clock", "lru", "fifo", "random", "direct", "sieve", "frequency"], measured
assert d["disagreements"] == 0 and sorted(d["traces"]) == sorted(traces)
for name in measured:
    for trace in traces:
        cell, best = rows[name][trace], rows["best"][trace]["simulated_misses"]
        assert best <= cell["misses"] <= d["traces"][trace]["reads"], (name, trace, cell)
        assert name == "random" or cell["misses"] == cell["simulated_misses"], (name, trace, cell)
        assert abs(cell["hit_rate"] - (1 - cell["misses"] / d["traces"][trace]["reads"])) < 1e-9
assert rows["frequency"]["zipf"]["misses"] < rows["clock"]["zipf"]["misses"]
print(True)' "$policies" "${small[@]}" --json
check "the same as text" 0 '^sieve +[0-9.]+ +[0-9.]+' "$policies" "${small[@]}" --trace=loop
check "one policy, many lanes" 0 '64 lanes' "$policies" "${small[@]}" --policy=lru --trace=zipf --lanes=64 --wave=4
check "refused: a policy that is none" 2 'lifo.*clock, lru, fifo, random, direct, sieve, frequency, user' "$policies" --policy=lifo
check "refused: a policy without its header" 1 '-Duser_policy=HEADER' "$policies" "${small[@]}" --policy=user
check "refused: a trace that is none" 2 '--trace takes zipf' "$policies" --trace=walk
check "refused: lines that are no sets" 2 '--lines takes a multiple of 4' "$policies" --lines=6
check "refused: no lanes" 2 '--lanes does not take "0"; it is a whole number from 1 to' "$policies" --lanes=0
check "refused: waves of three" 1 'wave_lanes is 3; it must be a power of two' "$policies" "${small[@]}" --policy=lru --trace=zipf --lanes=64 --wave=3
check "refused: an unknown option" 2 '--turbo is no option' "$policies" --turbo
check "refused: a word" 2 '"zipf" is one argument too many' "$policies" zipf
check "refused: a device that is not there" 1 'no backend "abacus"' "$policies" --backend=abacus
if [ -n "$sample" ]; then
  # 8192 lines go by and 128 stay: with those kept, none is read twice.
  check "the sample's policy keeps what it shall" 0 '^user .* 8320 misses' "$sample"
  check "clock does not" 0 '^True$' python3 -c '
import re, subprocess, sys
clock, user = map(int, re.findall(r"(\d+) misses", subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout))
print(clock > user)' "$sample"
  check "hits are what did not miss" 0 '^True$' python3 -c '
import re, subprocess, sys
lines = subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout.splitlines()
found = [re.fullmatch(r"(clock|user) +(\d+) reads, (\d+) misses: ([\d.]+)% hits", line).groups() for line in lines]
print([name for name, *_ in found] == ["clock", "user"] and all(reads == "16384" and hits == f"{100 - 100 * int(misses) / 16384:.1f}" for _, reads, misses, hits in found))' "$sample"
  [ -z "$forge" ] || check "runs that read different data" 1 'the two runs read different data' \
    env LD_PRELOAD="$forge" FORGE=idle FORGE_KERNEL=policy_lookups FORGE_ONLY=1 "$sample"
  check "refused: a device that is not there, of the sample" 1 'weir-policy: no backend "abacus"' "$sample" abacus
fi
echo "1..$count"
