#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-bind in a tree of files: what it refuses and why, what it writes, and that it can be taken back.
# usage: bind_test.sh WEIR-BIND
set -u
. "$(dirname "$0")/../rig/report.sh"
bind=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
functions=$root/sys/bus/pci/devices

# function_ ADDRESS CLASS GROUP DRIVER
function_() {
  local folder=$root/sys/devices/pci/$1
  mkdir -p "$folder" "$functions" "$root/sys/kernel/iommu_groups" "$root/sys/bus/pci/drivers"
  ln -s "$folder" "$functions/$1"
  echo "$2" >"$folder/class"; echo 0x1234 >"$folder/vendor"; echo 0xabcd >"$folder/device"; echo '(null)' >"$folder/driver_override"
  if [ -n "$3" ]; then
    mkdir -p "$root/sys/kernel/iommu_groups/$3/devices"
    ln -s "$root/sys/kernel/iommu_groups/$3" "$folder/iommu_group"
    ln -s "$folder" "$root/sys/kernel/iommu_groups/$3/devices/$1"
  fi
  if [ -n "$4" ]; then
    mkdir -p "$root/sys/bus/pci/drivers/$4"; : >"$root/sys/bus/pci/drivers/$4/unbind"
    ln -s "$root/sys/bus/pci/drivers/$4" "$folder/driver"
  fi
}

# disk ADDRESS CONTROLLER NAMESPACE MAJOR:MINOR [PARTITION MAJOR:MINOR]
disk() {
  mkdir -p "$functions/$1/nvme/$2/$3" "$root/sys/block/$3/holders" "$root/dev"
  echo "$4" >"$root/sys/block/$3/dev"; : >"$root/dev/$3"
  [ $# -gt 4 ] || return 0
  mkdir -p "$root/sys/block/$3/$5/holders"; echo "$6" >"$root/sys/block/$3/$5/dev"; : >"$root/dev/$5"
}

function_ 0000:01:00.0 0x010802 11 nvme; disk 0000:01:00.0 nvme0 nvme0n1 259:0 nvme0n1p1 259:1
function_ 0000:02:00.0 0x010802 12 nvme; disk 0000:02:00.0 nvme1 nvme1n1 259:2 nvme1n1p3 259:5
function_ 0000:03:00.0 0x010802 13 nvme; disk 0000:03:00.0 nvme2 nvme2n1 259:6 nvme2n1p2 259:7
function_ 0000:04:00.0 0x010802 14 nvme; disk 0000:04:00.0 nvme3 nvme3n1 259:8; mkdir "$root/sys/block/nvme3n1/holders/md0"
function_ 0000:05:00.0 0x010802 15 nvme; disk 0000:05:00.0 nvme4 nvme4n1 259:9
function_ 0000:06:00.0 0x010802 16 nvme; disk 0000:06:00.0 nvme5 nvme5n1 259:10
function_ 0000:06:00.1 0x020000 16 netcard
function_ 0000:06:00.2 0x060400 16 pcieport
function_ 0000:07:00.0 0x010802 '' nvme
function_ 0000:08:00.0 0x010802 18 vfio-pci
function_ 0000:09:00.0 0x010802 19 nvme; disk 0000:09:00.0 nvme9 nvme9n1 259:19 nvme9n1p1 259:20
# Where namespaces can have several controllers, what is mounted has another name than the controller's part of it.
function_ 0000:0a:00.0 0x010802 20 nvme; disk 0000:0a:00.0 nvme10 nvme10n1 259:30
mv "$functions/0000:0a:00.0/nvme/nvme10/nvme10n1" "$functions/0000:0a:00.0/nvme/nvme10/nvme10c10n1"; mkdir "$root/sys/block/nvme10c10n1"
for i in {16..99}; do # a server has more functions than a short list holds
  mkdir "$root/sys/devices/pci/0000:$i:00.0"; ln -s "$root/sys/devices/pci/0000:$i:00.0" "$functions/0000:$i:00.0"
  echo 0x088000 >"$functions/0000:$i:00.0/class"; echo '(null)' >"$functions/0000:$i:00.0/driver_override"
done
# More block devices than a short list holds, beside what else such a folder has: one of them is in use.
function_ 0000:0b:00.0 0x010802 21 nvme; disk 0000:0b:00.0 nvme11 nvme11n1 259:40; mkdir "$functions/0000:0b:00.0/nvme/nvme11"/{a..z}{0..9}
function_ 0000:0c:00.0 0x010802 22 nvme; disk 0000:0c:00.0 nvme12 nvme12n1 259:41; mkdir "$root/sys/block/nvme12n1"/{a..z}{0..9}
for i in {2..90}; do disk 0000:0b:00.0 nvme11 nvme11n$i 260:$i; disk 0000:0c:00.0 nvme12 nvme12n1 259:41 nvme12n1p$i 261:$i; done
: >"$root/sys/bus/pci/drivers_probe"
mkdir -p "$root/proc/self" "$root/run"
cat >"$root/proc/self/mountinfo" <<'EOF'
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw
23 22 259:5 / /data rw,relatime - xfs /dev/nvme1n1p3 rw
24 22 0:44 / /home rw,relatime - btrfs /dev/nvme9n1p1 rw
26 22 259:30 / /scratch rw,relatime - ext4 /dev/nvme10n1 rw
27 22 259:40 / /many rw,relatime - ext4 /dev/nvme11n1 rw
25 22 0:5 / /proc rw - proc proc rw
EOF
printf 'Filename Type Size Used Priority\n/dev/nvme2n1p2 partition 1 0 -2\n' >"$root/proc/swaps"

check() { # check NAME STATUS WORDS ARGUMENTS...
  local name=$1 status=$2 words=$3 output rc; shift 3
  output=$(timeout 200 "$bind" --root "$root" "$@" 2>&1); rc=$?
  [ "$rc" = "$status" ] && grep -qF -- "$words" <<<"$output"
  report $? "$name" "status $rc: $output"
}

untouched() { # nothing below /sys was written, and nothing noted
  [ "$(cat "$functions"/*/driver_override | sort -u)" = '(null)' ] && ! [ -s "$root/sys/bus/pci/drivers/nvme/unbind" ] &&
    ! [ -s "$root/sys/bus/pci/drivers_probe" ] && ! [ -e "$root/run/weir" ]
  report $? "$1"
}

check "the root file system's" 1 '0000:01:00.0: nvme0n1p1 holds the root file system' bind 0000:01:00.0
check "a mounted one, its domain left out" 1 'nvme1n1p3 is mounted on /data' bind 02:00.0
check "a mounted one whose file system has numbers of its own" 1 'nvme9n1p1 is mounted on /home' bind 09:00.0
check "a mounted one whose namespace can have several controllers" 1 'nvme10n1 is mounted on /scratch' bind 0a:00.0
check "a swapped one" 1 'nvme2n1p2 is swapped on' bind 0000:03:00.0
mkdir "$root/sys/block/nvme12n1/nvme12n1p90/holders/dm-0"
check "one of many namespaces is mounted" 1 'nvme11n1 is mounted on /many' bind 0b:00.0
check "one of many partitions is part of dm" 1 'nvme12n1p90 is part of dm-0' unbind 0c:00.0
check "a part of md" 1 'nvme3n1 is part of md0' bind 0000:04:00.0
check "unbind looks, too" 1 'nvme3n1 is part of md0' unbind 0000:04:00.0
check "a network card" 1 'no NVMe controller, but of class 0x020000' bind 06:00.1
check "one that is not there" 1 'there is no such PCI device' bind 0000:b9:00.0
check "one that can be bound" 0 'can be bound' show 0000:05:00.0
check "a neighbour in the IOMMU group, but no bridge" 1 'IOMMU group 16 has devices that other drivers use, which could reach its memory: 0000:06:00.1;' bind 06:00.0
check "no IOMMU" 1 'turn the IOMMU on' bind 07:00.0
check "one bad of two: neither" 1 'is part of md0' bind 05:00.0 04:00.0
check "nothing to restore" 1 'nothing to restore' restore 05:00.0
check "a dry run" 0 'would write "vfio-pci" to' bind --dry-run 05:00.0
check "a dry run, the old driver" 0 "would write \"0000:05:00.0\" to $root/sys/bus/pci/drivers/nvme/unbind" bind --dry-run 05:00.0
check "bound already" 0 'is with vfio-pci already' bind 08:00.0
untouched "nothing was touched so far"

mv "$root/sys/bus/pci/drivers/vfio-pci" "$root/vfio"
check "vfio-pci is not loaded" 1 'modprobe vfio-pci' bind 05:00.0
mv "$root/vfio" "$root/sys/bus/pci/drivers/vfio-pci"

rmdir "$root/run"
check "nowhere to note the driver" 1 "cannot make $root/run/weir, where its driver is noted: No such file or directory" bind 05:00.0
mkdir "$root/run"
untouched "and so it was left with it"

output=$(trap '' XFSZ; ulimit -f 0; "$bind" --root "$root" bind 05:00.0 2>&1)
[ $? = 1 ] && grep -q 'cannot note its driver' <<<"$output" && [ "$(cat "$functions/0000:05:00.0/driver_override")" = '(null)' ]
report $? "no room to note the driver" "$output"

"$bind" --root "$root" bind 05:00.0
[ "$(head -c 8 "$functions/0000:05:00.0/driver_override")" = vfio-pci ]
report $? "bind chooses the driver" "$(cat "$functions/0000:05:00.0/driver_override")"
[ "$(cat "$root/sys/bus/pci/drivers/nvme/unbind")" = 0000:05:00.0 ] && [ "$(cat "$root/sys/bus/pci/drivers_probe")" = 0000:05:00.0 ] &&
  [ "$(cat "$root/run/weir/bind/0000:05:00.0")" = nvme ]
report $? "takes it from the old one, and notes that"
"$bind" --root "$root" unbind 05:00.0
[ "$(cat "$root/run/weir/bind/0000:05:00.0")" = nvme ]
report $? "the first driver stays noted"
rm "$functions/0000:05:00.0/driver"; ln -s "$root/sys/bus/pci/drivers/vfio-pci" "$functions/0000:05:00.0/driver"
"$bind" --root "$root" restore 05:00.0
[ "$(head -n 1 "$functions/0000:05:00.0/driver_override")" = '' ] && [ "$(cat "$root/sys/bus/pci/drivers/vfio-pci/unbind")" = 0000:05:00.0 ] &&
  ! [ -e "$root/run/weir/bind/0000:05:00.0" ]
report $? "restore takes it all back"

output=$("$bind" --root "$root" show --json)
python3 - "$output" <<'EOF'
import json, sys
rows = {row["address"]: row for row in json.loads(sys.argv[1])["controllers"]}
assert list(rows) == [f"0000:0{n}:00.0" for n in "123456789abc"], list(rows)
assert rows["0000:01:00.0"]["blocks"] == ["nvme0n1", "nvme0n1p1"] and not rows["0000:01:00.0"]["can_bind"]
assert rows["0000:08:00.0"]["can_bind"] and rows["0000:08:00.0"]["driver"] == "vfio-pci" and rows["0000:08:00.0"]["why_not"] == ""
assert "root file system" in rows["0000:01:00.0"]["why_not"] and rows["0000:07:00.0"]["iommu_group"] == ""
EOF
report $? "JSON" "$output"
function_ 0000:0d:00.0 0x010802 23 ''
"$bind" --root "$root" bind 0d:00.0
[ "$(cat "$root/run/weir/bind/0000:0d:00.0")" = none ] && [ "$(cat "$root/sys/bus/pci/drivers_probe")" = 0000:0d:00.0 ]
report $? "one that no driver had is bound, and that noted"
: >"$root/sys/bus/pci/drivers_probe"
"$bind" --root "$root" restore 0d:00.0
[ "$(head -n 1 "$functions/0000:0d:00.0/driver_override")" = '' ] && ! [ -s "$root/sys/bus/pci/drivers_probe" ] &&
  ! [ -e "$root/run/weir/bind/0000:0d:00.0" ]
report $? "restore leaves it to none again" "$(cat "$root/sys/bus/pci/drivers_probe")"
function_ 0000:0e:00.0 0x010802 24 nvme; function_ 0000:0e:00.1 0x020000 24 netcard
mkdir "$root/sys/kernel/iommu_groups/24/devices/0000:e0:"{00..99}.{0..7}
check "one neighbour of many in the IOMMU group" 1 'could reach its memory: 0000:0e:00.1;' bind 0e:00.0
# Two of one IOMMU group: together, or not at all.
function_ 0000:0f:00.0 0x010802 25 nvme; function_ 0000:0f:01.0 0x010802 25 nvme
noted=$root/run/weir/bind override0=$functions/0000:0f:00.0/driver_override override1=$functions/0000:0f:01.0/driver_override
check "a neighbour that is a controller, too" 1 'could reach its memory: 0000:0f:01.0;' bind 0f:00.0
: >"$root/sys/bus/pci/drivers_probe"; rm "$override0"; ln -s /dev/full "$override0"
check "a driver that cannot be chosen" 1 "cannot write to $override0: No space left on device" bind 0f:00.0 0f:01.0
[ "$(cat "$override1")" = '(null)' ] && ! [ -s "$root/sys/bus/pci/drivers_probe" ] && ! [ -e "$noted/0000:0f:01.0" ]
report $? "it ends there: no driver is probed, and the second one is not touched" "$(cat "$override1" "$root/sys/bus/pci/drivers_probe")"
rm "$override0"; echo '(null)' >"$override0"
"$bind" --root "$root" bind 0f:00.0 0f:01.0
[ "$(head -c 8 "$override0") $(head -c 8 "$override1") $(cat "$noted/0000:0f:00.0" "$noted/0000:0f:01.0" | tr '\n' ' ')" = 'vfio-pci vfio-pci nvme nvme ' ]
report $? "both are bound" "$(cat "$override0" "$override1")"
: >"$root/sys/bus/pci/drivers/nvme/unbind"
"$bind" --root "$root" unbind 0f:01.0
[ "$(cat "$root/sys/bus/pci/drivers/nvme/unbind")" = 0000:0f:01.0 ]
report $? "unbind takes it from its driver" "$(cat "$root/sys/bus/pci/drivers/nvme/unbind")"
check "a restore in a dry run" 0 "would write \"\" to $override0" restore --dry-run 0f:00.0
[ "$(head -c 8 "$override0")" = vfio-pci ] && [ -e "$noted/0000:0f:00.0" ]
report $? "which changes nothing" "$(cat "$override0"; ls "$noted")"
rm "$root/sys/bus/pci/drivers_probe"; ln -s /dev/full "$root/sys/bus/pci/drivers_probe"
check "a driver that cannot be probed" 1 'drivers_probe: No space left on device' restore 0f:00.0
[ "$(cat "$noted/0000:0f:00.0")" = nvme ]
report $? "it stays noted, for another try" "$(ls "$noted")"
rm "$root/sys/bus/pci/drivers_probe"; : >"$root/sys/bus/pci/drivers_probe"
"$bind" --root "$root" restore 0f:00.0 0f:01.0
[ "$(head -n 1 "$override0"; head -n 1 "$override1")" = '' ] && ! [ -e "$noted/0000:0f:00.0" ] && ! [ -e "$noted/0000:0f:01.0" ]
report $? "both are restored" "$(cat "$override0" "$override1"; ls "$noted")"
check "as many as a list holds" 1 '0000:f3:1f.0: there is no such PCI device' show $(printf 'f2:%02x.0 ' {0..31}) $(printf 'f3:%02x.0 ' {0..31})
check "one more" 2 'too many addresses, from here on: f4:00.0' show $(printf 'f2:%02x.0 ' {0..31}) $(printf 'f3:%02x.0 ' {0..31}) f4:00.0
check "no address" 2 'which controllers' bind
for address in 5:0 10000000:00:00.0 0000:100:00.0 0000:00:20.0 0000:00:00.8 0000:00:00.0x 0000:0x5:00.0 00:+0.0 00:00.0/1; do
  check "a bad address: $address" 2 "no PCI address such as 0000:65:00.0: $address" bind $address
done
check "the last address that there can be" 1 'fffffff:ff:1f.7: there is no such PCI device' bind fffffff:ff:1f.7
check "no command" 2 'there is no command' frobnicate
check "help" 0 'weir-bind bind|unbind|restore' --help

# GPUs: a display with registers, its memory, a smaller BAR and an I/O port; an accelerator whose memory is too small for a window.
function_ 0000:41:00.0 0x030200 41 gpudriver
printf '%s\n' '0x00000000e0000000 0x00000000e0ffffff 0x0000000000040200' '0x0000380000000000 0x00003803ffffffff 0x000000000014220c' \
  '0x0000000000000000 0x0000000000000000 0x0000000000000000' '0x0000380400000000 0x0000380401ffffff 0x000000000014220c' \
  '0x0000000000000000 0x0000000000000000 0x0000000000000000' '0x0000000000003000 0x000000000000307f 0x0000000000040101' \
  >"$functions/0000:41:00.0/resource"
function_ 0000:42:00.0 0x120000 42 ''
echo '0x00000000f0000000 0x00000000f00fffff 0x0000000000040200' >"$functions/0000:42:00.0/resource"
check "GPUs" 0 'BAR 1, 16777216 KiB: not claimed' gpu list
check "an accelerator" 0 '0000:42:00.0  [1234:abcd]  driver none' gpu list
check "the largest BAR" 0 'would claim BAR 1 of 0000:41:00.0, 16384 MiB, as /dev/weir_p2p/0000:41:00.0-1, for group weir' \
  gpu claim --dry-run --group weir 41:00.0
check "another BAR" 0 'would claim BAR 3 of 0000:41:00.0, 32 MiB' gpu claim --dry-run --bar 3 41:00.0
check "no such BAR" 1 'it has no memory in that BAR' gpu claim --dry-run --bar 5 41:00.0
check "too small a BAR" 1 'is no multiple of 2 MiB' gpu claim --dry-run 42:00.0
check "too small a BAR, then one that is not" 1 'would claim BAR 1 of 0000:41:00.0' gpu claim --dry-run 42:00.0 41:00.0
check "no such GPU" 1 'there is no such PCI device' gpu claim --dry-run f3:00.0
check "no module" 1 'the kernel module is not loaded: modprobe weir_p2p' gpu claim 41:00.0
check "no window" 1 'it has no window' gpu unclaim --dry-run 41:00.0
mkdir -p "$root/dev/weir_p2p"; : >"$root/dev/weir_p2p/0000:41:00.0-1"; chmod 0600 "$root/dev/weir_p2p/0000:41:00.0-1"
check "a window" 0 'BAR 1, 16384 MiB: claimed, /dev/weir_p2p/0000:41:00.0-1, for root alone' gpu list 41:00.0
chmod 0660 "$root/dev/weir_p2p/0000:41:00.0-1"
check "a window for a group" 0 "claimed, /dev/weir_p2p/0000:41:00.0-1, for root and group $(stat -c %G "$root/dev/weir_p2p/0000:41:00.0-1")" gpu list 41:00.0
check "a window to give back" 0 'would give back BAR 1 of 0000:41:00.0' gpu unclaim --dry-run 41:00.0
# Of two windows the one that was asked for, and no other.
: >"$root/dev/weir_p2p/0000:41:00.0-3"
output=$("$bind" --root "$root" gpu unclaim --dry-run 41:00.0 2>&1)
[ "$output" = $'would give back BAR 1 of 0000:41:00.0\nwould give back BAR 3 of 0000:41:00.0' ]
report $? "both windows" "$output"
for bar in 1 3; do
  output=$("$bind" --root "$root" gpu unclaim --dry-run --bar $bar 41:00.0 2>&1)
  [ "$output" = "would give back BAR $bar of 0000:41:00.0" ]
  report $? "the window of BAR $bar alone" "$output"
done
check "a BAR without a window" 1 'it has no window' gpu unclaim --dry-run --bar 0 41:00.0
rm "$root/dev/weir_p2p/0000:41:00.0-3"
output=$("$bind" --root "$root" --json gpu list)
python3 - "$output" <<'EOF'
import json, sys
rows = {row["address"]: row for row in json.loads(sys.argv[1])["gpus"]}
assert list(rows) == ["0000:41:00.0", "0000:42:00.0"], list(rows)
assert [(bar["bar"], bar["window"]) for bar in rows["0000:41:00.0"]["bars"]] == [(0, False), (1, True), (3, False)]
EOF
report $? "GPUs as JSON" "$output"
check "gpu alone" 2 'give gpu list, gpu claim or gpu unclaim' gpu
check "a bad BAR" 2 'from 0 to 5' gpu claim --bar 7 41:00.0
check "a BAR of an SSD" 2 'bar and --group are for gpu' bind --bar 1 05:00.0
check "a group of an SSD" 2 'bar and --group are for gpu' unbind --group weir 05:00.0
check "a list that would change nothing" 2 'gpu list changes nothing' gpu list --dry-run
check "a list of one BAR" 2 'gpu list changes nothing' gpu list --bar 1
check "a list for a group" 2 'gpu list changes nothing' gpu list --group weir
check "JSON of a claim" 2 'json is for gpu list alone' gpu claim --json 41:00.0
check "JSON of a bind" 2 'json is for show alone' bind --json 05:00.0
check "a show that would change nothing" 2 'dry-run is not for show' show --dry-run
check "a claim of nothing" 2 'which GPUs?' gpu claim
echo "1..$count"
