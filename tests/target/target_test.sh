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
refuses 'nothing to serve' 2 'usage:'
refuses 'no NQN' 1 'is no NQN' "${any[@]}" --subsystem disk1=virt:1M
refuses 'no storage' 2 'write NQN=STORAGE' --subsystem "$nqn"
refuses 'no such file' 1 "$work/none" "${any[@]}" --subsystem "$nqn=file:$work/none"
refuses 'an SSD that there is not' 1 'there is no PCI device' "${any[@]}" --subsystem "$nqn=nvme:ffff:1f:1f.7"
refuses 'a storage of no scheme' 1 'no transport for "disk:"' "${any[@]}" --subsystem "$nqn=disk:1"
refuses 'a subsystem twice' 1 'is named twice' "${any[@]}" --subsystem "$nqn=virt:1M" --subsystem "$nqn=virt:1M"
refuses 'the discovery subsystem' 1 'served anyway' "${any[@]}" --subsystem nqn.2014-08.org.nvmexpress.discovery=virt:1M
refuses 'no address' 1 'cannot listen at "rdma://x"' --listen rdma://x --subsystem "$nqn=virt:1M"
refuses 'an address of another machine' 1 'cannot listen at tcp://192.0.2.1:4420' --listen tcp://192.0.2.1:4420 --subsystem "$nqn=virt:1M"
refuses 'a host without a subsystem' 2 'name the subsystem first' --host "$nqn"
refuses 'no threads' 2 'give 1 to' --threads 0
echo '{ "subsystems": [ { "nqn": "x", "namespace": [] } ] }' >"$work/bad.json"
refuses 'a key that there is not' 2 'a subsystem has the keys' --config "$work/bad.json"
echo '{ "subsystems": ' >"$work/bad.json"
refuses 'no JSON' 2 'bad.json, line' --config "$work/bad.json"
echo "1..$count"
