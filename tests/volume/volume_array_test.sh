#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An array on loopback: four engines, a daemon, volumes of one to four replicas. What lanes write they read again, through caches, too,
# while an engine is killed; what cannot be had says why. Prints TAP.
# usage: volume_array_test.sh WEIR-TARGET WEIR-VOLUMED WEIR-VOLUME WEIR-PERF WEIR-CHECK WEIR-FABRICS BATCH-TEST
set -u
target=$1 volumed=$2 volume=$3 perf=$4 check=$5 fabrics=$6 batch=$7
dir=$(mktemp -d)
export WEIR_BACKEND=cpu XDG_CONFIG_HOME=$dir XDG_RUNTIME_DIR=$dir WEIR_VOLUMED=$dir/socket
chmod 700 "$dir"
nqn=nqn.2026-11.org.example:engine
declare -A engines
daemon=
trap 'for pid in "${engines[@]}" $daemon; do kill -KILL "$pid" 2>/dev/null; done; wait 2>/dev/null; rm -rf "$dir"' EXIT
count=0

report() { # GOOD NAME [WHAT]
  count=$((count + 1))
  if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; printf '%s\n' "${3-}" | sed 's/^/# /'; fi
}

# wait_for PID FILE PATTERN
wait_for() {
  until grep -q "$3" "$2" 2>/dev/null; do
    kill -0 "$1" 2>/dev/null || { sed 's/^/# /' "$2"; return 1; }
    sleep 0.05
  done
}

arguments=()
for i in 1 2 3 4; do
  "$target" --listen tcp://127.0.0.1:0 --engine --subsystem "$nqn$i=virt:64M?block=4096" >"$dir/engine$i" 2>&1 &
  engines[$i]=$!
  wait_for "${engines[$i]}" "$dir/engine$i" '^weir-target: serving' || exit 1
  port=$(sed -n 's/.* nvmf:tcp:\/\/127.0.0.1:\([0-9]*\)\/.*/\1/p' "$dir/engine$i" | head -n 1)
  arguments+=(--engine "tcp://127.0.0.1:$port/$nqn$i,domain=$i")
done
"$volumed" "${arguments[@]}" --socket "$WEIR_VOLUMED" >"$dir/daemon" 2>&1 &
daemon=$!
wait_for "$daemon" "$dir/daemon" '^weir-volumed: serving' || exit 1

tool() { timeout 60 "$volume" "$@"; } # the daemon is $WEIR_VOLUMED's

for replicas in 1 2 3 4; do
  { tool create "v$replicas" 8M --replicas "$replicas" && tool share "v$replicas"; } >"$dir/output" 2>&1
  report $? "a volume of $replicas replicas" "$(cat "$dir/output")"
done

# reached COMMAND...: $output and $?. An engine has a second to take a client in, and may be held for longer: then once more.
reached() {
  local rc tries
  for tries in {1..20}; do
    output=$("$@" 2>&1); rc=$?
    grep -qE 'none of its .* engines is reached: .*(timed out|no answer within)' <<<"$output" || break
  done
  return $rc
}

verified() { # verified NAME URI ARGUMENTS...: what is written is read again
  local name=$1 uri=$2 output; shift 2
  reached timeout 300 "$perf" "$uri" --runs=1 --runtime=0.2 --verify --size=4M "$@"
  grep -q '^verified *0 of [1-9]' <<<"$output" && grep -q '^errors *0 of [1-9]' <<<"$output"
  report $? "$name" "$output"
}

verified 'one replica' vol:v1 --rw=randrw
verified 'two replicas, longer than a stripe unit' vol:v2 --rw=randrw --bs=128K --iodepth=8
verified 'three replicas, lanes move the data' 'vol:v3?mover=pull' --rw=randrw --bs=8K
verified 'four replicas, two controller threads' 'vol:v4?threads=2' --rw=randrw --bs=16K
verified 'through a cache' vol:v2 --rw=randread --cached=1M
verified 'written through a cache' vol:v2 --rw=randwrite --cached=1M
for replicas in 1 2 3 4; do verified "lanes choose among $replicas engines" "vol:v$replicas?lanes=1" --rw=randrw; done
verified 'lanes choose engines, through a cache' 'vol:v2?lanes=1' --rw=randread --cached=1M
verified 'lanes choose engines, written through a cache' 'vol:v3?lanes=1' --rw=randwrite --cached=1M
verified 'lanes choose engines, and move the data' 'vol:v2?lanes=1&mover=pull' --rw=randrw --bs=8K

output=$(WEIR_TEST_STORAGE=vol:v2 WEIR_TEST_CONTEXT=cpu timeout 300 "$batch" 2>&1)
report $? 'batched I/O of lanes' "$output"
output=$(WEIR_TEST_STORAGE='vol:v2?lanes=1' WEIR_TEST_CONTEXT=cpu timeout 300 "$batch" 2>&1)
report $? 'batched I/O where lanes choose engines' "$output"

output=$(timeout 60 "$check" --storage 'vol:v2?ro=1' 2>&1) && grep -q 'volume of 4 engines, 2 replicas, 8388608 bytes' <<<"$output"
report $? 'weir-check reaches it' "$output"
output=$(timeout 60 "$check" --storage 'vol:none' 2>&1)
[ $? = 3 ] && grep -q 'refuses volume_open' <<<"$output"
report $? 'a volume that is not there' "$output"
output=$(timeout 60 "$check" --storage 'vol:v2?block=512' 2>&1)
[ $? = 3 ] && grep -q 'blocks are 4096 bytes' <<<"$output"
report $? 'blocks of another size' "$output"
output=$(WEIR_VOLUMED='' timeout 60 "$check" --storage 'vol:v2' 2>&1)
[ $? = 3 ] && grep -q 'it has no daemon' <<<"$output"
report $? 'no daemon is named' "$output"

# An engine is killed with commands under way, of lanes that choose engines.
# On a busy machine the load may have ended before: then once more, for longer.
for seconds in 10 60 300; do
  (timeout 600 "$perf" 'vol:v2?lanes=1' --runs=1 --runtime=$seconds --verify --size=4M --rw=randrw --iodepth=16 >"$dir/load" 2>&1) &
  load=$!
  while kill -0 "$load" 2>/dev/null && tool lease v2 2>/dev/null | grep -q 'nobody'; do sleep 0.05; done
  output=$(timeout 60 "$perf" vol:v2 --runs=1 --runtime=0.1 --rw=randwrite 2>&1)
  [ $? != 0 ] && grep -q 'refuses volume_open' <<<"$output"
  refused=$?
  sleep 1
  kill -0 "$load" 2>/dev/null && break
  wait "$load"
done
kill -0 "$load" 2>/dev/null
report $? 'an engine is killed while the load runs' "$(cat "$dir/load")"
report $refused 'a second writer is refused' "$output"
kill -KILL "${engines[3]}"
wait "$load"
grep -q '^verified *0 of [1-9]' "$dir/load" && grep -q '^errors *0 of [1-9]' "$dir/load"
report $? 'a killed engine costs no data and no error' "$(cat "$dir/load")"
verified 'three engines are left' vol:v3 --rw=randrw

kill -KILL "$daemon"
wait "$daemon" 2>/dev/null # until then its socket takes connections
output=$(timeout 60 "$check" --storage 'vol:v2' 2>&1)
[ $? = 3 ] && grep -q 'does weir-volumed run?' <<<"$output"
report $? 'the daemon is gone' "$output"

# Engines that want proof: of the daemon, and of clients.
if "$fabrics" secret >/dev/null 2>&1; then
  (umask 077; for who in manager client stranger other engine; do "$fabrics" secret >"$dir/$who"; done)
  "$target" --listen tcp://127.0.0.1:0 --engine --manager "$nqn.manager" --subsystem "$nqn.5=virt:64M?block=4096" \
    --host "$nqn.manager" --secret "$dir/manager" --controller-secret "$dir/engine" --host "$nqn.client" --secret "$dir/client" --controller-secret "$dir/engine" --host "$nqn.other" --secret "$dir/other" >"$dir/engine5" 2>&1 &
  engines[5]=$!
  wait_for "${engines[5]}" "$dir/engine5" '^weir-target: serving' || exit 1
  port=$(sed -n 's/.* nvmf:tcp:\/\/127.0.0.1:\([0-9]*\)\/.*/\1/p' "$dir/engine5" | head -n 1)
  rm -f "$WEIR_VOLUMED"
  proving=("$volumed" --alone --engine "tcp://127.0.0.1:$port/$nqn.5" --socket "$WEIR_VOLUMED" --hostnqn "$nqn.manager" --secret "$dir/manager")
  "${proving[@]}" --controller-secret "$dir/stranger" >"$dir/daemon5" 2>&1 &
  daemon=$!
  wait_for "$daemon" "$dir/daemon5" '^weir-volumed: '
  grep -q '^weir-volumed: waiting: 0 of 1 engines answer' "$dir/daemon5"
  report $? 'a daemon waits where an engine does not authenticate' "$(cat "$dir/daemon5")"
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  rm -f "$WEIR_VOLUMED"
  "${proving[@]}" --controller-secret "$dir/engine" >"$dir/daemon5" 2>&1 &
  daemon=$!
  wait_for "$daemon" "$dir/daemon5" '^weir-volumed: serving' || exit 1
  { tool create known 8M --replicas 1 && tool share known --host "$nqn.client"; } >"$dir/output" 2>&1
  report $? 'a daemon that authenticates' "$(cat "$dir/output")"
  verified 'a client that authenticates' "vol:known?hostnqn=$nqn.client&dhchap_secret=$dir/client" --rw=randrw
  reached timeout 60 "$check" --storage "vol:known?hostnqn=$nqn.client&dhchap_secret=$dir/stranger&wait_ms=500"
  [ $? = 3 ] && grep -q 'the secrets differ\|does not believe' <<<"$output"
  report $? 'a client with another secret' "$output"
  head -c 100000 /dev/urandom >"$dir/in"
  mine=(--hostnqn "$nqn.client" --secret "$dir/client")
  { tool put known "$dir/in" "${mine[@]}" && tool get known "$dir/back" "${mine[@]}" && cmp -n 100000 "$dir/in" "$dir/back"; } >"$dir/output" 2>&1
  report $? 'a file that goes there and comes back' "$(cat "$dir/output")"
  tool get known "$dir/back" "${mine[@]}" --controller-secret "$dir/engine" >"$dir/output" 2>&1 && cmp -n 100000 "$dir/in" "$dir/back"
  report $? 'and from an engine that authenticates, too' "$(cat "$dir/output")"
  reached tool get known "$dir/back" "${mine[@]}" --controller-secret "$dir/stranger"
  [ $? = 1 ] && grep -q 'does not prove' <<<"$output"
  report $? 'not from one that does not' "$output"
  # A host with a key and a volume of its own, and the volume of another.
  { tool create others 8M --replicas 1 && tool share others --host "$nqn.other"; } >"$dir/output" 2>&1
  other="hostnqn=$nqn.other&dhchap_secret=$dir/other"
  verified 'another client that authenticates' "vol:others?$other" --rw=randrw
  output=$(timeout 60 "$check" --storage "vol:known?$other" 2>&1)
  [ $? = 3 ] && grep -q "host $nqn.other may not read volume 'known'" <<<"$output"
  report $? "its volume is not the other's" "$output"
  reached timeout 60 "$check" --storage "vol:known?hostnqn=$nqn.client&dhchap_secret=$dir/other&wait_ms=500"
  [ $? = 3 ] && grep -q "does not believe that this is host $nqn.client" <<<"$output"
  report $? "under the other's name, with its own key" "$output"
  raw="nvmf:tcp://127.0.0.1:$port/$nqn.5?$other"
  for kind in randread randwrite; do
    output=$(timeout 60 "$perf" "$raw" --size=4M --runs=1 --runtime=0.1 --rw=$kind 2>&1)
    [ $? = 1 ] && grep -q 'there is no such volume (NVMe status 7:c0)' <<<"$output" &&
      grep -qE 'FAILED +([0-9]+) of \1 requests' <<<"$output"
    report $? "commands that name no volume, $kind" "$output"
  done
  output=$(timeout 60 "$check" --storage "nvmf:tcp://127.0.0.1:$port/$nqn.5?hostnqn=$nqn.eve" 2>&1)
  [ $? = 3 ] && grep -q "does not accept host $nqn.eve" <<<"$output"
  report $? 'a stranger' "$output"
  output=$(timeout 60 "$check" --storage "nvmf:tcp://127.0.0.1:$port/$nqn.5?hostnqn=$nqn.client" 2>&1)
  [ $? = 3 ] && grep -q 'give dhchap_secret=FILE' <<<"$output"
  report $? "a stranger by the client's name, without a key" "$output"
else
  report 0 'engines that want proof # SKIP this build has no OpenSSL'
fi
echo "1..$count"
