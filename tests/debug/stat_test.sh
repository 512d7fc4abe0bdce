#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-stat looks at processes that work, are stopped, wait for ever, were killed, are others' or not there.
# usage: stat_test.sh WEIR-STAT STAT-BED
set -u
. "$(dirname "$0")/../rig/report.sh"
stat=$1 bed=$2
docs=$(dirname "$0")/../../docs/hardware.md
work=$(mktemp -d)
: >"$work/errors"
beds=()
finish() {
  for pid in "${beds[@]}"; do kill -CONT "$pid" 2>/dev/null; kill -9 "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"
export XDG_RUNTIME_DIR=$work
folder=$work/weir

text() { # text NAME STATUS WORDS ARGUMENTS...: exit status, and output with WORDS
  local name=$1 status=$2 words=$3 output rc; shift 3
  output=$(timeout 600 "$stat" "$@" 2>&1); rc=$?
  [ "$rc" = "$status" ] && grep -qF -- "$words" <<<"$output"
  report $? "$name" "status $rc: $output"
}

unlisted() { # unlisted NAME PID: list works, and has no such process; others may run meanwhile
  local output rc
  output=$(timeout 600 "$stat" list 2>&1); rc=$?
  [ "$rc" = 0 ] && ! grep -qE "^ *$2 " <<<"$output"
  report $? "$1" "status $rc: $output"
}

cat >"$work/seen.py" <<'EOF_SEEN'
import json, subprocess, sys, time
stat, pid, what, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
def dump():
    out = subprocess.run([stat, "dump"] + ([pid] if pid != "all" else []), capture_output=True, timeout=600)
    return json.loads(out.stdout) if out.stdout else {"rc": out.returncode, "says": out.stderr.decode()}
def keys(x):
    if isinstance(x, dict):
        for k, v in x.items():
            yield k
            yield from keys(v)
    if isinstance(x, list):
        for v in x: yield from keys(v)
def oldest(q): return q["oldest"]
until, good = time.monotonic() + seconds, False
while not good:
    d = dump()
    try:
        if pid != "all": # else the first may be anybody's
            p = d["processes"][0]; c = p["contexts"][0]; s = c["storages"][0]; q = s["queues"]
        good = eval("(" + what + ")")
    except (KeyError, IndexError, TypeError):
        good = False
    if not good and time.monotonic() > until: break
    if not good: time.sleep(0.1)
print(True if good else json.dumps(d))
EOF_SEEN

seen() { # seen NAME PID WHAT [SECONDS]: a Python expression over p, c, s, q comes to hold
  local output
  output=$(timeout 1000 python3 "$work/seen.py" "$stat" "$2" "$3" "${4-120}" 2>&1)
  [ "$output" = True ]
  report $? "$1" "$output"
}

fixture_() { # fixture_ ARGUMENTS...: starts one; its number in $pid
  : >"$work/said"
  cat "$work/errors" >>"$work/all" 2>/dev/null
  "$bed" "$@" >"$work/said" 2>"$work/errors" & pid=$!
  beds+=("$pid")
  for _ in $(seq 1200); do grep -q ready "$work/said" && return; sleep 0.1; done
  echo "# no bed: $(cat "$work/errors")"
}

gone() { kill -CONT "$1" 2>/dev/null; kill -9 "$1" 2>/dev/null; wait "$1" 2>/dev/null; }

text "no such process" 3 'there is no process 999999999' dump 999999999
text "a process without weir" 4 'has no weir context open' dump $$
text "no number" 2 'no process number: 12x' dump 12x
text "0 is none" 2 'no process number: 0' dump 0
text "a negative one" 2 'weir-stat --help' dump -5
text "one beyond 32 bits, whose lowest are a process's" 2 "no process number: $((4294967296 + $$))" dump $((4294967296 + $$))
text "two at once" 2 'give dump one PID' dump 1 2
text "a bad time" 2 'from 0 to 60000' dump --over 1s 1
text "no command" 2 'a command is missing: give list or dump'
text "a command that is none" 2 'there is no command show' show
text "a word too many" 2 'list takes nothing more: "5"' list 5
text "help" 0 'Exit status: 0 done' --help
text "version" 0 'weir-stat ' --version

# At work, with two contexts.
fixture_ load 'virt:1M?block=512&shadow=on' 'virt:2M?block=512&fault=late:us=1'
text "listed" 0 "$pid  $(basename "$bed")" list
text "with its storages" 0 'virt:1M?block=512&shadow=on  virt:2M?block=512&fault=late:us=1' list
[ "$(stat -c %a "$folder")" = 700 ] && [ "$(stat -c %a "$folder/$pid-1" "$folder/$pid-2" | sort -u)" = 600 ]
report $? "folder and files are the user's alone" "$(ls -la "$folder")"
for mode in 720 702 777; do
  chmod $mode "$folder"; unlisted "not where others may write, as in a folder of mode $mode" "$pid"
done
chmod 700 "$folder"
text "listed again" 0 "$pid  $(basename "$bed")" list
seen "a process at work" "$pid" 'd["version"] and p["pid"] == int(pid) and p["error"] is None and s["uri"] == "virt:1M?block=512&shadow=on" and s["words"] == "live"
  and s["queue_count"] == 3 == len(q) and s["depth"] == 8 and [x["id"] for x in q] == [1, 2, 3] and s["block_bytes"] == 512
  and s["timeout_ms"] == 600000 and s["command_timeout_ms"] == 30000 and s["path"] == "direct" and not s["service"]
  and all(x["tail"] >= x["committed"] >= x["head"] >= x["rung"] and x["dead"] is None for x in q if x["steady"])
  and sum(x["completed"] for x in q) > 100 and any(x["moved"] for x in q) and sum(x["failed"] + x["rogue"] + x["retried"] for x in q) == 0
  and any(x["rings"] > 0 for x in q) and all(x["rings"] is None for x in p["contexts"][1]["storages"][0]["queues"])
  and all(x["in_use"] == x["unannounced"] + x["with_controller"] + x["answered"] <= 8 for x in q)'
seen "its caches, its device, and the other context" "$pid" 'c["caches"][0]["line_bytes"] == 512 and c["caches"][0]["misses"] == 0 and c["caches"][0]["bytes"] > 64 * 512
  and "cpu" in c["device"] and [x["number"] for x in p["contexts"]] == [1, 2] and p["contexts"][1]["storages"][0]["uri"].startswith("virt:2M")
  and p["contexts"][1]["caches"] == [] and all(x["oldest"] is None and x["in_use"] == 0 and x["moved"] is False for x in p["contexts"][1]["storages"][0]["queues"])'
seen "without a number: all" all '[x["error"] for x in d["processes"] if x["pid"] == '"$pid"'] == [None]'
# Who has another folder finds it all the same, by what the process has.
(unset XDG_RUNTIME_DIR; HOME=$work timeout 600 "$stat" dump "$pid" >"$work/one" 2>"$work/two")
[ $? = 0 ] && [ "$(grep -c '"number": [12],' "$work/one")" = 2 ]; report $? "by the folder of the process" "$(cat "$work/one" "$work/two")"
kill -STOP "$pid"
seen "a process that is stopped" "$pid" 'p["state"] == "stopped" and all(x["moved"] is False and x["steady"] for x in q) and s["words"] == "live"
  and all(x["tail"] - x["head"] <= 8 and x["tail"] >= x["committed"] for x in q)'
text "and listed as such" 0 stopped list
kill -9 "$pid"; wait "$pid" 2>/dev/null
[ -e "$folder/$pid-1" ] && [ -e "$folder/$pid-2" ]; report $? "killed: it left its files" "$(ls -la "$folder")"
text "of which dump tells" 3 "it has ended, and left $folder/$pid-1, which weir-stat list removes" dump "$pid"
unlisted "and list does not" "$pid"
[ -z "$(ls -A "$folder")" ]; report $? "but removes them" "$(ls -la "$folder")"

# A controller that drops the 14th command, and a program that waits for ever.
fixture_ read 20 'virt:1M?block=512&timeout_ms=0&fault=drop:after=13:count=1'
hangs='s["command_timeout_ms"] == 0 and q[0]["tail"] == 14 == q[0]["committed"] and q[0]["head"] == 13 == q[0]["completed"] and q[0]["in_use"] == 1 == q[0]["with_controller"]
  and q[0]["answered"] == 0 == q[0]["unannounced"] and q[1]["oldest"] is None and q[2]["oldest"] is None and q[0]["pending"] == 0 and q[0]["combiner"] == "free"
  and {k: v for k, v in oldest(q[0]).items() if k != "age_ms"} == {"ticket": 13, "slot": 5, "cid": 13, "where": "controller", "opcode": "read", "lba": 13, "blocks": 1}'
seen "a command without an answer" "$pid" "$hangs and oldest(q[0])['age_ms'] > 0 and s['polled_ms'] is not None"
first=$(timeout 200 "$stat" dump "$pid" | python3 -c 'import json,sys; print(json.load(sys.stdin)["processes"][0]["contexts"][0]["storages"][0]["queues"][0]["oldest"]["age_ms"])')
sleep 1
second=$(timeout 200 "$stat" dump "$pid" | python3 -c 'import json,sys; print(json.load(sys.stdin)["processes"][0]["contexts"][0]["storages"][0]["queues"][0]["oldest"]["age_ms"])')
[ $((second - first)) -ge 1000 ] && [ $((second - first)) -lt 60000 ]
report $? "gets older" "$first ms, then $second ms"
kill -STOP "$pid"
seen "and is seen of a stopped process" "$pid" "$hangs and oldest(q[0])['age_ms'] >= $second and p['state'] == 'stopped'"
# Of one snapshot nobody knows what moved; of two, however near, it is known.
for over in 0 1; do
  output=$(timeout 200 "$stat" dump --over $over "$pid" | python3 -c 'import json, sys
print({str(q["moved"]) for q in json.load(sys.stdin)["processes"][0]["contexts"][0]["storages"][0]["queues"]})' 2>&1)
  [ "$output" = "{'$([ $over = 0 ] && echo None || echo False)'}" ]
  report $? "what moved in $over ms" "$output"
done
# Two snapshots are as far apart as was asked for, if not further.
begin=$(date +%s%N); timeout 200 "$stat" dump --over 1200 "$pid" >/dev/null; end=$(date +%s%N)
[ $((end - begin)) -ge 1200000000 ]; report $? "1200 ms apart" "$(((end - begin) / 1000000)) ms"
documented='[k for k in set(keys(d)) if f"`{k}`" not in open("'"$docs"'").read()] == [] and len(set(keys(d))) >= 55'
seen "docs/hardware.md has every key" "$pid" "$documented"

# Its file, as other versions, other processes and a broken disk might have left it.
file=$folder/$pid-1 saved=$work/saved
cp "$file" "$saved"
sed 's/^abi .*/abi 1/' "$saved" >"$file"; text "another version" 7 'runs another version of weir: ABI 1 and layout 4' dump "$pid"
text "is listed" 0 'another version of weir' list
sed 's/^weir-context .*/weir-context 9/' "$saved" >"$file"; text "another layout" 7 'and layout 9, this weir-stat knows' dump "$pid"
head -c 150 "$saved" >"$file"; text "half a file" 6 'is damaged' dump "$pid"
for bad in 's/^queues .*/queues 0x1000 3 7/' 's/^queues .*/queues 0x1000 99999999 8/' 's/^queues.*//' 's/^pid .*/pid 1/' 's/^device .*//' 's/^late .*/late what/' 's/^end//'; do
  sed "$bad" "$saved" >"$file"; text "damaged: $bad" 6 'is damaged' dump "$pid"
done
: >"$file"; text "an empty file" 6 'is damaged' dump "$pid"
head -c 3000 /dev/urandom >"$file"; text "rubbish" 6 'is damaged' dump "$pid"
sed 's/^queues [^ ]*/queues 0x1000/' "$saved" >"$file"
seen "an address that is none" "$pid" 's["words"] == "not readable from outside" and q == [] and s["queue_count"] == 3 and s["late"] == 0'
sed 's/^shared .*/shared 0/' "$saved" >"$file"
seen "words on a device" "$pid" 's["words"] == "not readable from outside" and q == [] and s["depth"] == 8 and c["caches"] == [] and s["aborted"] == 0'
address=$(awk '/^queues/{print $2}' "$saved")
sed "s/^shared .*/shared 0/; s/^late \([^ ]*\) \([^ ]*\) [^ ]* /late \1 \2 $address /" "$saved" >"$file" # in the place of a copy, which is as good
seen "words on a device that the watchdog copied" "$pid" 's["words"] == "copied by the watchdog" and q[0]["tail"] == 14 and q[0]["in_use"] is None and q[0]["moved"] is None
  and q[0]["steady"] is None and q[1]["oldest"] is None and oldest(q[0])["slot"] == 5 and oldest(q[0])["cid"] == 13 and oldest(q[0])["lba"] == 13 and oldest(q[0])["age_ms"] > 0'
# Those of another process of that number, before and between two of its own.
cp "$saved" "$file"
for number in 0 2; do sed "s/^start .*/start 5/; s/^number .*/number $number/" "$saved" >"$folder/$pid-$number"; done
sed 's/^number .*/number 3/' "$saved" >"$folder/$pid-3"
[ "$(timeout 600 "$stat" dump | grep -c "\"pid\": $pid,")" = 1 ]; report $? "a process is dumped once"
[ "$(timeout 600 "$stat" list | grep -cE "^ *$pid ")" = 1 ]; report $? "and listed once"
rm -f "$folder/$pid-0" "$folder/$pid-2" "$folder/$pid-3"
# Of several processes one that cannot be shown is how it ends, and the others are shown. (Others' may come and go meanwhile.)
first=$pid
fixture_ read 1 'virt:1M?block=512&timeout_ms=0&fault=drop:count=1'
cp "$saved" "$file"
lower=$((first < pid ? first : pid)) higher=$((first < pid ? pid : first))
: >"$folder/$lower-1"
for _ in {1..20}; do
  output=$(timeout 600 "$stat" dump 2>&1); rc=$?
  [ $rc != 6 ] || break
done
[ $rc = 6 ] && python3 -c 'import json, sys
rows = {row["pid"]: row for row in json.loads(sys.argv[1])["processes"]}
lower, higher = rows[int(sys.argv[2])], rows[int(sys.argv[3])]
assert "is damaged" in lower["error"] and lower["contexts"] == [] and higher["error"] is None and len(higher["contexts"]) == 1' "$output" $lower $higher
report $? "one damaged file of several processes" "status $rc: $output"
[ $lower = "$first" ] || gone "$lower"
[ $higher = "$first" ] || gone "$higher"
pid=$first
sed 's/^start .*/start 5/' "$saved" >"$file"; text "another process of that number" 6 'is not the one that left' dump "$pid"
unlisted "is not listed" "$pid"
[ ! -e "$file" ]; report $? "and its file removed" "$(ls -la "$folder")"
gone "$pid"

# Blocks have numbers of 64 bits.
fixture_ read 1 'virt:16T?block=512&content=address&timeout_ms=0&fault=drop:count=1' 30064771079
seen "a block beyond 32 bits" "$pid" 'oldest(q[0])["lba"] == 30064771079 and oldest(q[0])["blocks"] == 1'
gone "$pid"

# A controller that hangs for good, one that stalls; and one that has died.
fixture_ read 5 'virt:1M?block=512&timeout_ms=0&fault=hung:after=3:count=1'
seen "a hung controller" "$pid" 'oldest(q[0])["lba"] == 3 and oldest(q[0])["slot"] == 3 and oldest(q[0])["age_ms"] > 0 and q[0]["with_controller"] == 1'
gone "$pid"
fixture_ read 5 'virt:1M?block=512&timeout_ms=0&fault=stall:after=1:us=1000000000:count=1'
seen "a stalled queue" "$pid" 'oldest(q[0])["lba"] in (1, 2) and oldest(q[0])["where"] == "controller" and oldest(q[0])["age_ms"] > 0'
gone "$pid"
fixture_ load 'virt:1M?block=512&timeout_ms=300&fault=hung:after=100:count=1'
seen "a dead one" "$pid" 'all(x["dead"] and "the controller failed" in x["dead"] for x in q) and s["late"] >= 1'
gone "$pid"

# Storages come and go while it is looked at.
fixture_ churn 'virt:1M?block=512'
bad=
for _ in $(seq 10); do
  timeout 300 "$stat" dump --over 0 "$pid" >"$work/one" 2>"$work/two" && python3 -c '
import json, sys
s = json.load(open(sys.argv[1]))["processes"][0]["contexts"][0]["storages"]
assert 1 <= len(s) <= 2 and all(len(x["queues"]) == 3 or x["words"] != "live" for x in s) and s[-1]["words"] == "live", s' "$work/one" ||
    bad="$bad $(cat "$work/one" "$work/two")"
  timeout 300 "$stat" list | grep -q "$pid.*virt:1M" || bad="$bad not listed"
done
[ -z "$bad" ]; report $? "storages that come and go" "$bad"
gone "$pid"
fixture_ read 3 'virt:1M?block=512'; wait "$pid"
[ -z "$(ls -A "$folder" | grep "^$pid-")" ]; report $? "closed: no file is left" "$(ls -la "$folder")"

# A folder that cannot be had, or is not the user's alone, is not used; the program does not mind.
timeout 300 "$stat" list >/dev/null; rmdir "$folder" 2>/dev/null
echo "not a folder" >"$folder"; fixture_ read 3 'virt:1M?block=512'; wait "$pid"
report $? "no folder: the program runs" "$(cat "$work/errors")"
rm -f "$folder"; mkdir -m 755 "$folder"; fixture_ load 'virt:1M?block=512'
[ -z "$(ls -A "$folder")" ]; report $? "a folder that others may look into is not used" "$(ls -la "$folder")"
seen "but the next one" "$pid" 's["words"] == "live"'
gone "$pid"; timeout 300 "$stat" list >/dev/null; rm -rf "$folder"

# Others' processes, and what the system does not permit.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && cp "$stat" "$work/stat" && mkdir -m 777 "$work/nobody" &&
    timeout 100 setpriv --reuid 65534 --clear-groups "$stat" --version >/dev/null 2>&1; then
  nobody() { timeout 300 setpriv --reuid 65534 --clear-groups env XDG_RUNTIME_DIR="$work/nobody" "$@"; }
  fixture_ load 'virt:1M?block=512'
  output=$(nobody "$stat" dump "$pid" 2>&1); rc=$?
  [ $rc = 5 ] && grep -q 'not permitted: process .* is of user root; run weir-stat as that user' <<<"$output"
  report $? "another user's process" "status $rc: $output"
  # Root sees everybody's, and removes its own alone.
  others=/dev/shm/weir-stat-test-$$
  mkdir -m 700 "$others" && sed 's/^pid .*/pid 999999999/' "$folder/$pid-1" >"$others/999999999-1" && chown -R 65534 "$others"
  timeout 600 "$stat" list >/dev/null; [ -e "$others/999999999-1" ]; report $? "another user's stale file stays"
  rm -rf "$others"
  output=$(nobody "$stat" list 2>&1); grep -q 'no process of this user' <<<"$output"; report $? "is not listed" "$output"
  output=$(nobody "$stat" dump 2>&1); rc=$?; [ $rc = 4 ] && grep -q 'no process of this user' <<<"$output"; report $? "no context, so nothing to dump" "status $rc: $output"
  cp "$folder/$pid-1" "$work/template"; chmod 644 "$work/template"
  cat >"$work/guarded.py" <<'EOF_GUARDED'
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(4, 0) # PR_SET_DUMPABLE
folder = sys.argv[2] + "/weir"
os.mkdir(folder, 0o700)
start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
text = [f"pid {os.getpid()}" if l.startswith("pid ") else f"start {start}" if l.startswith("start ") else l for l in open(sys.argv[1]).read().splitlines()]
open(f"{folder}/{os.getpid()}-1", "w").write("\n".join(text) + "\n")
print(os.getpid(), flush=True)
time.sleep(3600)
EOF_GUARDED
  nobody python3 "$work/guarded.py" "$work/template" "$work/nobody" >"$work/guarded" 2>"$work/errors" & beds+=("$!")
  for _ in $(seq 1200); do [ -s "$work/guarded" ] && break; sleep 0.1; done
  guarded=$(cat "$work/guarded"); beds+=("$guarded")
  output=$(nobody "$stat" dump "$guarded" 2>&1); rc=$?
  [ $rc = 5 ] && grep -q "not permitted to read process $guarded: .*ptrace" <<<"$output"
  report $? "a process that may not be read" "status $rc: $output; $(cat "$work/errors")"
  output=$(nobody "$stat" dump 2>/dev/null); rc=$?
  [ $rc = 5 ] && python3 -c 'import json, sys; assert "not permitted" in json.loads(sys.argv[1])["processes"][0]["error"]' "$output"
  report $? "is told of in the JSON of all" "status $rc: $output"
  kill -9 "$guarded"; gone "$pid"
else
  for name in "another user's process" "another user's stale file stays" "is not listed" "no context, so nothing to dump" "a process that may not be read" "is told of in the JSON of all"; do
    skip "$name" "cannot be another user here"
  done
fi
output=$(cat "$work/all" "$work/errors" | grep -A20 Sanitizer) # in a build with one
[ -z "$output" ]; report $? "no sanitizer reports anything of those that were looked at" "$output"
echo "1..$count"
