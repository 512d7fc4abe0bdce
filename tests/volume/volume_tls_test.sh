#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An array in which all connections have TLS: clients and people to the daemon, the daemon and clients to engines; whoever has no
# key, or another one's, gets nothing. usage: volume_tls_test.sh WEIR-TARGET WEIR-VOLUMED WEIR-VOLUME WEIR-PERF WEIR-FABRICS
set -u
target=$1 volumed=$2 volume=$3 perf=$4 fabrics=$5
work=$(mktemp -d)
export XDG_CONFIG_HOME=$work
all=()
trap 'kill -9 "${all[@]}" 2>/dev/null; rm -rf "$work"' EXIT
count=0
nqn=nqn.2026-11.org.example

report() { # GOOD NAME [WHAT]
  count=$((count + 1))
  if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; printf '%s\n' "${3-}" | sed 's/^/# /'; fi
}

says() { # says NAME STATUS WORDS COMMAND...
  local name=$1 status=$2 words=$3 output rc tries; shift 3
  for tries in {1..20}; do # an engine has a second to take a client in, and may be held for longer: then once more
    output=$(timeout 120 "$@" 2>&1); rc=$?
    grep -qE 'none of its .* engines is reached: .*(timed out|no answer within)' <<<"$output" || break
  done
  [ "$rc" = "$status" ] && grep -qF -- "$words" <<<"$output"
  report $? "$name" "status $rc: $output"
}

wait_for() { # FILE WORDS PROCESS
  until grep -qs "$2" "$1" || ! kill -0 "$3" 2>/dev/null; do sleep 0.05; done
}

if ! (umask 077; "$fabrics" psk >"$work/me.psk"); then
  echo '1..0 # SKIP this build has no OpenSSL'
  exit 0
fi
(umask 077; for i in volumed other manager; do "$fabrics" psk >"$work/$i.psk"; done; cp "$work/me.psk" "$work/open.psk")
chmod 644 "$work/open.psk"
engines=()
for i in 1 2 3; do
  "$target" --engine --listen tcp://127.0.0.1:0 --subsystem "$nqn:e$i=virt:16M" --manager "$nqn:volumed" --host "$nqn:volumed" \
    --tls-psk "$work/volumed.psk" --host "$nqn:me" --tls-psk "$work/me.psk" >"$work/e$i" 2>&1 &
  all+=($!)
  wait_for "$work/e$i" '^weir-target: serving' $!
  engines+=(--engine "$(sed -n 's,.*nvmf:\(tcp://[^/]*/nqn.*\),\1,p' "$work/e$i")")
done
says 'a key of nobody' 2 'name its host first' "$volumed" "${engines[@]}" --tls-psk "$work/me.psk"
says 'a host without a key' 2 "host $nqn:me has no key" "$volumed" "${engines[@]}" --host "$nqn:me"
says 'a host twice' 2 'is named twice' "$volumed" "${engines[@]}" --host "$nqn:me" --tls-psk "$work/me.psk" --manager "$nqn:me"
says 'a key that others can read' 2 'open.psk' "$volumed" "${engines[@]}" --host "$nqn:me" --tls-psk "$work/open.psk"
words=(--hostnqn "$nqn:volumed" --engine-psk "$work/volumed.psk" --host "$nqn:me" --tls-psk "$work/me.psk"
  --host "$nqn:other" --tls-psk "$work/other.psk" --manager "$nqn:manager" --tls-psk "$work/manager.psk")
for ((port = 20000 + $$ % 20000; ; port++)); do # one that nobody has
  "$volumed" "${engines[@]}" "${words[@]}" --listen 127.0.0.1:$port >"$work/daemon" 2>&1 & daemon=$!
  wait_for "$work/daemon" '^weir-volumed: serving' $daemon
  grep -q 'cannot listen there: Address already in use' "$work/daemon" || break
done
all+=($daemon)
grep -q 'hosts by TLS$' "$work/daemon"
report $? 'the daemon says that hosts come by TLS' "$(cat "$work/daemon")"
v=("$volume" --daemon 127.0.0.1:$port)
me=("${v[@]}" --hostnqn "$nqn:me" --tls-psk "$work/me.psk")
other=("${v[@]}" --hostnqn "$nqn:other" --tls-psk "$work/other.psk")
manager=("${v[@]}" --hostnqn "$nqn:manager" --tls-psk "$work/manager.psk")
says 'nobody without a key' 1 'takes hosts by TLS only' "${v[@]}" list
says 'a manager makes a volume' 0 'number 1' "${manager[@]}" create a 4M
says 'a host does not' 1 'is no manager' "${me[@]}" create b 1M
says 'it is shared' 0 "client 1  $nqn:me" "${manager[@]}" share a --host "$nqn:me"
says 'that host sees it' 0 'size         4M' "${me[@]}" info a
says 'another host does not' 1 'has no permission of that volume' "${other[@]}" info a
says "another one's key" 1 "refuses the TLS key of host $nqn:me" "${v[@]}" --hostnqn "$nqn:me" --tls-psk "$work/other.psk" info a
vol="vol:a?daemon=127.0.0.1:$port&hostnqn=$nqn:me&daemon_psk=$work/me.psk"
says 'a client reads and writes it' 0 '' "$perf" "$vol&tls_psk=$work/me.psk" --rw=randrw --runs=1 --runtime=0.2 --verify --size=256K
says 'lanes that choose engines, too' 0 '' "$perf" "$vol&tls_psk=$work/me.psk&lanes=1" --rw=randrw --runs=1 --runtime=0.2 --verify --size=256K
head -c 300000 /dev/urandom >"$work/in"
says 'a file goes there' 0 '' "${me[@]}" --engine-psk "$work/me.psk" put a "$work/in"
says 'and comes back' 0 '' "${me[@]}" --engine-psk "$work/me.psk" get a "$work/out"
cmp -n 300000 "$work/in" "$work/out"; report $? 'as it was'
says 'not as a host that it is not shared with' 1 "host $nqn:other may not" "${other[@]}" --engine-psk "$work/other.psk" get a "$work/out"
says 'not without a key for the daemon' 1 'takes hosts by TLS only' "$perf" "vol:a?daemon=127.0.0.1:$port&hostnqn=$nqn:me&tls_psk=$work/me.psk" --runs=1 --runtime=0.2 --size=64K
says 'not without one for engines' 1 'by TLS only' "$perf" "$vol&wait_ms=500" --runs=1 --runtime=0.2 --size=64K
says 'not in the name of another host' 1 "host $nqn:other may not read" \
  "$perf" "vol:a?daemon=127.0.0.1:$port&hostnqn=$nqn:other&daemon_psk=$work/other.psk&tls_psk=$work/other.psk" --runs=1 --runtime=0.2 --size=64K
kill -TERM $daemon
wait $daemon
report $? 'SIGTERM ends it' "$(cat "$work/daemon")"
! grep -qiE 'psk|NVMeTLSkey' "$work/daemon"
report $? 'and it has said no key'
echo "1..$count"
