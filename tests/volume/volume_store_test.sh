#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Several daemons and one etcd: one is active; another takes over where it is killed, stands still, or ends; what the array has stays.
# usage: volume_store_test.sh WEIR-TARGET WEIR-VOLUMED WEIR-VOLUME
# shellcheck disable=SC2181
set -u
target=$1 volumed=$2 volume=$3
command -v etcd >/dev/null || { echo '1..0 # SKIP etcd is not installed (apt-get install etcd-server)'; exit 0; }
work=$(mktemp -d)
export XDG_CONFIG_HOME=$work
all=()
trap 'kill -CONT "${all[@]}" 2>/dev/null; kill -9 "${all[@]}" 2>/dev/null; rm -rf "$work"' EXIT
count=0

report() { # GOOD NAME [FILE]
  count=$((count + 1))
  if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; [ -z "${3-}" ] || sed 's/^/# /' "$3"; fi
}

refused() { # refused NAME WORDS ARGUMENT...: the daemon ends with a sentence that has the words
  timeout 60 "$volumed" --engine tcp://127.0.0.1:1/nqn.x "${@:3}" >"$work/refused" 2>&1
  [ $? != 0 ] && grep -qF -- "$2" "$work/refused"
  report $? "$1" "$work/refused"
}

runs() { [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1)" != Z ] && [ -e "/proc/$1" ]; }

wait_for() { # FILE WORDS PROCESS
  until grep -q "$2" "$1" 2>/dev/null; do runs "$3" || return 1; sleep 0.05; done
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_etcd() {
  for _ in 1 2 3 4 5; do # somebody else may take a port first
    port=$(free_port) peers=$(free_port)
    etcd --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" \
      --listen-peer-urls "http://127.0.0.1:$peers" --initial-advertise-peer-urls "http://127.0.0.1:$peers" \
      --initial-cluster "default=http://127.0.0.1:$peers" >"$work/etcd.log" 2>&1 & etcd=$!
    all+=($!)
    wait_for "$work/etcd.log" 'ready to serve client requests' $! && return
    rm -rf "$work/etcd"
  done
  sed 's/^/# /' "$work/etcd.log"
  exit 1
}

engines=()
for i in 1 2 3; do
  "$target" --engine --listen tcp://127.0.0.1:0 --subsystem "nqn.2026-11.org.example:e$i=virt:16M" >"$work/e$i" 2>&1 &
  all+=($!)
  wait_for "$work/e$i" '^weir-target: serving' $!
  engines+=(--engine "$(sed -n 's,.*nvmf:\(tcp://[^/]*/nqn.*\),\1,p' "$work/e$i")")
done

start() { # start NAME: a daemon, which is ${process[NAME]}
  : >"$work/$1"
  "$volumed" "${engines[@]}" --socket "$work/$1.socket" --lease-seconds 30 --store "etcd://127.0.0.1:1,127.0.0.1:$port/array" >"$work/$1" 2>&1 &
  process[$1]=$!
  all+=($!)
}

active() { # active NAME: it is, and says so
  wait_for "$work/$1" '^weir-volumed: serving' "${process[$1]}"
}

declare -A process
refused 'a store of another kind' 'a store is etcd://HOST:PORT' --store zk://127.0.0.1:1
refused 'a store without a port' 'has no port' --store etcd://127.0.0.1
refused 'a name that is too long' 'at most' --store "etcd://127.0.0.1:1/$(printf 'x%.0s' {1..300})"
start_etcd
v=("$volume" --daemon "$work/a.socket,$work/b.socket,$work/c.socket,$work/d.socket")
start a
active a && "${v[@]}" create kept 4M --replicas 2 >"$work/out" 2>&1
report $? 'the first daemon is active' "$work/a"
start b
wait_for "$work/b" "standing by: the daemon at $work/a.socket of .* is active" "${process[b]}" && [ ! -e "$work/b.socket" ]
report $? 'a second one stands by, and names the first' "$work/b"
kill -9 "${process[a]}"
active b && "${v[@]}" list 2>&1 | grep -q kept
report $? 'it takes over where the first one is killed; weir-volume finds it by a list of addresses' "$work/b"
start c
wait_for "$work/c" 'standing by' "${process[c]}"
kill -STOP "${process[b]}"
active c && "$volume" --daemon "$work/c.socket" create more 4M >"$work/out" 2>&1
report $? 'it takes over where the second one stands still' "$work/c"
kill -CONT "${process[b]}"
wait "${process[b]}"
[ $? = 1 ] && grep -q 'another daemon may be active; this one ends' "$work/b"
report $? 'which ends as it goes on' "$work/b"
rm -f "$work/b.socket"
start d
wait_for "$work/d" 'standing by' "${process[d]}"
kill -TERM "${process[c]}"
wait "${process[c]}" && active d && "${v[@]}" list 2>&1 | grep -q more
report $? 'one that ends hands over, and all volumes are there' "$work/d"
kill -TERM "$etcd"
wait "${process[d]}"
[ $? = 1 ] && grep -q 'another daemon may be active; this one ends' "$work/d"
report $? 'without the store nobody is active' "$work/d"
start e
wait_for "$work/e" 'standing by' "${process[e]}" && kill -TERM "${process[e]}" && wait "${process[e]}"
report $? 'one that stands by ends when it is told to' "$work/e"
echo "1..$count"
