#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Both ends are weir's, on loopback: what a host writes it reads again, a graph on a target is searched as if it were here, a target
# that is killed and started again costs no data, and what cannot be reached says why.
# usage: fabrics_loop_test.sh WEIR-TARGET WEIR-PERF WEIR-GRAPH WEIR-BFS WEIR-FABRICS WEIR-STAT WEIR-CHECK
set -u
. "$(dirname "$0")/../../rig/report.sh"
target=$1 perf=$2 graph=$3 bfs=$4 fabrics=$5 stat=$6 check=$7
dir=$(mktemp -d)
export WEIR_BACKEND=cpu XDG_CONFIG_HOME=$dir XDG_RUNTIME_DIR=$dir
chmod 700 "$dir"
nqn=nqn.2026-11.org.example:disk
servers=()
trap 'for pid in "${servers[@]}"; do kill -KILL "$pid" 2>/dev/null; done; rm -rf "$dir"' EXIT

# Begin a target at $port (0: any, which is then in $port): serve ARGUMENTS...
serve() {
  run --listen "tcp://127.0.0.1:$port" "$@"
}

serve_file() { # serve_file FILE
  run --config "$1"
}

run() {
  : >"$dir/target"
  "$target" "$@" >"$dir/target" 2>&1 &
  server=$!
  servers+=("$server")
  until grep -q '^weir-target: serving' "$dir/target"; do
    kill -0 "$server" 2>/dev/null || { sed 's/^/# /' "$dir/target"; return 1; }
    sleep 0.05
  done
  port=$(sed -n 's/.* nvmf:tcp:\/\/127.0.0.1:\([0-9]*\)\/.*/\1/p' "$dir/target" | head -n 1)
}

verified() { # verified NAME URI ARGUMENTS...: what is written is read again
  local name=$1 uri=$2 output; shift 2
  output=$(timeout 300 "$perf" "$uri" --runs=1 --runtime=0.2 --verify --size=8M "$@" 2>&1)
  grep -q '^verified *0 of [1-9]' <<<"$output" && grep -q '^errors *0 of [1-9]' <<<"$output"
  report $? "$name" "$output"
}

"$graph" generate kron --scale 13 --seed 7 --quiet -o "$dir/g.bel" || exit 1
truncate -s 64M "$dir/disk"
port=0
serve --subsystem "$nqn=file:$dir/disk,virt:16M?block=4096" --subsystem "$nqn.graph=file:$dir/g.bel.col,file:$dir/g.bel.dst" || exit 1
uri=nvmf:tcp://127.0.0.1:$port/$nqn

verified 'mixed load on a file' "$uri?nsid=1" --rw=randrw
verified 'digests' "$uri?nsid=1&digest=header,data" --rw=randrw --bs=64K
verified 'lanes move the data' "$uri?nsid=1&mover=pull" --rw=randwrite --queues=1
verified 'the second namespace' "$uri?nsid=2&mover=pull&digest=data" --rw=randrw --bs=8K
verified 'long transfers' "$uri?nsid=1" --rw=write --bs=128K --iodepth=4
verified 'through a cache' "$uri?nsid=1" --rw=randread --cached=1M

output=$(timeout 300 "$bfs" --offsets "$uri.graph?nsid=1" --edges "$uri.graph?nsid=2" --reference "$dir/g.bel" --verify --json 2>&1)
grep -q '"verified": true' <<<"$output"
report $? 'a search of a graph over the network' "$output"

output=$(timeout 60 "$fabrics" discover "127.0.0.1:$port" 2>&1)
grep -qF "nvmf:tcp://127.0.0.1:$port/$nqn" <<<"$output" && grep -qF "$nqn.graph" <<<"$output"
report $? 'the target is discovered' "$output"
peer() { # peer CHANGES: a host whose discovery log changes so often while it is read
  : >"$dir/peer"
  python3 "$(dirname "$0")/fabrics_peer.py" --nqn nqn.2014-08.org.nvmexpress.discovery --changes "$1" >"$dir/peer" 2>&1 &
  servers+=($!)
  until grep -q '^port' "$dir/peer"; do kill -0 $! || return 1; sleep 0.05; done
  output=$(timeout 60 "$fabrics" discover "127.0.0.1:$(sed -n 's/^port //p' "$dir/peer")" --json 2>&1)
}
: >"$dir/peer"; peer 3; grep -q '"generation": 4' <<<"$output" && grep -q 'test:g4"' <<<"$output"
report $? 'a log that changes while it is read is read again' "$output"
: >"$dir/peer"; peer 1000; grep -q 'changed each time that it was read' <<<"$output"
report $? 'but not for ever' "$output"
output=$(timeout 60 "$fabrics" paths "nvmf:tcp://127.0.0.1:1,127.0.0.1:2/$nqn" 2>&1)
[ $? = 1 ] && [ "$(grep -c 'cannot connect' <<<"$output")" = 2 ]
report $? 'no path is reached' "$output"
output=$(timeout 60 "$fabrics" test "$uri" 2>&1)
report $? 'a connection is tested' "$output"
output=$(timeout 60 "$fabrics" test "nvmf:tcp://127.0.0.1:$port/$nqn.none" 2>&1)
[ $? = 1 ] && grep -q 'has no subsystem' <<<"$output"
report $? 'a subsystem that is not there' "$output"
kept=$port first=$server port=0
serve --subsystem "$nqn.bad=virt:1M?fault=status:code=0x281:op=read" || exit 1
output=$(timeout 60 "$fabrics" test "nvmf:tcp://127.0.0.1:$port/$nqn.bad" 2>&1)
[ $? = 1 ] && grep -q 'blocks 0 to 1' <<<"$output" && ! grep -q 'was read' <<<"$output"
report $? 'a first block that cannot be read' "$output"
kill -TERM "$server"; wait "$server"
port=$kept server=$first

if "$fabrics" secret >/dev/null 2>&1; then # the build has OpenSSL
  kept=$port first=$server port=0
  (umask 077; "$fabrics" secret >"$dir/host.secret"; "$fabrics" secret >"$dir/disk.secret"; cp "$dir/host.secret" "$dir/open.secret")
  chmod 644 "$dir/open.secret"
  serve --subsystem "$nqn.known=virt:16M" --host "$nqn.me" --secret "$dir/host.secret" --controller-secret "$dir/disk.secret" || exit 1
  known=nvmf:tcp://127.0.0.1:$port/$nqn.known?hostnqn=$nqn.me
  verified 'a host that authenticates' "$known&dhchap_secret=$dir/host.secret" --rw=randrw --queues=3
  verified 'both ends authenticate' "$known&dhchap_secret=$dir/host.secret&dhchap_ctrl_secret=$dir/disk.secret" --rw=randrw
  refuses() { # refuses NAME WORDS URI
    output=$(timeout 60 "$fabrics" test "$3" 2>&1)
    [ $? = 1 ] && grep -q "$2" <<<"$output"
    report $? "$1" "$output"
  }
  refuses 'without a secret' 'asks host .* to authenticate; give dhchap_secret=' "$known"
  refuses 'with a wrong secret' 'does not believe that this is host .*: the secrets differ' "$known&dhchap_secret=$dir/disk.secret"
  refuses 'a target that is another' 'does not prove that it is .*: the secrets differ' \
    "$known&dhchap_secret=$dir/host.secret&dhchap_ctrl_secret=$dir/host.secret"
  refuses 'a secret that others can read' 'can be read by others than its owner; chmod 600' "$known&dhchap_secret=$dir/open.secret"
  refuses 'a target that proves nothing' 'does not authenticate' "$uri?dhchap_secret=$dir/host.secret&dhchap_ctrl_secret=$dir/disk.secret"
  kill -TERM "$server"; wait "$server"

  port=0
  (umask 077; "$fabrics" psk >"$dir/me.psk"; "$fabrics" psk >"$dir/other.psk"; cp "$dir/me.psk" "$dir/open.psk"; echo x >"$dir/none.psk")
  chmod 644 "$dir/open.psk"
  serve --subsystem "$nqn.tls=virt:16M" --host "$nqn.me" --tls-psk "$dir/me.psk" --host "$nqn.plain" \
    --subsystem "$nqn.all=virt:16M" --tls-psk "$dir/other.psk" || exit 1
  tls=nvmf:tcp://127.0.0.1:$port/$nqn.tls?hostnqn=$nqn.me
  verified 'TLS' "$tls&tls_psk=$dir/me.psk" --rw=randrw --queues=3
  verified 'TLS, long transfers, both digests' "$tls&tls=on&tls_psk=$dir/me.psk&digest=header,data" --rw=randrw --bs=128K --iodepth=8
  verified 'TLS, lanes move the data' "$tls&tls_psk=$dir/me.psk&mover=pull" --rw=randwrite --bs=16K
  verified 'TLS, a key of all hosts of a subsystem' "nvmf:tcp://127.0.0.1:$port/$nqn.all?tls_psk=$dir/other.psk" --rw=randrw
  verified 'a host that needs no key' "nvmf:tcp://127.0.0.1:$port/$nqn.tls?hostnqn=$nqn.plain" --rw=randrw
  refuses 'TLS: without a key' 'takes host .* by TLS only; give tls_psk=' "$tls"
  refuses 'TLS: switched off' 'takes host .* by TLS only; give tls_psk=' "$tls&tls=off&tls_psk=$dir/me.psk"
  refuses 'TLS: a wrong key' 'refuses the TLS key of host .*; is it the same at both ends' "$tls&tls_psk=$dir/other.psk"
  refuses 'TLS: the key of another host' 'refuses the TLS key of host' \
    "nvmf:tcp://127.0.0.1:$port/$nqn.tls?hostnqn=$nqn.plain&tls_psk=$dir/me.psk"
  refuses 'TLS: of a target without keys' 'does not answer with TLS; leave tls_psk= out' "$uri?tls_psk=$dir/me.psk"
  refuses 'TLS: on, without a file' 'tls=on without tls_psk=' "$tls&tls=on"
  refuses 'TLS: a key that others can read' 'can be read by others than its owner; chmod 600' "$tls&tls_psk=$dir/open.psk"
  refuses 'TLS: no key in the file' 'no key such as NVMeTLSkey-1' "$tls&tls_psk=$dir/none.psk"
  refuses 'TLS: neither on nor off' 'tls' "$tls&tls=perhaps"
  verified 'TLS over two paths' "nvmf:tcp://127.0.0.1:$port,127.0.0.1:$port/$nqn.tls?hostnqn=$nqn.me&tls_psk=$dir/me.psk" --rw=randrw
  output=$(timeout 60 "$fabrics" paths "nvmf:tcp://127.0.0.1:$port,127.0.0.1:1/$nqn.tls?hostnqn=$nqn.me&tls_psk=$dir/me.psk" 2>&1)
  grep -q "^127.0.0.1:$port  *optimized" <<<"$output" && grep -q '^127.0.0.1:1  .*cannot connect' <<<"$output"
  report $? 'weir-fabrics paths' "$output"
  output=$(timeout 60 "$fabrics" discover "127.0.0.1:$port" 2>&1)
  grep -qF "$nqn.all  (TLS)" <<<"$output"
  report $? 'discovery says which need TLS' "$output"
  kill -TERM "$server"; wait "$server"

  # Another key, read again: for connections from then on.
  printf '{ "listen": ["tcp://127.0.0.1:%s"], "subsystems": [ { "nqn": "%s", "namespaces": ["virt:16M"],
    "hosts": [ { "nqn": "%s", "tls_psk": "%s" } ] } ] }' "$port" "$nqn.tls" "$nqn.me" "$dir/live.psk" >"$dir/tls.json"
  cp -p "$dir/me.psk" "$dir/live.psk"
  serve_file "$dir/tls.json" || exit 1
  verified 'TLS: a key in the JSON file' "$tls&tls_psk=$dir/me.psk" --rw=randrw
  cp -p "$dir/other.psk" "$dir/live.psk"
  kill -HUP "$server"
  until grep -q 'read again and changed' "$dir/target"; do kill -0 "$server" || break; sleep 0.05; done
  refuses 'TLS: the key of before' 'refuses the TLS key of host' "$tls&tls_psk=$dir/me.psk"
  verified 'TLS: the key that was read again' "$tls&tls_psk=$dir/other.psk" --rw=randrw
  kill -TERM "$server"; wait "$server"
  port=$kept server=$first
else
  report 0 'hosts that authenticate # SKIP this build has no OpenSSL'
fi

output=$(timeout 60 "$check" --storage "nvmf:tcp://127.0.0.1:$port" 2>&1)
[ $? = 3 ] && grep -qF "the host offers $nqn, $nqn.graph" <<<"$output"
report $? 'a storage without a subsystem lists what there is' "$output"
output=$(timeout 60 "$check" --storage "$uri" 2>&1) && grep -q 'yes .*67108864 bytes' <<<"$output"
report $? 'weir-check reaches it' "$output"
output=$(timeout 60 "$check" --storage "$uri?nsid=7" --json 2>&1)
[ $? = 3 ] && grep -q '"answer": "no"' <<<"$output" && grep -q 'no active namespace 7' <<<"$output"
report $? 'weir-check says what is not there' "$output"
output=$(timeout 60 "$check" --storage "$uri?nsid=7" --storage "$uri" 2>&1)
[ $? = 3 ] && grep -q '^storage *yes ' <<<"$output"
report $? 'and one that is there makes up for none' "$output"

# Killed with commands under way, and started again a moment later. $1 seconds of load; told and kept: whether all was seen meanwhile.
killed_and_started() {
  (timeout 600 "$perf" "$uri?nsid=1" --runs=1 --runtime="$1" --verify --size=8M --rw=randrw --iodepth=16 >"$dir/load" 2>&1; echo "ended $?" >>"$dir/load") &
  load=$!
  until "$stat" list 2>/dev/null | grep -q weir-perf || ! kill -0 "$load" 2>/dev/null; do sleep 0.05; done
  sleep 0.5
  kill -KILL "$server"
  wait "$server" 2>/dev/null
  serve --subsystem "$nqn=file:$dir/disk,virt:16M?block=4096" || exit 1
  told=1
  while kill -0 "$load" 2>/dev/null; do
    "$stat" dump >"$dir/stat" 2>&1
    grep -q '"reconnects": [1-9]' "$dir/stat" && told=0 && break
    sleep 0.05
  done
  kept=1 # what the target counts, too
  while kill -0 "$load" 2>/dev/null; do
    "$stat" dump "$server" >"$dir/stat.target" 2>&1
    grep -q '"bytes_sent": [1-9]' "$dir/stat.target" && grep -q '"bytes_received": [1-9]' "$dir/stat.target" &&
      grep -q '"connections": [2-9]' "$dir/stat.target" && grep -q '"oldest_command_ms"' "$dir/stat.target" && kept=0 && break
    sleep 0.05
  done
  wait "$load"
}
# On a busy machine the load may have ended before: then once more, for longer.
for seconds in 6 60 300; do
  killed_and_started $seconds
  [ "$told$kept" != 00 ] || break
done
report $told 'weir-stat tells of the reconnect' "$(cat "$dir/stat")"
report $kept 'weir-stat shows what a target counts' "$(cat "$dir/stat.target")"
grep -q 'connected again' "$dir/load" && grep -q '^verified *0 of [1-9]' "$dir/load" && grep -q '^errors *0 of' "$dir/load" &&
  grep -q '^ended 0' "$dir/load"
report $? 'a target is killed and started again' "$(cat "$dir/load")"

# Told to end: it drains, and says so.
kill -TERM "$server"
wait "$server"
rc=$?
[ "$rc" = 0 ] && grep -q '^weir-target: ended' "$dir/target"
report $? 'the target ends when it is told to' "status $rc: $(cat "$dir/target")"
output=$(timeout 60 "$perf" "$uri" --runs=1 --runtime=0.1 2>&1)
[ $? != 0 ] && grep -q 'cannot connect to 127.0.0.1' <<<"$output"
report $? 'nobody listens there any more' "$output"
echo "1..$count"
