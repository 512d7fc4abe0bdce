#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Real processes of an array that fail while clients write and verify: killed, suspended, cut off, with damaged media and
# full disks, restarted one after the other. What was acknowledged is there, and where R - 1 replicas may be lost nobody
# sees an error. Counts decide, never seconds. Prints TAP.
# usage: volume_faults_test.sh WEIR-TARGET WEIR-VOLUMED WEIR-VOLUME VOLUME-LOAD
set -u
engine_host=()
target=$1 volumed=$2 volume=$3 load=$4
work=$(mktemp -d)
here=$(dirname "$0")
# shellcheck source=tests/rig/report.sh
. "$here/../rig/report.sh"
# shellcheck source=tests/volume/array.sh
. "$here/array.sh"
namespace=weir-faults-$$ wire=wf$$ net=10.211.$(($$ % 250))
full='' cut=''
cleanup() {
  [ "$BASHPID" = $$ ] || return # a child that is ended before it runs its program has these traps
  array_end
  [ -z "$cut" ] || ip netns del "$namespace"
  [ -z "$full" ] || umount -l "$full"
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
blocks=256
keys=("blocks=$blocks" depth=4 rate=150 flush=32 wait_ms=120000)

# judge STATUS NAME CLIENT...: what is seen where it is not 0
judge() {
  local bad=$1 name=$2 seen=; shift 2
  [ "$bad" = 0 ] || seen=$(timeout 5 "$volume" status; timeout 5 "$volume" engines; tail -n 5 "$work/daemon.log"
    for client; do grep '^volume-load' "$work/$client.log" | tail -n 12; "$load" show "$work/$client.state"; done 2>&1)
  report "$bad" "$name" "$seen"
}

# clean NAME CLIENT...: no error, nothing wrong, all clients go on
clean() {
  local name=$1; shift
  progress 50 "$@" && is_clean "$@"
  judge $? "$name" "$@"
}

# ends NAME CLIENT...: each reads all of its volume, as it was acknowledged
ends() {
  local name=$1 client bad=0; shift
  for client; do end_client "$client" && [ "$(count_of "$client" verified)" = $blocks ] || bad=1; done
  judge $bad "$name" "$@"
}

# Engine 3 in a network namespace, engine 4 on a file system of its own, where that may be.
if ip netns add "$namespace" 2>"$work/why_net" && cut=1 &&
  ip link add "$wire" type veth peer name "$wire" netns "$namespace" 2>"$work/why_net" &&
  ip addr add "$net.1/30" dev "$wire" && ip link set "$wire" up && ip -n "$namespace" addr add "$net.2/30" dev "$wire" &&
  ip -n "$namespace" link set "$wire" up; then
  engine_prefix[3]="ip netns exec $namespace"
  engine_host[3]=$net.2
fi
mkdir "$work/full"
if mount -t tmpfs -o size=320M none "$work/full" 2>"$work/why_full"; then
  full=$work/full
  engine_file[4]=$full/engine4.img
fi
engine_bytes=256M lease_seconds=120
for i in 1 2 3 4; do engine $i "${engine_host[i]-127.0.0.1}" || exit 1; done
start_daemon || exit 1
for replicas in 2 3; do
  new_volume "v$replicas" 1M "$replicas" || exit 1
  client "v$replicas" "${keys[@]}" seed="$replicas" || exit 1
done

progress 100 v2 v3
end_engine 3
progress 100 v2 v3
until_status taken_out 1
clean 'an engine is killed' v2 v3
engine 3 && until_whole
clean 'it comes back' v2 v3
end_engine 3
engine 3
clean 'it is killed and started again at once' v2 v3
until_whole

out=$(status_of taken_out)
kill -STOP "${engine_pid[2]}"
until_status taken_out $((out + 1))
clean 'an engine is suspended' v2 v3
kill -CONT "${engine_pid[2]}"
until_whole
clean 'it goes on' v2 v3
for i in 1 2 3 4; do kill -STOP "${engine_pid[i]}"; sleep 0.1; kill -CONT "${engine_pid[i]}"; done
clean 'each is suspended for less than three heartbeats' v2 v3
until_whole

end_daemon
clean 'the daemon is killed' v2 v3
start_daemon 2
until_whole
clean 'another one starts, with one engine given' v2 v3
kill -STOP "$daemon_pid"
clean 'the daemon is suspended' v2 v3
kill -CONT "$daemon_pid"

if [ -n "${engine_host[3]-}" ]; then
  out=$(status_of taken_out)
  ip link set "$wire" down
  until_status taken_out $((out + 1))
  clean 'an engine is cut off: nothing answers, and nothing refuses' v2 v3
  ip link set "$wire" up
  until_whole
  clean 'it is reached again' v2 v3
else
  skip 'an engine is cut off' "$(head -n 1 "$work/why_net")"
  skip 'it is reached again' 'it was not cut off'
fi

if [ -n "$full" ]; then
  out=$(status_of taken_out)
  head -c 320M /dev/zero >"$full/ballast" 2>/dev/null
  until_status taken_out $((out + 1))
  clean 'the disk of an engine is full' v2 v3
  rm "$full/ballast"
  end_engine 4 TERM
  engine 4
  until_whole
  clean 'there is room, and the engine is started again' v2 v3
else
  skip 'the disk of an engine is full' "$(head -n 1 "$work/why_full")"
  skip 'there is room' 'it was not full'
fi

bad_of() { tool engines | sed -n "s/^engine $1 .* \\([0-9]*\\) bad,.*/\\1/p"; }
before=$(bad_of 1)
way_of() { grep -q O_DIRECT "$work/engine$1.log" && echo direct; }
output=$("$load" damage "$work/engine1.img" "$(way_of 1)")
until [ "$(bad_of 1)" -gt "$before" ]; do progress 20 v2 v3 || break; done
until_status blocks_repaired 1
clean "an engine meets blocks of its medium that changed ($output), and gets them from others" v2 v3

# Those that nobody has read are not repaired: until its disk is replaced no other engine may fail.
end_engine 1
rm "$work/engine1.img"
engine 1
until_whole
clean 'its disk is replaced by an empty one' v2 v3

for i in 1 2 3 4; do
  end_engine $i TERM
  engine $i
  until_whole
done
clean 'all engines are restarted one after the other' v2 v3
end_daemon TERM
start_daemon
until_whole
clean 'the daemon is restarted' v2 v3

kill -KILL "${client_pid[v2]}"
wait "${client_pid[v2]}" 2>/dev/null
tool lease v2 --end >/dev/null
client v2 "${keys[@]}" seed=7
clean 'a client is killed, and another one writes on' v2 v3
ends 'all blocks of both are as they were acknowledged' v2 v3

tool delete v2 >/dev/null
client v3 "${keys[@]}" seed=9
out=$(status_of taken_out)
end_engine 1
end_engine 4
until_status taken_out $((out + 2))
clean 'two engines of four are killed, of three replicas' v3
engine 1 && engine 4 && until_whole
ends 'they come back, and all blocks are as they were acknowledged' v3

# Of one replica, a damaged block is an error, and nothing else.
tool delete v3 >/dev/null
new_volume v1 1M 1 && client v1 "${keys[@]}" mix=0
progress 200 v1
end_client v1
judge $? 'a volume of one replica' v1
output=$("$load" damage "$work/engine2.img" "$(way_of 2)")
client v1 "${keys[@]}" ro=1
end_client v1
[ $? = 1 ] && [ "$(count_of v1 wrong)" = 0 ] && [ "$(count_of v1 read-errors)" -gt 0 ]
judge $? "damaged blocks of one replica are errors ($output)" v1
echo "1..$count"
