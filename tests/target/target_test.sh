#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-target as a person runs it: what it says, what it refuses, its JSON file, and its end. usage: target_test.sh WEIR-TARGET
set -u
. "$(dirname "$0")/../rig/report.sh"
target=$1
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null; rm -rf "$work"' EXIT

refuses() { # refuses NAME STATUS WORDS ARGUMENTS...
  local name=$1 status=$2 words=$3 output rc; shift 3
  output=$(timeout 60 "$target" "$@" 2>&1); rc=$?
  [ "$rc" = "$status" ] && grep -qF -- "$words" <<<"$output"
  report $? "$name" "status $rc: $output"
}

serves() { # serves NAME WORDS ARGUMENTS...: it says WORDS, and ends with 0 on SIGTERM
  local name=$1 words=$2 rc; shift 2
  : >"$work/out"
  "$target" "$@" >"$work/out" 2>&1 & server=$!
  until grep -q '^weir-target: serving' "$work/out" || ! kill -0 $server 2>/dev/null; do sleep 0.05; done
  kill -TERM $server
  wait $server; rc=$?
  server=
  [ $rc = 0 ] && grep -qF -- "$words" "$work/out" && grep -q '^weir-target: ended by' "$work/out"
  report $? "$name" "status $rc: $(cat "$work/out")"
}

nqn=nqn.2026-11.org.example:disk1
any=(--listen tcp://127.0.0.1:0)
truncate -s 1M "$work/a.img"
serves 'a file and memory' "namespace 1 is file:$work/a.img (1M" "${any[@]}" --subsystem "$nqn=file:$work/a.img,virt:2M"
serves 'its port is told' 'at tcp://127.0.0.1:' "${any[@]}" --subsystem "$nqn=virt:2M"
cat >"$work/good.json" <<END
{ "listen": ["tcp://127.0.0.1:0"], "threads": 2, "queues": 4,
  "subsystems": [ { "nqn": "$nqn", "namespaces": ["virt:1M", { "storage": "file:$work/a.img", "read_only": true }],
                    "hosts": ["nqn.2026-11.org.example:host"] } ] }
END
serves 'a JSON file' '1M, read only' --config "$work/good.json"
for engine in true false; do
  printf '{ "listen": ["tcp://127.0.0.1:0"], "subsystems": [ { "nqn": "%s", "namespaces": ["virt:1M"], "engine": %s } ] }' \
    "$nqn" $engine >"$work/engine.json"
  serves "a subsystem's \"engine\" in the file: $engine" "is virt:1M ($([ $engine = true ] && echo volumes || echo 1M), " --config "$work/engine.json"
done
refuses 'nothing to serve' 2 'a subsystem is missing'
refuses 'no NQN' 1 'is no NQN' "${any[@]}" --subsystem disk1=virt:1M
longest=nqn.$(printf 'x%.0s' $(seq 219)) # 223 characters
serves 'the longest NQN' 'at tcp://127.0.0.1:' "${any[@]}" --subsystem "$longest=virt:1M"
refuses 'an NQN of one character more' 1 'has 1 to 223 characters' "${any[@]}" --subsystem "${longest}x=virt:1M"
refuses 'no storage' 2 'write NQN=STORAGE' --subsystem "$nqn"
refuses 'no such file' 1 "$work/none" "${any[@]}" --subsystem "$nqn=file:$work/none"
refuses 'an SSD that there is not' 1 'there is no PCI device' "${any[@]}" --subsystem "$nqn=nvme:ffff:1f:1f.7"
refuses 'a storage of no scheme' 1 'no transport for "disk:"' "${any[@]}" --subsystem "$nqn=disk:1"
refuses 'a subsystem twice' 1 'is named twice' "${any[@]}" --subsystem "$nqn=virt:1M" --subsystem "$nqn=virt:1M"
refuses 'the discovery subsystem' 1 'served anyway' "${any[@]}" --subsystem nqn.2014-08.org.nvmexpress.discovery=virt:1M
refuses 'no address' 1 'cannot listen at "ib://x"' --listen ib://x --subsystem "$nqn=virt:1M"
for port in 65536 99999 4294967296 -1 0x10 http 1x; do
  refuses "port $port" 1 'a port is a number from 0 to 65535' --listen "tcp://127.0.0.1:$port" --subsystem "$nqn=virt:1M"
done
refuses 'an address of another machine' 1 'cannot listen at tcp://192.0.2.1:4420' --listen tcp://192.0.2.1:4420 --subsystem "$nqn=virt:1M"
refuses 'a host without a subsystem' 2 'name the subsystem first' --host "$nqn"
refuses 'no threads' 2 'from 1 to' --threads 0
echo '{ "subsystems": [ { "nqn": "x", "namespace": [] } ] }' >"$work/bad.json"
refuses 'a key that there is not' 2 'a subsystem has the keys' --config "$work/bad.json"
for key in threads queues; do
  echo "{ \"$key\": -1, \"subsystems\": [ { \"nqn\": \"$nqn\", \"namespaces\": [\"virt:1M\"] } ] }" >"$work/bad.json"
  refuses "fewer $key than none" 2 'it has the keys "listen" and "subsystems"' --config "$work/bad.json"
  sed -i 's/-1/4294967297/' "$work/bad.json"
  refuses "more $key than 32 bits hold" 2 'it has the keys "listen" and "subsystems"' "${any[@]}" --config "$work/bad.json"
done
echo "{ \"queues\": 65536, \"subsystems\": [ { \"nqn\": \"$nqn\", \"namespaces\": [\"virt:1M\"] } ] }" >"$work/bad.json"
refuses 'more queues than have numbers' 1 '65536 I/O queues: give 1 to 65535' "${any[@]}" --config "$work/bad.json"
echo "{ \"subsystems\": [ { \"nqn\": \"$nqn\", \"namespaces\": [\"virt:1M\"], \"manager\": \"m\" } ] }" >"$work/bad.json"
refuses 'a manager by no NQN' 1 '"m" is no NQN' "${any[@]}" --config "$work/bad.json"
echo '{ "subsystems": ' >"$work/bad.json"
refuses 'no JSON' 2 'bad.json, line' --config "$work/bad.json"
refuses 'an ANA state without an address' 2 'name the address first' --ana optimized
refuses 'an ANA state that there is not' 2 'it is optimized, non-optimized' --listen tcp://127.0.0.1:0 --ana fast
echo '{ "listen": [ { "address": "tcp://127.0.0.1:0", "state": 1 } ], "subsystems": [] }' >"$work/bad.json"
refuses 'a key of an address that there is not' 2 'has the keys "address" and perhaps "ana"' --config "$work/bad.json"

refuses 'a TLS key of nobody' 2 'name the subsystem first' --tls-psk "$work/none.psk"
refuses 'a TLS key that there is not' 1 "$work/none.psk" "${any[@]}" --subsystem "$nqn=virt:1M" --tls-psk "$work/none.psk"
echo '{ "subsystems": [ { "nqn": "x", "namespaces": [], "hosts": [ { "nqn": "y", "key": "z" } ] } ] }' >"$work/bad.json"
refuses 'a key of a host that there is not' 2 'a host has the keys "nqn" and perhaps' --config "$work/bad.json"

says() { # says NAME WORDS: the target says WORDS, or is given up after a while
  for _ in $(seq 2400); do grep -qF -- "$2" "$work/out" && break; sleep 0.05; done
  grep -qF -- "$2" "$work/out"
  report $? "$1" "$(cat "$work/out")"
}

config() { # config STATE NAMESPACES: the file, written as a whole
  printf '{ "listen": [ { "address": "tcp://127.0.0.1:0", "ana": "%s" } ], "subsystems": [ { "nqn": "%s", "namespaces": [%s] } ] }\n' \
    "$1" "$nqn" "$2" >"$work/next.json" && mv "$work/next.json" "$work/live.json"
}
config optimized '"virt:1M"'
: >"$work/out" # what another one said is not this one's
"$target" --config "$work/live.json" >"$work/out" 2>&1 & server=$!
says 'a file that is read again later' 'weir-target: serving'
config inaccessible '"virt:1M", { "storage": "virt:2M", "attached": false }'
kill -HUP $server
says 'SIGHUP: the file is read again' 'weir-target: read again and changed'
config optimized '"virt:4M"'
kill -HUP $server
says 'SIGHUP: a namespace cannot leave' 'not changed: namespace 2 of '"$nqn"' cannot leave the list'
config optimized '"virt:4M", "virt:2M"'
kill -HUP $server
says 'SIGHUP: a namespace stays what it is' 'not changed: namespace 1 of '"$nqn"' is virt:1M, and cannot become virt:4M'
printf '{ "threads": 2, "listen": ["tcp://127.0.0.1:0"], "subsystems": [ { "nqn": "%s", "namespaces": ["virt:1M", "virt:2M"] } ] }' \
  "$nqn" >"$work/next.json" && mv "$work/next.json" "$work/live.json"
kill -HUP $server
says 'SIGHUP: as many threads as ever' 'not changed: "threads" and "queues" cannot change'
printf '{ "listen": ["tcp://127.0.0.1:0"], "subsystems": [ { "nqn": "%s", "namespaces": ["virt:1M", "virt:2M"], "manager": "%s" } ] }' \
  "$nqn" "$nqn" >"$work/next.json" && mv "$work/next.json" "$work/live.json"
kill -HUP $server
says 'SIGHUP: whoever manages it' 'not changed: "engine" and "manager" of '"$nqn"' cannot change'
echo '{' >"$work/live.json"
kill -HUP $server
says 'SIGHUP: a file that is no JSON' 'live.json, line'
kill -TERM $server; wait $server
report $? 'and it ends as ever' "$(cat "$work/out")"
: >"$work/out"
"$target" "${any[@]}" --subsystem "$nqn=virt:1M" >"$work/out" 2>&1 & server=$!
says 'a target without a file' 'weir-target: serving'
kill -HUP $server
says 'SIGHUP: without a file' 'there is no --config FILE to read again'
kill -TERM $server; wait $server
server=
echo "1..$count"
