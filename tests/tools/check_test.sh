#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-check over machines that are folders: what it says of each, how it ends, and that what is missing is "unknown".
# usage: check_test.sh WEIR-CHECK [zlib]
set -u
. "$(dirname "$0")/../rig/report.sh"
check=$1 zlib=${2-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
root=
kernel=6.1.0-9-generic

put() { mkdir -p "$(dirname "$root$1")"; printf '%s\n' "$2" >"$root$1"; }

# machine NAME [IOMMU-LESS]: what all have: a kernel with all that is needed, vfio-pci and its file, no limits
machine() {
  root=$work/$1
  mkdir -p "$root"/sys/{kernel/iommu_groups,bus/pci/{devices,drivers/vfio-pci},module/vfio_iommu_type1,block} "$root"/dev/vfio "$root"/run
  put /proc/sys/kernel/osrelease $kernel
  put /proc/cmdline 'BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=nopt quiet'
  put /proc/self/limits 'Max locked memory         unlimited            unlimited            bytes'
  put /proc/cpuinfo $'vendor_id\t: GenuineIntel\ncpu family\t: 6'
  put /proc/sys/kernel/io_uring_disabled 0
  put /boot/config-$kernel $'CONFIG_PCI_P2PDMA=y\nCONFIG_ZONE_DEVICE=y\nCONFIG_IOMMU_API=y\nCONFIG_VFIO=m\nCONFIG_VFIO_PCI=m\nCONFIG_VFIO_IOMMU_TYPE1=m\n# CONFIG_IOMMUFD is not set'
  : >"$root/dev/vfio/vfio"
}

# function_ PLACE CLASS ID GROUP DRIVER [NODE]: PLACE is pciDOMAIN:BUS/BRIDGE/.../ADDRESS; 64 bytes of configuration
function_() {
  local folder=$root/sys/devices/$1 address=${1##*/}
  mkdir -p "$folder" "$root/sys/bus/pci/devices"
  ln -s "$folder" "$root/sys/bus/pci/devices/$address"
  echo "$2" >"$folder/class"; echo "0x${3%:*}" >"$folder/vendor"; echo "0x${3#*:}" >"$folder/device"
  echo "${6:--1}" >"$folder/numa_node"
  config "$address" header
  if [ -n "$4" ]; then
    mkdir -p "$root/sys/kernel/iommu_groups/$4/devices"
    ln -s "$root/sys/kernel/iommu_groups/$4" "$folder/iommu_group"; echo DMA-FQ >"$root/sys/kernel/iommu_groups/$4/type"
    ln -s "$folder" "$root/sys/kernel/iommu_groups/$4/devices/$address"
  fi
  [ -z "$5" ] || { mkdir -p "$root/sys/bus/pci/drivers/$5"; ln -s "$root/sys/bus/pci/drivers/$5" "$folder/driver"; }
}

# config ADDRESS header|none|off|on|0xNN|short: a configuration space; ACS is the second capability of two, 0xNN its control
config() {
  local file=$root/sys/bus/pci/devices/$1/config control='\x00'
  case $2 in on) control='\x1d' ;; 0x??) control="\\${2#0}" ;; esac
  {
    printf '\x86\x80\x34\x12'; head -c 60 /dev/zero
    case $2 in
      short) head -c 192 /dev/zero ;;
      none | off | on | 0x??)
        head -c 192 /dev/zero
        if [ "$2" = none ]; then printf '\x01\x00\x01\x00'; else printf '\x01\x00\x01\x14'; fi
        head -c 60 /dev/zero; printf '\x0d\x00\x01\x00\x5f\x00'"$control"'\x00'; head -c 3768 /dev/zero ;;
    esac
  } >"$file"
}

# disk ADDRESS CONTROLLER NAMESPACE NUMBER: a namespace with a file in /dev
disk() {
  mkdir -p "$root/sys/bus/pci/devices/$1/nvme/$2/$3" "$root/sys/block/$3/holders"
  echo 'Example SSD   ' >"$root/sys/bus/pci/devices/$1/nvme/$2/model"
  echo "$4" >"$root/sys/block/$3/dev"; : >"$root/dev/$3"
}

# gpu PLACE ID GROUP [NODE [BAR1-END]]: 16 MiB in BAR 0; 32 GiB or what is asked for in BAR 1
gpu() {
  function_ "$1" 0x030200 "$2" "$3" gpudriver "${4:--1}"
  printf '0x%x 0x%x 0x40200\n' $((0xa0000000)) $((0xa0ffffff)) 0x380000000000 "${5:-0x3807ffffffff}" 0 0 >"$root/sys/devices/$1/resource"
  sed -i '2s/0x40200/0x14220c/' "$root/sys/devices/$1/resource"
}

# told ADDRESS: weir-info --json has been there, and says that a backend has the GPU, of 24 GiB
told() {
  cat >"$root/weir-info.json" <<END
{"devices": [{"device": "cpu"}, {"device": "some:0", "memory_bytes": $((24 << 30)), "dma_buf": true, "peer_dma": true,
  "map_registers": false, "map_registers_why": "it is told not to", "export_memory": true, "export_memory_why": ""}],
 "gpus": [{"pci_address": "$1", "vendor": "Example", "model": "Graphics", "device": "some:0", "number": 0, "why": null}]}
END
}

# what: in Python: d is the report, m its machine, pair(LANES, SSD), says(VERDICT) all its reasons and remedies
cat >"$work/ask.py" <<'EOF_ASK'
import json, subprocess, sys
root, wanted, what, check = sys.argv[1:5]
done = subprocess.run([check, "--json", "--root", root] + sys.argv[5:], capture_output=True, timeout=300)
try:
    d = json.loads(done.stdout)
except ValueError:
    d = {"machine": {}, "pairs": [], "no JSON": done.stdout.decode(errors="replace")}
m = d["machine"]
def pair(lanes="cpu", ssd="0000:03:00.0"): return next(p for p in d["pairs"] if (p["lanes"], p["ssd"]) == (lanes, ssd))
def gpu(address): return next(g for g in d["gpus"] if g["pci_address"] == address)
def ssd(address="0000:03:00.0"): return next(s for s in d["ssds"] if s["pci_address"] == address)
def path(name, *where): return pair(*where)["paths"][name]
def answers(*where): return " ".join(path(n, *where)["answer"] for n in ("direct", "module", "pull", "proxy"))
def says(verdict): return " | ".join(f'{r["answer"]}: {r["why"]}; {r["remedy"]}' for r in verdict["reasons"])
def keys(x):
    if isinstance(x, list): return [k for y in x for k in keys(y)]
    return [k for k, y in x.items() for k in [k] + keys(y) if not k.isupper()] if isinstance(x, dict) else []
error = done.stderr.decode(errors="replace")
try:
    good = bool(eval("(" + what + ")"))
except Exception as e:
    good, error = False, repr(e)
if not good or str(done.returncode) != wanted:
    print(f"status {done.returncode}, {error}\n{json.dumps(d, indent=1)}")
    sys.exit(1)
EOF_ASK

expect() { # expect NAME STATUS PYTHON ARGUMENTS...
  local name=$1 output; shift
  output=$(timeout 600 python3 "$work/ask.py" "$root" "$1" "$2" "${wrapper:-$check}" "${@:3}" 2>&1)
  report $? "$name" "$output"
}

text() { # text NAME STATUS WORDS ARGUMENTS...
  local name=$1 status=$2 words=$3 output rc; shift 3
  output=$(timeout 200 "$check" --root "$root" "$@" 2>&1); rc=$?
  [ "$rc" = "$status" ] && grep -qF -- "$words" <<<"$output"
  report $? "$name" "status $rc: $output"
}

# A machine with nothing wrong, of a controller that is bound, and one that the kernel has.
machine ready
function_ pci0000:00/0000:00:01.0 0x060400 8086:1901 1 pcieport
function_ pci0000:00/0000:00:01.0/0000:03:00.0 0x010802 144d:a80a 13 vfio-pci 0; : >"$root/dev/vfio/13"
function_ pci0000:00/0000:00:1d.0 0x060400 8086:9d18 2 pcieport
function_ pci0000:00/0000:00:1d.0/0000:04:00.0 0x010802 144d:a80a 14 nvme 0; disk 0000:04:00.0 nvme0 nvme0n1 259:0
expect "a bound controller: lanes of the host drive it" 0 'answers() == "yes no no no" and path("direct")["use"] == "nvme:0000:03:00.0"
  and "its driver is vfio-pci: the kernel has no block device of it; as root: weir-bind restore 0000:03:00.0" in says(path("pull"))' --ssd 03:00.0
expect "beside it, one of the kernel's" 1 'answers("cpu", "0000:04:00.0") == "no no yes yes"
  and path("proxy", "cpu", "0000:04:00.0")["use"] == "file:/dev/nvme0n1" and pair()["status"] == 0 and d["status"] == 1
  and "0000:04:00.0 is bound to the driver nvme; as root: weir-bind bind 0000:04:00.0"
  in says(path("direct", "cpu", "0000:04:00.0"))'
expect "the machine's facts" 0 'm["kernel"] == "6.1.0-9-generic" and m["config_file"] == "/boot/config-6.1.0-9-generic" and m["config"]["VFIO"] == "m"
  and m["config"]["PCI_P2PDMA"] == "y" and m["config"]["IOMMUFD"] == "n" and m["iommu"] == "translated" and m["iommu_groups"] == 4
  and m["iommu_options"] == "iommu=nopt" and m["vfio_node"] == "ok" and m["memlock_bytes"] == "unlimited" and m["module"] == "no"' --ssd 03:00.0
expect "an SSD's facts" 1 'ssd("0000:04:00.0") == {"pci_address": "0000:04:00.0", "id": "144d:a80a", "model": "Example SSD", "firmware": None,
  "driver": "nvme", "iommu_group": "14", "iommu_group_type": "DMA-FQ", "iommu_group_others": [], "iommu_bits": None, "numa_node": 0,
  "blocks": [{"name": "nvme0n1", "there": True, "readable": True, "writable": True, "used": None}], "used": None}' --ssd 04:00.0
expect "no GPU: the host's lanes alone" 1 '[g["lanes"] for g in d["gpus"]] == ["cpu"] and len(d["pairs"]) == 2 and pair()["way"] is None'
text "as text" 0 'direct   yes: nvme:0000:03:00.0' --ssd 03:00.0 --gpu cpu
text "the machine as text" 0 'IOMMU    translated, 4 groups; booted with iommu=nopt' --ssd 03:00.0

# What VFIO lacks, one thing at a time.
rm "$root/dev/vfio/13"
expect "no file of the group" 3 'path("direct")["answer"] == "no" and "there is no /dev/vfio/13; as root: modprobe" in says(path("direct"))' --ssd 03:00.0
rm "$root/dev/vfio/vfio"; : >"$root/dev/vfio/13"
expect "no VFIO in /dev" 3 '"there is no /dev/vfio/vfio" in says(path("direct")) and m["vfio_node"] == "No such file or directory"' --ssd 03:00.0
: >"$root/dev/vfio/vfio"
put /proc/self/limits 'Max locked memory         8388608              unlimited            bytes'
expect "little memory may be locked" 3 'path("direct")["answer"] == "unknown" and "8192 KiB may be" in says(path("direct")) and m["memlock_bytes"] == 8388608' --ssd 03:00.0
put /proc/self/limits 'Max locked memory         67108863             67108864             bytes'
expect "a byte too little" 3 'path("direct")["answer"] == "unknown" and m["memlock_bytes"] == 67108863' --ssd 03:00.0
put /proc/self/limits 'Max locked memory         67108864             67108864             bytes'
expect "just enough" 0 'path("direct")["answer"] == "yes" and m["memlock_bytes"] == 67108864' --ssd 03:00.0
put /proc/self/limits 'Max locked memory         4096                 unlimited            bytes'
put /proc/self/status 'CapEff:	0000000000004000'
expect "a privilege lifts that" 0 'm["memlock_bytes"] == "unlimited"' --ssd 03:00.0
put /sys/bus/pci/devices/0000:03:00.0/iommu/intel-iommu/cap d2008c40660462
expect "an IOMMU of 39 bits" 3 '"its IOMMU takes addresses of 39 bits" in says(path("direct")) and ssd()["iommu_bits"] == 39' --ssd 03:00.0
put /sys/bus/pci/devices/0000:03:00.0/iommu/intel-iommu/cap 8d2078c106f0466
expect "and of 57, of which 48 and more will do" 0 'ssd()["iommu_bits"] == 48 and answers() == "yes no no no"' --ssd 03:00.0
sed -i '/VFIO=/d' "$root/boot/config-$kernel"
expect "a kernel without VFIO" 3 '"the kernel is built without VFIO" in says(path("direct")) and m["config"]["VFIO"] == "n"' --ssd 03:00.0
rmdir "$root/sys/bus/pci/drivers/vfio-pci" 2>/dev/null || rm -rf "$root/sys/bus/pci/drivers/vfio-pci"
expect "no driver vfio-pci" 1 '"the kernel has no driver vfio-pci; as root: modprobe" in says(path("direct", "cpu", "0000:04:00.0"))' --ssd 04:00.0
rm "$root/boot/config-$kernel"
expect "no configuration to read" 1 'm["config_file"] is None and set(m["config"].values()) == {None} and "without VFIO" not in says(path("direct", "cpu", "0000:04:00.0"))' --ssd 04:00.0
if [ "$zlib" = zlib ]; then
  printf 'CONFIG_VFIO=y\n' | gzip >"$root/proc/config.gz"
  expect "a compressed one" 1 'm["config_file"] == "/proc/config.gz" and m["config"]["VFIO"] == "y" and m["config"]["PCI_P2PDMA"] == "n"' --ssd 04:00.0
fi
put /proc/sys/kernel/io_uring_disabled 2
expect "no io_uring" 3 'answers("cpu", "0000:04:00.0") == "no no no no" and "io_uring is switched off; as root: sysctl" in says(path("pull", "cpu", "0000:04:00.0"))' --ssd 04:00.0
put /proc/sys/kernel/io_uring_disabled 1
if [ "$(id -u)" = 0 ]; then
  expect "io_uring for root and a group" 1 'm["io_uring"] == "yes" and answers("cpu", "0000:04:00.0") == "no no yes yes"' --ssd 04:00.0
else
  expect "io_uring for root and a group" 3 'm["io_uring"] == "unknown" and answers("cpu", "0000:04:00.0") == "no no unknown unknown"' --ssd 04:00.0
fi

machine no-iommu
function_ pci0000:00/0000:00:01.0 0x060400 8086:1901 '' pcieport
function_ pci0000:00/0000:00:01.0/0000:03:00.0 0x010802 144d:a80a '' nvme; disk 0000:03:00.0 nvme0 nvme0n1 259:0
expect "no IOMMU" 1 'm["iommu"] == "off" and answers() == "no no yes yes" and "it is in no IOMMU group; turn the IOMMU on" in says(path("direct"))'

machine shared
function_ pci0000:00/0000:00:01.0 0x060400 8086:1901 13 pcieport
function_ pci0000:00/0000:00:01.0/0000:03:00.0 0x010802 144d:a80a 13 nvme; disk 0000:03:00.0 nvme0 nvme0n1 259:0
function_ pci0000:00/0000:00:01.0/0000:03:00.1 0x020000 8086:1533 13 netcard
echo identity >"$root/sys/kernel/iommu_groups/13/type"
expect "a group that is shared" 1 'm["iommu"] == "passthrough" and ssd()["iommu_group_others"] == ["0000:03:00.1"]
  and "no: its IOMMU group 13 has devices that other drivers use, which could reach its memory: 0000:03:00.1; bind those" in says(path("direct"))'
text "that as text" 1 'group    shared with 0000:03:00.1'
mkdir "$root/sys/kernel/iommu_groups"/{200,400}; echo DMA >"$root/sys/kernel/iommu_groups/200/type"; echo DMA-FQ >"$root/sys/kernel/iommu_groups/400/type"
expect "groups of both kinds, whose numbers lie apart" 1 'm["iommu"] == "mixed" and m["iommu_groups"] == 3'

machine mounted
function_ pci0000:00/0000:00:01.0 0x060400 8086:1901 1 pcieport
function_ pci0000:00/0000:00:01.0/0000:03:00.0 0x010802 144d:a80a 13 nvme; disk 0000:03:00.0 nvme0 nvme0n1 259:0
put /proc/self/mountinfo '23 22 259:0 / /data rw,relatime - xfs /dev/nvme0n1 rw'
expect "a mounted one: not through VFIO, files are served" 1 'answers() == "no no yes yes" and "it is in use: nvme0n1 is mounted on /data" in says(path("direct"))
  and path("pull")["use"] == "file:PATH, a file there: nvme0n1 is mounted on /data" and "weir-bind" not in says(path("direct"))'
mv "$root/sys/bus/pci/devices/0000:03:00.0/nvme/nvme0/nvme0n1" "$root/sys/bus/pci/devices/0000:03:00.0/nvme/nvme0/nvme0c0n1"
mkdir -p "$root/sys/block/nvme0c0n1"
expect "the same where namespaces have several controllers" 1 'ssd()["used"] == "nvme0n1 is mounted on /data" and path("direct")["answer"] == "no"'
put /proc/self/mountinfo '22 1 8:1 / / rw - ext4 /dev/sda1 rw'
mkdir "$root/sys/block/nvme0n1/holders/md0"
expect "a part of md" 3 'answers() == "no no no no" and "nvme0n1 is part of md0" in says(path("proxy"))'
disk 0000:03:00.0 nvme0 nvme0n2 259:1
expect "another namespace, which is free" 1 'answers() == "no no yes yes" and path("pull")["use"] == "file:/dev/nvme0n2" and ssd()["used"] == "nvme0n1 is part of md0"
  and [b["used"] for b in ssd()["blocks"]] == ["nvme0n1 is part of md0", None]'
rm -r "$root/sys/bus/pci/devices/0000:03:00.0/nvme/nvme0/nvme0n2" "$root/sys/block/nvme0n2" "$root/dev/nvme0n2"
rmdir "$root/sys/block/nvme0n1/holders/md0"; rm "$root/dev/nvme0n1"
expect "no file in /dev" 3 'path("pull")["answer"] == "unknown" and "there is no /dev/nvme0n1 here" in says(path("pull"))'
: >"$root/dev/nvme0n1"; chmod 600 "$root/dev/nvme0n1" "$root/dev/vfio/vfio"
wrapper=$check
if [ "$(id -u)" = 0 ]; then # some rights are root's by being root
  chmod -R a+rX "$work"; chmod 600 "$root/dev/nvme0n1"
  printf '#!/bin/sh\nexec setpriv --reuid 65534 --clear-groups "%s" "$@"\n' "$(realpath "$check")" >"$work/nobody"; chmod 755 "$work/nobody"
  wrapper=$work/nobody
fi
if [ "$(id -u)" = 0 ] && ! timeout 100 "$wrapper" --version >/dev/null 2>&1; then
  count=$((count + 3)); for number in $((count - 2)) $((count - 1)) $count; do echo "ok $number - permissions # SKIP cannot be another user here"; done
else
  [ "$(id -u)" = 0 ] || chmod 000 "$root/dev/nvme0n1"
  expect "no permission" 3 'path("pull")["answer"] == "no" and "no permission to read /dev/nvme0n1; as root: setfacl" in says(path("pull"))'
  chmod 444 "$root/dev/nvme0n1"
  rm "$root/sys/bus/pci/devices/0000:03:00.0/driver"; ln -s "$root/sys/bus/pci/drivers/vfio-pci" "$root/sys/bus/pci/devices/0000:03:00.0/driver"
  : >"$root/dev/vfio/13"; chmod 600 "$root/dev/vfio/13"; [ "$(id -u)" = 0 ] || chmod 000 "$root/dev/vfio/13" "$root/dev/vfio/vfio"
  expect "no permission for VFIO" 1 'm["vfio_node"] == "Permission denied" and path("direct")["answer"] == "no"
    and all(f"no permission to open {node}; " in says(path("direct")) for node in ("/dev/vfio/vfio", "/dev/vfio/13"))'
  rm "$root/sys/bus/pci/devices/0000:03:00.0/driver" "$root/dev/vfio/13"; ln -s "$root/sys/bus/pci/drivers/nvme" "$root/sys/bus/pci/devices/0000:03:00.0/driver"
  expect "permission to read" 1 'path("pull")["use"].startswith("file:/dev/nvme0n1?ro=1") and not ssd()["blocks"][0]["writable"]'
fi
wrapper=

# A switch with a GPU and an SSD below it, on a host bridge that nobody knows.
machine switch
function_ pci0000:00/0000:00:00.0 0x060000 8086:9999 0 ''
function_ pci0000:00/0000:00:01.0 0x060400 8086:1901 1 pcieport
function_ pci0000:00/0000:00:01.0/0000:01:00.0 0x060400 10b5:8747 2 pcieport
function_ pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0 0x060400 10b5:8747 3 pcieport
function_ pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:10.0 0x060400 10b5:8747 4 pcieport
function_ pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/0000:03:00.0 0x010802 144d:a80a 13 vfio-pci 0; : >"$root/dev/vfio/13"
gpu pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:10.0/0000:41:00.0 1234:5678 14 0
put /sys/module/gpudriver/version 550.54
expect "a GPU of a vendor that nobody knows, and of which nobody tells" 3 'gpu("0000:41:00.0")["id"] == "1234:5678" and gpu("0000:41:00.0")["usable"] == "unknown"
  and gpu("0000:41:00.0")["vendor"] is None and path("pull", "0000:41:00.0")["answer"] == "no" and pair()["status"] == 0
  and "unknown: whether a backend can use the GPU is not known" in says(path("pull", "0000:41:00.0"))'
told 0000:41:00.0
expect "a GPU's facts" 0 '{k: gpu("0000:41:00.0")[k] for k in ("lanes", "name", "device", "usable", "vendor", "model", "driver", "driver_version", "memory_bytes",
  "memory_visible", "dma_buf", "peer_dma", "map_registers", "map_registers_why", "export_memory", "export_memory_why", "iommu_group", "numa_node", "bar_could_bytes")} == {"lanes": "0000:41:00.0", "name": "gpu:0", "device": "some:0",
  "usable": "yes", "vendor": "Example", "model": "Graphics", "driver": "gpudriver", "driver_version": "550.54", "memory_bytes": 24 << 30, "memory_visible": "yes",
  "dma_buf": "yes", "peer_dma": "yes", "map_registers": "no", "map_registers_why": "it is told not to", "export_memory": "yes", "export_memory_why": None, "iommu_group": "14", "numa_node": 0, "bar_could_bytes": None}
  and gpu("0000:41:00.0")["bars"] == [{"index": 0, "bytes": 16 << 20}, {"index": 1, "bytes": 32 << 30}]'
expect "ACS that only root can read" 0 'pair("0000:41:00.0")["way"]["place"] == "switch" and pair("0000:41:00.0")["way"]["meet"] == "0000:01:00.0"
  and pair("0000:41:00.0")["way"]["acs"] == "unknown" and says(pair("0000:41:00.0")["way"]["peers"]).startswith("unknown: whether bridges between them redirect")'
expect "docs/hardware.md has every key" 0 '[k for k in keys(d) if f"`{k}`" not in open("'"$(dirname "$0")"'/../../docs/hardware.md").read()] == [] and len(set(keys(d))) > 60'
for bridge in 0000:02:08.0 0000:02:10.0; do config $bridge off; done
expect "ACS off: they reach each other" 0 'pair("0000:41:00.0")["way"]["acs"] == "no" and pair("0000:41:00.0")["way"]["peers"] == {"answer": "yes", "use": None, "reasons": []}
  and path("direct", "0000:41:00.0") == {"answer": "yes", "use": "nvme:0000:03:00.0", "reasons": []}'
config 0000:02:08.0 none; config 0000:02:10.0 short
expect "bridges without ACS" 0 'pair("0000:41:00.0")["way"]["acs"] == "no"'
config 0000:02:10.0 on
for control in 0x04 0x08 0x20; do
  config 0000:02:10.0 $control; expect "a bridge that redirects, by $control alone" 0 'pair("0000:41:00.0")["way"]["acs"] == "yes"'
done
config 0000:02:10.0 0x53; expect "controls that redirect nothing" 0 'pair("0000:41:00.0")["way"]["acs"] == "no"'
config 0000:02:10.0 on
expect "ACS on, by way of a host bridge that is not listed" 0 'pair("0000:41:00.0")["way"]["acs"] == "yes"
  and pair("0000:41:00.0")["way"]["bridges"] == [{"pci_address": "0000:02:10.0", "redirects": "yes"}, {"pci_address": "0000:02:08.0", "redirects": "no"}]
  and pair("0000:41:00.0")["way"]["host_bridges"][0]["listed"] == "no" and "passes host bridge 8086:9999" in says(pair("0000:41:00.0")["way"]["peers"])'
text "that as text" 0 'below one switch, 0000:01:00.0; bridges redirect (ACS): yes 0000:02:10.0'
echo 0x09a2 >"$root/sys/bus/pci/devices/0000:00:00.0/device"
expect "ACS on, by way of one that is listed" 0 'pair("0000:41:00.0")["way"]["peers"]["answer"] == "yes"'
echo 0x9999 >"$root/sys/bus/pci/devices/0000:00:00.0/device"; put /proc/cpuinfo $'vendor_id\t: AuthenticAMD\ncpu family\t: 25'
expect "or a processor that is" 0 'pair("0000:41:00.0")["way"]["host_bridges"][0]["listed"] == "yes" and pair("0000:41:00.0")["way"]["peers"]["answer"] == "yes"'
put /proc/cpuinfo $'vendor_id\t: AuthenticAMD\ncpu family\t: 22'
expect "but not an older one" 0 'pair("0000:41:00.0")["way"]["host_bridges"][0]["listed"] == "no" and pair("0000:41:00.0")["way"]["peers"]["answer"] == "unknown"'
put /proc/cpuinfo $'vendor_id\t: GenuineIntel\ncpu family\t: 25'
expect "nor another vendor's" 0 'pair("0000:41:00.0")["way"]["host_bridges"][0]["listed"] == "no"'
put /proc/cpuinfo $'vendor_id\t: AuthenticAMD\ncpu family\t: 23'
expect "the first one that is" 0 'pair("0000:41:00.0")["way"]["host_bridges"][0]["listed"] == "yes"'
expect "the module is not there, and would not be used" 0 'path("module", "0000:41:00.0")["answer"] == "no"
  and says(path("module", "0000:41:00.0")).startswith("no: the kernel module weir_p2p is not loaded; ")'
mkdir -p "$root/sys/module/weir_p2p"; echo 0.1.0 >"$root/sys/module/weir_p2p/version"; sed -i '/P2PDMA/d' "$root/boot/config-$kernel"
expect "the module is there" 0 'm["module"] == "yes" and m["module_version"] == "0.1.0" and "no window of weir_p2p is laid over its memory; as root: weir-bind gpu claim" in says(path("module", "0000:41:00.0"))
  and "no module that pins the GPU" in says(path("module", "0000:41:00.0"))
  and "unknown: without CONFIG_PCI_P2PDMA some drivers" in says(path("module", "0000:41:00.0"))'
mkdir -p "$root/dev/weir_p2p" "$root/sys/module/weir_p2p/holders/weir_p2p_some"; : >"$root/dev/weir_p2p/0000:41:00.0-2"
expect "a window of it, and who pins" 0 'path("module", "0000:41:00.0")["answer"] != "yes" and "window" not in says(path("module", "0000:41:00.0"))
  and "pins" not in says(path("module", "0000:41:00.0"))'
sed -i 's/"peer_dma": true/"peer_dma": false/' "$root/weir-info.json"
expect "a driver that lets nobody in" 0 'pair("0000:41:00.0")["way"]["peers"]["answer"] == "no" and "lets no other device into" in says(path("module", "0000:41:00.0"))
  and path("direct", "0000:41:00.0")["answer"] == "yes"'
text "who rings for its lanes" 0 'doorbell a host thread rings them for its lanes: it is told not to' --gpu gpu:0
text "the name of a GPU" 0 'name     gpu:0, which is some:0' --gpu gpu:0
text "by its backend's name" 0 '0000:41:00.0 with SSD 0000:03:00.0' --gpu some:0
text "by its address" 0 '0000:41:00.0 with SSD 0000:03:00.0' --gpu some:41:00.0 --ssd 0000:03:00.0
expect "a name leaves the others out" 0 '[p["lanes"] for p in d["pairs"]] == ["cpu"] == [g["lanes"] for g in d["gpus"]]' --gpu cpu
rm "$root/sys/bus/pci/devices/0000:03:00.0/driver"; mkdir -p "$root/sys/bus/pci/drivers/nvme"
ln -s "$root/sys/bus/pci/drivers/nvme" "$root/sys/bus/pci/devices/0000:03:00.0/driver"; disk 0000:03:00.0 nvme0 nvme0n1 259:0
expect "a GPU that a backend has pulls" 1 'answers("0000:41:00.0") == "no no yes unknown" and path("pull", "0000:41:00.0")["use"] == "file:/dev/nvme0n1"
  and pair("0000:41:00.0")["status"] == 1'
sed -i 's/"number": 0/"number": null/; s/"why": null/"why": "it is too old"/' "$root/weir-info.json"
expect "one that no backend can use does not count" 1 'answers("0000:41:00.0") == "no no no no" and "no backend can use the GPU: it is too old" in says(path("pull", "0000:41:00.0"))'
expect "unless it is named" 3 'pair("0000:41:00.0")["status"] == 3' --gpu 41:00.0

# Two sockets; a host bridge that lets peers talk only below itself; a GPU whose BAR is small.
machine sockets
function_ pci0000:00/0000:00:00.0 0x060000 8086:2f00 0 ''
function_ pci0000:00/0000:00:01.0 0x060400 8086:2f02 1 pcieport
function_ pci0000:00/0000:00:02.0 0x060400 8086:2f04 2 pcieport
function_ pci0000:00/0000:00:01.0/0000:03:00.0 0x010802 144d:a80a 13 nvme 0; disk 0000:03:00.0 nvme0 nvme0n1 259:0
gpu pci0000:00/0000:00:02.0/0000:05:00.0 1234:5678 15 0 0x38000fffffff
function_ pci0000:80/0000:80:00.0 0x060000 8086:2f01 20 ''
function_ pci0000:80/0000:80:02.0 0x060400 8086:2f04 21 pcieport
gpu pci0000:80/0000:80:02.0/0000:81:00.0 1234:5678 22 1
expect "one host bridge, listed" 3 'pair("0000:05:00.0")["way"]["place"] == "host-bridge" and pair("0000:05:00.0")["way"]["meet"] == "pci0000:00"
  and "host bridge" not in says(pair("0000:05:00.0")["way"]["peers"])'
expect "two sockets, listed for one alone" 3 'pair("0000:81:00.0")["way"]["place"] == "across" and pair("0000:81:00.0")["way"]["meet"] is None
  and pair("0000:81:00.0")["way"]["peers"]["answer"] == "no" and "they are below different host bridges" in says(pair("0000:81:00.0")["way"]["peers"])'
echo 0 >"$root/sys/bus/pci/devices/0000:81:00.0/numa_node"
expect "two host bridges of one node" 3 'pair("0000:81:00.0")["way"]["place"] == "numa-node"'
echo -1 >"$root/sys/bus/pci/devices/0000:81:00.0/numa_node"
expect "nodes that are not told" 3 'pair("0000:81:00.0")["way"]["place"] == "unknown" and "where their ways meet is not known" in says(pair("0000:81:00.0")["way"]["peers"])'
for host in 00 80; do echo 0x2030 >"$root/sys/bus/pci/devices/0000:$host:00.0/device"; done
echo 1 >"$root/sys/bus/pci/devices/0000:81:00.0/numa_node"; told 0000:81:00.0
expect "two sockets, listed for any" 3 'pair("0000:81:00.0")["way"]["peers"]["answer"] == "yes"'
put /sys/bus/pci/devices/0000:05:00.0/resource1_resize 00000000000fff00
expect "a small BAR that could be larger" 3 'gpu("0000:05:00.0")["memory_visible"] == "no" and gpu("0000:05:00.0")["bar_could_bytes"] == 512 << 30
  and "unknown: its largest BAR has 256 MiB, too few for all of its memory" in says(pair("0000:05:00.0")["way"]["peers"])'
function_ pci0000:00/0000:00:01.0/0000:03:00.1 0x030000 1234:5678 13 gpudriver 0
expect "two functions below one root port" 3 'pair("0000:03:00.1")["way"]["place"] == "root-port" and pair("0000:03:00.1")["way"]["meet"] == "0000:00:01.0"
  and "unknown: no bridge is between them" in says(pair("0000:03:00.1")["way"]["peers"]) and "group 13 has devices" in says(path("direct"))'
told 0000:05:00.0; rm "$root/sys/bus/pci/devices/0000:05:00.0/resource1_resize"
expect "a small BAR, beside what the memory has" 3 'gpu("0000:05:00.0")["memory_visible"] == "no" and gpu("0000:05:00.0")["memory_bytes"] == 24 << 30'
rm "$root/weir-info.json"; put /sys/bus/pci/devices/0000:05:00.0/mem_info_vram_total $((256 << 20))
expect "the driver's word on its memory" 3 'gpu("0000:05:00.0")["memory_visible"] == "yes" and gpu("0000:81:00.0")["memory_visible"] == "unknown"'

# What is broken or not there: unknown, and never a crash.
cat >"$work/mess.py" <<'EOF_MESS'
import json, os, shutil, subprocess, sys
check, root, bad = sys.argv[1], sys.argv[2], []
for name in sys.argv[3:]:
    file = root + name
    for how in ("folder", "rubbish", "empty"):
        if os.path.isdir(file) and not os.path.islink(file): shutil.rmtree(file)
        elif os.path.lexists(file): os.unlink(file)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        if how == "folder": os.mkdir(file)
        else: open(file, "wb").write(os.urandom(300) if how == "rubbish" else b"")
        text = subprocess.run([check, "--root", root], capture_output=True, timeout=300).returncode
        done = subprocess.run([check, "--json", "--root", root], capture_output=True, timeout=300)
        try:
            good = json.loads(done.stdout)["status"] == done.returncode == text
        except ValueError:
            good = False
        if not good: bad.append(f"{how} {name}: {text} {done.returncode} {done.stdout[:200]}")
print(*bad, sep="\n")
sys.exit(bool(bad))
EOF_MESS

mess() { # mess NAME FILE...: each becomes a folder, then rubbish, then empty
  local name=$1 output; shift
  output=$(timeout 2000 python3 "$work/mess.py" "$check" "$root" "$@" 2>&1)
  report $? "$name" "$output"
}
ssd=/sys/bus/pci/devices/0000:03:00.0 card=/sys/bus/pci/devices/0000:05:00.0
mess "broken files of the machine" /proc/sys/kernel/osrelease /proc/cmdline /proc/self/limits /proc/cpuinfo /boot/config-$kernel /proc/self/mountinfo /weir-info.json
expect "which leaves unknown" 3 'm["kernel"] is None and m["memlock_bytes"] is None and m["config"]["VFIO"] is None and path("direct")["answer"] == "no"
  and "unknown: how much memory may be locked could not be read" in says(path("direct"))'
mess "broken files of functions" $card/resource $card/numa_node $card/config $card/vendor $card/device $card/driver $ssd/numa_node $ssd/vendor $ssd/nvme/nvme0/model
expect "which leaves unknown, too" 3 'gpu("0000:05:00.0")["bars"] == [] and gpu("0000:05:00.0")["memory_visible"] == "unknown" and ssd()["numa_node"] is None and ssd()["model"] is None'
mess "broken groups and drivers" $ssd/iommu_group $ssd/driver /sys/kernel/iommu_groups/13 /sys/kernel/iommu_groups /dev/vfio
mess "a GPU that is none any more" $card/class $card
machine bare; rm -rf "${root:?}"/*
expect "an empty folder" 3 'm["pci"] is False and m["iommu"] == "unknown" and m["vfio_pci"] == "unknown" and m["module"] == "unknown" and d["pairs"] == []'
text "which has no SSD" 3 'no NVMe controller can be seen on this machine'
text "and no PCI bus" 3 'the bus cannot be seen'
function_ pci/0000:03:00.0 0x010802 144d:a80a '' ''
gpu pci/0000:41:00.0 1234:5678 ''
expect "functions in no tree" 3 'pair("0000:41:00.0")["way"]["place"] == "unknown" and path("direct")["answer"] == "no" and "0000:03:00.0 has no driver; as root: weir-bind bind" in says(path("direct"))
  and "it has no driver: the kernel has no block device of it" in says(path("pull")) and "unknown: whether this process may use io_uring" in says(path("pull"))'
for i in $(seq 10 99); do function_ "pci/0000:$i:00.0" 0x088000 8086:0001 '' ''; done
expect "a controller among a hundred functions" 3 '[s["pci_address"] for s in d["ssds"]] == ["0000:03:00.0"]'

machine nested
function_ pci0000:00/0000:00:0e.0 0x010400 8086:9a0b 5 vmd
function_ pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0 0x060400 8086:9a09 5 pcieport
function_ pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0 0x010802 144d:a80a 5 nvme 0; disk 10000:e1:00.0 nvme0 nvme0n1 259:0
gpu pci0000:00/0000:41:00.0 1234:5678 6 0
expect "an SSD below a host bridge of its own" 1 '"group 5 has devices that other drivers use, which could reach its memory: 0000:00:0e.0" in says(path("direct", "cpu", "10000:e1:00.0"))
  and d["pairs"][0]["paths"]["pull"]["answer"] == "yes"' --gpu cpu --ssd 10000:e1:00.0
expect "and its way to a GPU" 3 'pair("0000:41:00.0", "10000:e1:00.0")["way"]["place"] == "numa-node"
  and [b["pci_address"] for b in pair("0000:41:00.0", "10000:e1:00.0")["way"]["bridges"]] == ["10000:e0:06.0"]' --gpu 41:00.0

machine many
function_ pci0000:00/0000:00:01.0/0000:03:00.0 0x010802 144d:a80a 13 nvme 0; disk 0000:03:00.0 nvme0 nvme0n1 259:0
mkdir "$root/sys/bus/pci/devices/0000:e0:"{00..99}.{0..3}
for folder in "$root/sys/bus/pci/devices/0000:e0:"*; do echo 0x010802 >"$folder/class"; done
expect "one SSD of more than a list holds" 1 '[p["ssd"] for p in d["pairs"]] == ["0000:03:00.0"] and path("pull")["answer"] == "yes"' --ssd 03:00.0
text "an SSD that is not there" 3 'there is no NVMe controller 99:00.0' --ssd 99:00.0
text "a GPU that is not there" 3 'there is no GPU gpu:7' --gpu gpu:7
text "a bad address" 2 'no PCI address such as 0000:65:00.0: 5:0' --ssd 5:0
text "a bad address of a GPU" 2 'no PCI address such as 0000:65:00.0: 41:00' --gpu 41:00
text "no address" 2 'give a PCI address such as 0000:65:00.0' --ssd ''
text "an option that is none" 2 'weir-check --help' --frobnicate
text "a word too many" 2 '"cpu" is one argument too many' cpu
text "help" 0 'usage: weir-check' --help
text "version" 0 'weir-check ' --version
odd=$(printf '%s/\377' "$work")
truncate -s 1M "$odd"
timeout 100 "$check" --json --storage "file:$odd" --storage "file:$odd?ro=2" >"$work/json" 2>/dev/null
python3 - "$work/json" <<'EOF'
import json, sys
storages = json.load(open(sys.argv[1]))["storages"]
assert [one["answer"] for one in storages] == ["yes", "no"] and storages[0]["bytes"] == 1 << 20 and storages[1]["why"], storages
assert storages[0]["uri"].endswith("/?") and storages[1]["uri"].endswith("/??ro=2"), storages
EOF
report $? "storages whose names are no UTF-8" "$(cat "$work/json")"
timeout 100 "$check" --json --storage 'virt:1M?fault=status:code=0x281:op=read' --storage virt:1M >"$work/json" 2>/dev/null; rc=$?
python3 - "$work/json" $rc <<'EOF'
import json, sys
whole = json.load(open(sys.argv[1]))
broken, sound = whole["storages"]
assert sys.argv[2] == "3" and broken["answer"] == "no" and "unrecovered read" in broken["why"] and sound["answer"] == "yes", (broken, sound)
assert list(whole) == ["version", "storages", "status"] and whole["status"] == 3 and list(broken) == ["uri", "answer", "why"], whole
facts = {key: sound[key] for key in ("uri", "bytes", "block_bytes", "read_only")}
assert facts == {"uri": "virt:1M", "bytes": 1 << 20, "block_bytes": 512, "read_only": True} and sound["path"], sound
assert sound["max_transfer_bytes"] >= 65536 and len(sound) == 7, sound
EOF
report $? "a storage whose first block cannot be read" "status $rc: $(cat "$work/json")"
output=$(timeout 100 "$check" --storage 'virt:2M?block=4096' --storage virt:1M 2>&1)
rc=$?
[ $rc = 0 ] && [ "$(grep -cE '^storage  yes  virt:(2M\?block=4096: .*, 2097152 bytes in blocks of 4096|1M: .*, 1048576 bytes in blocks of 512), opened for reading$' <<<"$output")" = 2 ]
report $? "storages as text" "status $rc: $output"
timeout 100 "$check" --json --storage virt:1M >"$work/json" 2>&1 && grep -q '"status": 0' "$work/json"
report $? "a sound storage ends with 0" "$(cat "$work/json")"
timeout 600 "$check" --json >"$work/here" 2>/dev/null; rc=$?
[ $rc -eq 0 ] || [ $rc -eq 1 ] || [ $rc -eq 3 ]; bad=$?
python3 - "$work/here" $rc <<'EOF'
import json, sys
d = json.load(open(sys.argv[1]))
assert list(d) == ["version", "machine", "gpus", "ssds", "pairs", "status"] and d["status"] == int(sys.argv[2]), d
assert d["gpus"][0]["lanes"] == "cpu" and len(d["pairs"]) == len(d["gpus"]) * len(d["ssds"]) and d["machine"]["kernel"], d
EOF
[ $? -eq 0 ] && [ $bad -eq 0 ]
report $? "this machine" "status $rc: $(cat "$work/here")"
echo "1..$count"
