#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-try with the host's lanes and a file, over machines that are folders, and with bad input. No figure is judged.
# usage: try_test.sh WEIR-TRY [LYING]                the library of lying.c, to preload
#        try_test.sh WEIR-TRY BACKEND LIBRARY        lanes of a device that is none alone: its library, to preload
set -u
. "$(dirname "$0")/../rig/report.sh"
try=$1 lying=${2-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/empty"
root=$work/machine functions=$work/machine/sys/bus/pci/devices
short=(--gpu cpu --dir "$work/empty" --size 4M --runtime 0.02)

# ends STATUS NAME TEXT ARGS...: it ends so, says TEXT, and leaves no file
ends() {
  local expected=$1 name=$2 text=$3 said status
  shift 3
  said=$("$try" --dir "$work/empty" "$@" 2>&1)
  status=$?
  [ $status = "$expected" ] && [[ $said == *"$text"* ]] && [ -z "$(ls -A "$work/empty")" ]
  report $? "$name" "status $status: $said"
}

# json NAME EXPRESSION: Python's, of the report r, is true
json() {
  python3 -c "import json, sys; r = json.load(open(sys.argv[1])); sys.exit(0 if ($2) else 1)" "$work/report.json"
  report $? "$1" "$(cat "$work/report.json" 2>&1)"
}

if [ $# = 3 ]; then
  LD_PRELOAD=$(realpath "$3") "$try" --gpu "$2:0" --dir "$work/empty" --size 4M --runtime 0.02 --json >"$work/report.json" 2>"$work/err"
  report $? "lanes of $2 and a file are good" "$(cat "$work/err")"
  json 'all of it was tested with these lanes' "len(r['tests']) == 14 and {t['lanes'] for t in r['tests']} == {'gpu:0'}"
  json 'lanes move the data' "all(t['path'].startswith('pull') for t in r['tests'] if t['test'] == 'poison')"
  json 'a plain kernel is measured beside them' "r['figures'][0]['measured']['plain_iops'] > 0"
  echo "1..$count"
  exit
fi

ends 0 'help' '--destroy-data-on ADDRESS' --help
ends 0 'version' 'weir-try ' --version
ends 2 'an unknown option' 'see weir-try --help' --frobnicate
ends 2 'an argument' '"nvme0n1" is one argument too many' nvme0n1
ends 2 'a disk that is no address' 'takes a PCI address' --destroy-data-on /dev/nvme0n1
ends 2 'a namespace that is no number' 'takes a PCI address' --destroy-data-on 0000:65:00.0/x
ends 2 'namespace 0' 'takes a PCI address' --destroy-data-on 0000:65:00.0/0
ends 2 'a namespace beyond 32 bits' 'takes a PCI address' --destroy-data-on 0000:65:00.0/4294967298
ends 2 'a namespace that means all of them' 'takes a PCI address' --destroy-data-on 0000:65:00.0/4294967295
ends 2 'a namespace with something behind it' 'takes a PCI address' --destroy-data-on 0000:65:00.0/2x
ends 2 'more disks than there may be' 'is given more than 16 times' $(printf -- '--destroy-data-on 0000:f5:%02x.0 ' {0..16})
ends 2 'a file that is too small' 'from 4194304 to' --size 1M
ends 2 'a time that is none' '--runtime does not take "soon"' --runtime soon
ends 2 'a GPU that is not there' 'no backend can use gpu:77' --gpu gpu:77 --size 4M
ends 2 'one GPU of two that is not there' 'no backend can use gpu:77' --gpu cpu --gpu gpu:77 --size 4M
ends 1 'a folder that is not there' 'no temporary file' --dir "$work/nowhere" --size 4M

# Of a machine that cannot be looked at nothing is known: descriptors are too few. (Sanitizers need some.)
said=$(ulimit -n 4; "$try" --dir "$work/empty" --size 4M --runtime 0.02 2>&1)
status=$?
[ $status = 1 ] && [[ $said == *'nothing was tested'* || $said == *anitizer* ]]
report $? 'nothing tested is no success' "status $status: $said"

"$try" "${short[@]}" --report "$work/report" >"$work/out" 2>"$work/err"
report $? 'the host'"'"'s lanes and a file are good' "$(cat "$work/out" "$work/err")"
cmp -s <(sed '$d' "$work/out") "$work/report.txt" || cmp -s "$work/out" "$work/report.txt"
report $? 'the report is what was printed' "$(diff "$work/out" "$work/report.txt")"
[ -z "$(ls -A "$work/empty")" ]
report $? 'the temporary file is gone'
json 'nothing failed, and it counts' "r['failed'] == 0 and r['good'] == sum(t['verdict'] == 'good' for t in r['tests'] + r['figures']) > 10"
json 'each way is tried with poison' "{t['keys'] for t in r['tests'] if t['test'] == 'poison'} == {'', 'mover=pull', 'doorbell=host', 'engine=threads'}"
json 'ways differ' "len({t['path'] for t in r['tests'] if t['test'] == 'poison'}) == 4"
json 'queues and caches are tested' "sum(t['test'].startswith('queue: ') for t in r['tests']) == 6 and sum(t['test'].startswith('cache: ') for t in r['tests']) == 4"
json 'weir and pread are measured' "all(r['figures'][0]['measured'][k] > 0 for k in ('iops', 'pread_iops'))"
json 'of the size and for the time that were asked for' "r['storages'][0]['bytes'] == 4 << 20 and
  all(f['measured']['size'] == 4 << 20 and f['measured']['runtime_s'] == 0.02 and f['measured']['runs'] == 3 for f in r['figures'])"
if command -v fio >/dev/null; then
  json 'so is fio' "r['figures'][0]['measured']['fio_iops'] > 0"
else
  json 'fio is missing, which is said' "r['figures'][0]['why'] == 'fio is not installed'"
fi
json 'what the machine lacks is said' "all(m['why'] for m in r['missing']) and 'kernel' in r['machine']['machine']"

# A report that is not written, or half of it, is no success.
output=$("$try" "${short[@]}" --report "$work/nowhere/report" 2>&1 >/dev/null)
[ $? = 1 ] && grep -qF "cannot write $work/nowhere/report.txt: No such file or directory" <<<"$output"
report $? 'a report that cannot be written' "$output"
mkdir "$work/half.json"
output=$("$try" "${short[@]}" --report "$work/half" 2>&1 >/dev/null)
[ $? = 1 ] && grep -qF "cannot write $work/half.json: Is a directory" <<<"$output" && grep -q 'good, 0 failed' "$work/half.txt"
report $? 'half of a report' "$output"

# Wrong ones are found: without these the tests above would prove nothing. What takes many blocks to show has longer runs on a
# machine that is busy.
wrong() { # NAME LIES KEYS EXPRESSION [RUNTIME...]
  local name=$1 lies=$2 keys=$3 expression=$4 status
  shift 4
  for runtime in 0.02 "$@"; do
    WEIR_LYING=$lies LD_PRELOAD=${lies:+$lying} "$try" "${short[@]}" --runtime "$runtime" --file-keys "$keys" --json >"$work/report.json" 2>/dev/null
    status=$?
    [ $status = 0 ] || break
  done
  [ $status = 1 ]
  report $? "$name: ends with 1"
  json "$name" "$expression"
}
wrong 'a read error is found' '' 'fault=status:code=0x281:op=read:after=100' \
  "'unrecovered read error' in r['tests'][0]['why'] and r['failed'] == 1 == len(r['tests']) and not r['figures']"
if [ -n "$lying" ]; then
  lying=$(realpath "$lying")
  wrong 'reads that bring nothing are found by their poison' reads:100 'engine=threads&direct=off' \
    "'as they were before the read' in r['tests'][0]['why'] and ' 0 of them' not in r['tests'][0]['why']"
  wrong 'writes that are lost are found' writes:100 'engine=threads&direct=off' "'words are wrong, 0 of them' in r['tests'][0]['why']"
  # the self-test reads 2,048 blocks, of which a process has no more
  wrong 'a suite finds what the self-test had no time for' reads:2200 'engine=threads&direct=off' \
    "r['tests'][0]['verdict'] == 'good' and any('do not hold what was written' in t['why'] for t in r['tests'])" 0.2 2 20
fi
"$try" "${short[@]}" --file-keys depth=4 --json >"$work/report.json" 2>/dev/null
json 'a storage that does not open' "\"key 'depth'\" in r['tests'][0]['why'] and r['tests'][0]['verdict'] == 'failed'"

# A machine in a folder: disks that must not be touched.
function_() { # ADDRESS CLASS DRIVER
  mkdir -p "$functions/$1" "$root/sys/bus/pci/drivers/$3" "$root"/{dev,proc/self,sys/block}
  echo "$2" >"$functions/$1/class"; echo 0x1234 >"$functions/$1/vendor"; echo 0xabcd >"$functions/$1/device"
  ln -s "$root/sys/bus/pci/drivers/$3" "$functions/$1/driver"
}
disk() { # ADDRESS CONTROLLER NAMESPACE MAJOR:MINOR SERIAL [PARTITION MAJOR:MINOR]
  mkdir -p "$functions/$1/nvme/$2/$3" "$root/sys/block/$3/holders"
  echo "$5   " >"$functions/$1/nvme/$2/serial"; echo "Example $5 SSD" >"$functions/$1/nvme/$2/model"
  echo "$4" >"$root/sys/block/$3/dev"; : >"$root/dev/$3"
  [ $# -lt 7 ] || { mkdir -p "$root/sys/block/$3/$6/holders"; echo "$7" >"$root/sys/block/$3/$6/dev"; }
}
function_ 0000:01:00.0 0x010802 nvme; disk 0000:01:00.0 nvme0 nvme0n1 259:0 SN-AAAA-1
function_ 0000:02:00.0 0x010802 nvme; disk 0000:02:00.0 nvme1 nvme1n1 259:2 SN-BBBB-2 nvme1n1p1 259:3
function_ 0000:03:00.0 0x010802 nvme; disk 0000:03:00.0 nvme2 nvme2n1 259:4 SN-CCCC-3
function_ 0000:04:00.0 0x010802 nvme; disk 0000:04:00.0 nvme3 nvme3n1 259:6 SN-DDDD-4; mkdir "$root/sys/block/nvme3n1/holders/md0"
function_ 0000:05:00.0 0x010802 nvme; disk 0000:05:00.0 nvme4 nvme4n1 259:8 SN-EEEE-5
function_ 0000:06:00.0 0x020000 netcard
echo '22 1 259:0 / /data rw - ext4 /dev/nvme0n1 rw' >"$root/proc/self/mountinfo"
printf 'Filename Type Size Used Priority\n/dev/nvme2n1 partition 1 0 -2\n' >"$root/proc/swaps"
refused() { ends 2 "$1" "$3; nothing was written" --root "$root" --destroy-data-on "$2"; }
refused 'a mounted disk is refused' 0000:01:00.0 'it is in use: nvme0n1 is mounted on /data'
refused 'one with partitions is' 02:00.0 'it holds the partition nvme1n1p1; if nobody needs what is there, wipefs -a or blkdiscard first'
refused 'one that is swapped on is' 0000:03:00.0 'it is in use: nvme2n1 is swapped on'
refused 'one that is part of md is' 0000:04:00.0 'it is in use: nvme3n1 is part of md0'
refused 'what is no SSD is' 0000:06:00.0 'there is no NVMe controller; weir-check lists those that are there'
refused 'what is not there is' 0000:77:00.0 'there is no NVMe controller; weir-check lists those that are there'
refused 'a disk of another machine is' 0000:05:00.0 'with --root the machine is one in a folder, which has no disks'
ends 2 'one bad disk of two stops all' 'nvme0n1 is mounted' --root "$root" --destroy-data-on 0000:01:00.0 --destroy-data-on 0000:05:00.0

"$try" "${short[@]}" --root "$root" --report "$work/report" >"$work/out" 2>&1
report $? 'what a machine in a folder lacks is no error' "$(cat "$work/out")"
grep -q 'Example \*\*\*\*\*\*\*\*\* SSD' "$work/report.txt" && ! grep -q 'SN-' "$work/report.txt" "$work/report.json" "$work/out"
report $? 'serial numbers are masked' "$(grep -n 'SN-' "$work/report.txt" "$work/report.json")"
json 'each SSD that lanes cannot drive is named with what to do' \
  "sum(m['what'] == 'cpu driving 0000:05:00.0' and m['why'] != '' for m in r['missing']) > 0"

echo "1..$count"
