#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-volumed and weir-volume as people run them, over engines on loopback: what they say, what they refuse, a daemon that is
# killed and another one. usage: volume_cli_test.sh WEIR-TARGET WEIR-VOLUMED WEIR-VOLUME [LOSING]    LOSING: losing.c, as a library
set -u
target=$1 volumed=$2 volume=$3 losing=${4-}
work=$(mktemp -d)
export XDG_CONFIG_HOME=$work
all=()
trap 'kill -9 "${all[@]}" 2>/dev/null; rm -rf "$work"' EXIT
count=0

report() { # GOOD NAME [WHAT]
  count=$((count + 1))
  if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; printf '%s\n' "${3-}" | sed 's/^/# /'; fi
}

says() { # says NAME STATUS WORDS COMMAND...
  local name=$1 status=$2 words=$3 output rc; shift 3
  output=$(timeout 120 "$@" 2>&1); rc=$?
  [ "$rc" = "$status" ] && grep -qF -- "$words" <<<"$output"
  report $? "$name" "status $rc: $output"
}

wait_for() { # FILE WORDS PROCESS
  until grep -q "$2" "$1" || ! kill -0 "$3" 2>/dev/null; do sleep 0.05; done
}

start_daemon() {
  : >"$work/daemon" # before anybody waits for what it has
  "$volumed" "$@" --socket "$work/socket" --lease-seconds 30 >"$work/daemon" 2>&1 & daemon=$!
  all+=($!)
  wait_for "$work/daemon" '^weir-volumed: serving' $!
}

start_engine() { # start_engine NUMBER: it is $last, at ${address[NUMBER]}
  "$target" --engine --listen tcp://127.0.0.1:0 --subsystem "nqn.2026-11.org.example:e$1=virt:16M" >"$work/e$1" 2>&1 &
  all+=($!) last=$!
  wait_for "$work/e$1" '^weir-target: serving' $!
  address[$1]=$(sed -n 's,.*nvmf:\(tcp://[^/]*/nqn.*\),\1,p' "$work/e$1")
}

engines=()
for i in 1 2 3; do
  start_engine $i
  engines+=(--engine "${address[i]}")
done
v=("$volume" --daemon "$work/socket")
says 'no daemon' 1 'does weir-volumed run?' "${v[@]}" list
echo kept >"$work/kept"
says 'nothing to read a file from' 1 'does weir-volumed run?' "${v[@]}" get a "$work/kept"
[ "$(cat "$work/kept")" = kept ]
report $? 'and the file keeps what it held'
says 'an engine to add and one to remove' 2 'give one of them' "${v[@]}" engines --add "tcp://127.0.0.1:1/nqn.x" --remove 1
says 'a port that there is not' 1 'a port is a number from 0 to 65535' "$volume" --daemon 127.0.0.1:65536 list
says 'no engine' 2 'an engine is missing' "$volumed"
says 'an engine that is none' 2 'write tcp://HOST:PORT/NQN' "$volumed" --engine 127.0.0.1
says 'a key that there is not' 2 'has no key' "$volumed" --engine "${address[1]},color=1"
says 'a weight that is 1 in its low bits' 2 'is not from 1 to 65535' "$volumed" --engine "${address[1]},weight=-18446744073709551615"
says 'a port to listen at that there is not, before engines are asked' 2 'a port is a number from 0 to 65535' \
  "$volumed" --engine "${address[1]}" --listen 127.0.0.1:65536
start_daemon "${engines[@]}"
says 'a volume' 0 'number 1' "${v[@]}" create a 1M
says 'the same again' 1 "there is a volume 'a' already" "${v[@]}" create a 1M
epoch() { "${v[@]}" status --json | sed -n 's/.*"map_epoch": \([0-9]*\).*/\1/p'; }
before=$(epoch)
says 'another daemon at the same address' 1 'cannot listen there' timeout 100 "$volumed" "${engines[@]}" --socket "$work/socket"
said=$("${v[@]}" share a 2>&1) && [ -n "$before" ] && [ "$before" = "$(epoch)" ]
report $? 'which leaves engines to the first one' "map $before, then $(epoch): $said"
says 'more replicas than engines' 1 'add engines' "${v[@]}" create b 1M --replicas 4
says 'a size that is none' 2 'a size is written' "${v[@]}" create b lots
says 'a host' 0 'host         rw  client 1' "${v[@]}" share a
says 'another host' 0 'host         r   client 2  nqn.2026-11.org.example:other' "${v[@]}" share a --host nqn.2026-11.org.example:other --rights r
says 'a host that is none' 1 'is no NQN' "${v[@]}" share a --host other
says 'it grows' 0 'size         2M' "${v[@]}" resize a 2M
says 'it does not shrink' 1 'volumes only grow' "${v[@]}" resize a 1M
says 'as JSON' 0 '"replicas": 2' "${v[@]}" list --json
head -c 1M /dev/urandom >"$work/in"
says 'a file to it' 0 '' "${v[@]}" put a "$work/in"
says 'and back' 0 '' "${v[@]}" get a "$work/out"
cmp -n 1048576 "$work/in" "$work/out"
report $? 'byte for byte'
head -c $((1048576 + 5000)) /dev/urandom >"$work/odd"
ln -s "$work" "$work/a&b%c"
says 'by a path that has what URIs have for themselves' 0 '' "$volume" --daemon "$work/a&b%c/socket" get a "$work/out3"
says 'a file that ends within a block' 0 '' "${v[@]}" put a "$work/odd"
says 'back with the rest of the volume' 0 '' "${v[@]}" get a "$work/out"
cmp -n $((1048576 + 5000)) "$work/odd" "$work/out" && cmp -n 3192 /dev/zero <(tail -c +$((1048576 + 5001)) "$work/out")
report $? 'byte for byte, and zeros to the end of its last block'
head -c $((2097152 + 1)) /dev/urandom >"$work/long"
says 'a file that is too long' 1 'longer than the volume' "${v[@]}" put a "$work/long"
says 'a folder, which is no file' 1 'cannot be read' "${v[@]}" put a "$work"
"${v[@]}" get a "$work/out2" && cmp "$work/out" "$work/out2"
report $? 'and the volume is as it was'
says 'a host that may read alone reads' 0 '' "${v[@]}" --hostnqn nqn.2026-11.org.example:other get a "$work/out2"
cmp "$work/out" "$work/out2"
report $? 'the same'
says 'and does not write' 1 'may not write' "${v[@]}" --hostnqn nqn.2026-11.org.example:other put a "$work/in"
if [ -n "$losing" ]; then
  says 'what is lost at the close of the file' 1 'cannot be written: Disk quota exceeded' \
    env LD_PRELOAD="$losing" "${v[@]}" get a "$work/out"
  [ ! -e "$work/out" ]
  report $? 'and leaves no part of it'
fi
"${v[@]}" put a "$work/in"
says 'nobody has its lease any more' 0 'nobody writes' "${v[@]}" lease a
says 'a lease is ended' 0 '' "${v[@]}" lease a --end
says 'the state' 0 '3 of 3 engines are in; 1 volumes' "${v[@]}" status
kill -9 $daemon
wait $daemon 2>/dev/null
start_daemon --engine "${address[2]}"
grep -q 'serving 1 volumes on 3 engines' "$work/daemon"
report $? 'another daemon finds all from one engine' "$(cat "$work/daemon")"
says 'it knows who may use it' 0 'client 2  nqn.2026-11.org.example:other' "${v[@]}" info a
says 'an engine that there is not' 1 'there is no engine 9' "${v[@]}" engines --remove 9
says 'an engine that stays' 1 'engine 2 is not to leave' "${v[@]}" engines --keep 2
says 'nothing that is lost' 2 'give --remove ID, too' "${v[@]}" engines --lost
says 'an engine that is not lost' 1 'engine 2 answers, and so is not lost' "${v[@]}" engines --remove 2 --lost
kill -9 $last
until "${v[@]}" status | grep -q '1 engines taken out'; do sleep 0.2; done
says 'a file with an engine less' 0 '' "${v[@]}" get a "$work/out"
cmp -n 1048576 "$work/in" "$work/out"
report $? 'byte for byte, too'
says 'it is deleted' 0 '' "${v[@]}" delete a
says 'and is gone' 1 "there is no volume 'a'" "${v[@]}" info a
kill -TERM $daemon
wait $daemon
report $? 'SIGTERM ends it' "$(cat "$work/daemon")"
[ ! -e "$work/socket" ]
report $? 'its socket is gone'
says 'a path that is a file' 1 'cannot listen there' "$volumed" --engine "${address[2]}" --socket "$work/kept"
[ "$(cat "$work/kept")" = kept ]
report $? 'and the file is there, still'
truncate -s 16M "$work/file"
twice=("$target" --engine --listen tcp://127.0.0.1:0 --subsystem "nqn.2026-11.org.example:f=file:$work/file")
"${twice[@]}" >"$work/e5" 2>&1 &
all+=($!)
wait_for "$work/e5" '^weir-target: serving' $!
says 'an engine whose file another one has' 1 'in use by another engine' timeout 100 "${twice[@]}"
# What was written and not made durable is lost with its engine, before the file ends.
start_engine 4
start_daemon --alone --engine "${address[4]}"
says 'a volume of one engine' 0 'number 1' "${v[@]}" create late 1M --replicas 1
"${v[@]}" share late >/dev/null
mkfifo "$work/pipe"
for tries in {1..20}; do # an engine has a second to take a client in, and may be held for longer: then once more
  "${v[@]}" put late "$work/pipe" >"$work/late" 2>&1 & put=$!
  all+=($!)
  exec 3>"$work/pipe"
  cat "$work/in" >&3
  until "${v[@]}" engines | grep -q ' 256 of ' || ! kill -0 $put 2>/dev/null; do sleep 0.1; done
  grep -qE 'none of its .* engines is reached: .*(timed out|no answer within)' "$work/late" || break
  exec 3>&-
done
"${v[@]}" lease late >"$work/lease"
grep -qE '^.*client [1-9][0-9]* writes, lease [1-9][0-9]*, ([12]?[0-9]|30) s left' "$work/lease"
report $? 'who writes, and how long it may' "$(cat "$work/lease")"
kill -9 $last
exec 3>&-
wait $put
rc=$?
[ $rc = 1 ] && grep -q '^weir-volume: ' "$work/late"
report $? 'what is lost before it is durable was not put' "status $rc: $(cat "$work/late")"
echo "1..$count"
