#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An engine on a file whose writes QEMU notes (blklogwrites): the power fails at each moment of the notes, and an engine is opened on
# what is left (engine_log.c). usage: engine_log_test.sh ENGINE-LOG
# The file is QEMU's, by FUSE, in a mount namespace of its own, which takes the mount away with it.
set -u
program=$1
seed=${WEIR_TEST_SEED-1} each=400 rounds=3
if [ "${2-}" != inside ]; then
  why=
  command -v qemu-storage-daemon >/dev/null || why='no qemu-storage-daemon; ci/setup installs it'
  [ -n "$why" ] || { [ -r /dev/fuse ] && [ -w /dev/fuse ]; } || why='/dev/fuse cannot be opened'
  [ -n "$why" ] || unshare -rm true 2>/dev/null || why='no mount namespaces'
  [ -z "$why" ] || { echo "1..0 # SKIP $why"; exit 0; }
  exec unshare -rm "$0" "$program" inside
fi

work=$(mktemp -d)
mount -t tmpfs -o size=256M none "$work" # nothing waits for a disk
daemon=
trap '[ -z "$daemon" ] || kill -9 $daemon 2>/dev/null; umount -l "$work/file" "$work" 2>/dev/null; rmdir "$work"' EXIT
count=0

report() { # GOOD NAME [WHAT]
  count=$((count + 1))
  if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; printf '%s\n' "${3-}" | sed 's/^/# /'; fi
}

truncate -s 2M "$work/medium"
: >"$work/log"
: >"$work/file"
qemu-storage-daemon --blockdev "driver=file,node-name=medium,filename=$work/medium" --blockdev "driver=file,node-name=log,filename=$work/log" \
  --blockdev driver=blklogwrites,node-name=logged,file=medium,log=log \
  --export "type=fuse,id=file,node-name=logged,mountpoint=$work/file,writable=on" --pidfile "$work/ready" >"$work/said" 2>&1 & daemon=$!
until [ -s "$work/ready" ] || ! kill -0 $daemon 2>/dev/null; do sleep 0.05; done
[ -s "$work/ready" ] || { echo "1..0 # SKIP qemu-storage-daemon gives no file by FUSE: $(head -n 1 "$work/said")"; daemon=; exit 0; }

# An engine is killed and another one goes on, and the last one is closed.
for ((round = 0; round < rounds; round++)); do
  output=$(timeout 300 "$program" write "$work/file" "$seed" $((round * each)) "$each" $([ $((round + 1)) -lt $rounds ] || echo end) 2>&1)
  report $? "commands $((round * each + 1)) to $(((round + 1) * each))" "$output"
done
kill $daemon
wait $daemon
daemon=
output=$(timeout 600 "$program" replay "$work/log" "$seed" $((rounds * each)) 2>&1)
report $? 'the power fails at each flush, and between' "$output"
echo "# $output"
[[ $output =~ ^([0-9]+)" flushes, "([0-9]+)" moments" ]] && [ "${BASH_REMATCH[1]}" -ge 100 ] && [ "${BASH_REMATCH[2]}" -ge 100 ]
report $? 'at a hundred flushes, and a hundred times between' "$output"
echo "1..$count"
