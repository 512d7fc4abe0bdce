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
check "each option has its say" 0 '^True$' python3 - "$policies" <<'END'
import json, subprocess, sys
def of(*options):
    return json.loads(subprocess.run([sys.argv[1], "--json", *options], check=True, capture_output=True, text=True).stdout)
def misses(*options):
    return of("--policy=fifo", "--trace=zipf", "--lines=64", "--reads=3000", *options)["rows"][0]["zipf"]["misses"]
d = of("--lines=128", "--reads=2000", "--theta=0.5", "--seed=7")
assert [d[k] for k in ("cache_lines", "ways", "line_bytes", "lanes", "theta", "seed")] == [128, 4, 512, 1, 0.5, 7], d
lines = {name: trace["lines"] for name, trace in d["traces"].items() if name != "bfs"}
assert lines == {"zipf": 2048, "scan": 2048, "loop": 144, "mixed": 4096}, lines
assert all(d["traces"][name]["reads"] == 2000 for name in lines) and 0 < d["traces"]["bfs"]["reads"] <= 2000, d["traces"]
d = of("--policy=fifo", "--trace=loop", "--lines=64", "--reads=3000", "--lanes=3")
assert list(d["traces"]) == ["loop"] and d["lanes"] == 3 and d["seed"] == 1 and d["theta"] == 0.99, d
assert [row["name"] for row in d["rows"]] == ["fifo", "exact LRU", "best", "exact LRU, one set", "best, one set"], d["rows"]
assert misses() == misses("--seed=1") == misses("--theta=0.99") != misses("--seed=2")
assert misses("--theta=0.2") > misses() > misses("--theta=2")
print(True)
END
check "each row of the text is the JSON's" 0 '^True$' python3 - "$policies" "${small[@]}" <<'END'
import json, subprocess, sys
def of(*options):
    return subprocess.run(sys.argv[1:] + list(options), check=True, capture_output=True, text=True).stdout
def cell(row, trace, key):
    return f"{100 * row[trace][key]:9.2f}" if key in row[trace] else "        -"
d, text = json.loads(of("--json")), of().splitlines()
lines = [f"{row['name']:<20}" + "".join(cell(row, trace, key) for trace in d["traces"] for key in ("hit_rate", "simulated_hit_rate"))
         for row in d["rows"]]
assert text[2:2 + len(lines)] == lines and len(lines) == 11, (text, lines)
random = d["rows"][3] # which alone need not agree
assert random["name"] == "random" and random["zipf"]["misses"] != random["zipf"]["simulated_misses"], random
for name, trace in d["traces"].items():
    assert f"{name:<5} {trace['reads']} reads: {trace['text']}" in text, (name, text)
print(True)
END
check "the same as text" 0 '^sieve +[0-9.]+ +[0-9.]+' "$policies" "${small[@]}" --trace=loop
check "one policy, many lanes" 0 '64 lanes' "$policies" "${small[@]}" --policy=lru --trace=zipf --lanes=64 --wave=4
[ -z "$forge" ] || check "data that is other data" 1 'the cache returned wrong data' \
  env LD_PRELOAD="$forge" FORGE=first FORGE_OF=write FORGE_ONLY=0 "$policies" --lines=64 --reads=3000 --policy=lru --trace=scan
[ -z "$forge" ] || check "data that is zeros" 1 'the cache returned wrong data' \
  env LD_PRELOAD="$forge" FORGE=zero FORGE_OF=write "$policies" "${small[@]}" --policy=lru --trace=zipf
[ -z "$forge" ] || check "lanes that read nothing" 1 '1 results differ from their simulator' \
  env LD_PRELOAD="$forge" FORGE=idle FORGE_KERNEL=replay "$policies" "${small[@]}" --policy=lru --trace=zipf
[ -z "$forge" ] || check "of several policies and traces, as JSON" 1 '"disagreements": 30' \
  env LD_PRELOAD="$forge" FORGE=idle FORGE_KERNEL=replay "$policies" "${small[@]}" --json
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
  [ -z "$forge" ] || check "both runs read zeros" 1 'a run read other data than was written' env LD_PRELOAD="$forge" FORGE=zero FORGE_OF=write "$sample"
  # Of either run that reads nothing, and of both, which then come to the same.
  for which in FORGE_ONLY=0 FORGE_ONLY=1 FORGE_AT=0; do
    [ -z "$forge" ] || check "a run that reads other data than was written, $which" 1 'a run read other data than was written' \
      env LD_PRELOAD="$forge" FORGE=idle FORGE_KERNEL=policy_lookups "$which" "$sample"
  done
  check "refused: a device that is not there, of the sample" 1 'weir-policy: no backend "abacus"' "$sample" abacus
fi
echo "1..$count"
