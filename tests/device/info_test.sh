#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-info lists what there is, as text and as JSON, and says why the rest is not there.
# usage: info_test.sh WEIR-INFO [PRETENDED FIRST SECOND]
#        PRETENDED: devices that are none, to preload; FIRST, SECOND: what holds for them, in Python over d
set -u
info=$1 pretended=${2-} first=${3-True} second=${4-True}
count=0

check() { # check NAME STATUS WORDS COMMAND...: exit status, and output with WORDS
  local name=$1 status=$2 words=$3 output rc; shift 3
  count=$((count + 1))
  output=$(timeout 600 "$@" 2>&1); rc=$?
  if [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output"; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s (status %s, expected %s and /%s/)\n' "$count" "$name" "$rc" "$status" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

# what: a Python expression over d, the device named
json() { # json NAME DEVICE WHAT [LIBRARY [ARGUMENT...]]
  check "$1" 0 '^True$' python3 -c '
import json, subprocess, sys
info, device, what, library = sys.argv[1:5]
output = subprocess.run(["env", "LD_PRELOAD=" + library, info, "--json"] + sys.argv[5:], check=True, capture_output=True).stdout
d = [row for row in json.loads(output)["devices"] if row["device"] == device][0]
print(bool(eval("(" + what + ")")) or d)' "$info" "$2" "$3" "${4-}" "${@:5}"
}

check "the cpu is there" 0 '^cpu +cpu \([0-9]+ workers?, wave width 1\)' "$info"
check "memory" 0 'memory +[0-9.]+ GiB, [0-9.]+ of them free' "$info" cpu
check "a name that is no device" 1 'nosuch +none: no backend "nosuch"' "$info" nosuch
check "one good and one bad name" 1 'cpu +cpu ' "$info" cpu nosuch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
long=$work/$(printf 'a%.0s' {1..100})
truncate -s 64M "$long"
check "a long name, the whole of it" 0 'a{100} +cpu ' "$info" "cpu:memory=$long"
check "an option that is none" 2 'weir-info --help' "$info" --frobnicate
check "help" 0 'usage: weir-info' "$info" --help
json "JSON: cpu" cpu 'd["usable"] and 0 < d["memory_free_bytes"] <= d["memory_bytes"] and d["wave_lanes"] == 1
  and d["pci_address"] is None and d["peer_writes"] == "ordered-all"'
# A machine out of a file: its GPUs are listed though no backend has them.
machine=$(dirname "$0")/gpus_machine.xml
check "GPUs: one with a name" 0 'GPU 0000:c3:00.0 Example Graphics E1000 \[1234:0a01\]' env HWLOC_XMLFILE="$machine" "$info"
check "GPUs: why not" 0 'none, no backend can use it: the machine is one out of a file' env HWLOC_XMLFILE="$machine" "$info"
check "GPUs: a disk nearby" 0 'nvme0n1 +PCI 0000:c4:00.0, same switch' env HWLOC_XMLFILE="$machine" "$info"
check "GPUs: an unused controller" 0 'PCI 0000:c6:00.0, same NUMA node' env HWLOC_XMLFILE="$machine" "$info"
check "GPUs: not beside a name" 0 '^False$' bash -c 'HWLOC_XMLFILE=$1 "$2" cpu | grep -q GPU && echo True || echo False' - "$machine" "$info"
check "GPUs: this machine's, or none" 0 '^GPU [0-9a-f]{4}|^no GPU can be seen on this machine$' "$info"
check "GPUs: JSON" 0 '^True$' python3 -c '
import json, os, subprocess, sys
gpus = json.loads(subprocess.run([sys.argv[1], "--json"], check=True, capture_output=True,
                                 env=dict(os.environ, HWLOC_XMLFILE=sys.argv[2])).stdout)["gpus"]
a, b = [g for g in gpus if g["pci_address"] in ("0000:41:00.0", "0000:c3:00.0")]
print(a["vendor_id"] == "abcd" and a["vendor"] is None and a["numa_node"] == 1 and a["device"] is None and a["number"] is None
      and b["vendor"] == "Example Graphics" and [d["distance"] for d in a["disks"]] == ["root-port", "numa-node", "across", "across"]
      and [d["name"] for d in b["disks"]] == ["nvme0n1", None, "sda", "nvme1n1"] and b["disks"][0]["distance"] == "switch" or gpus)' \
  "$info" "$machine"
check "a GPU by its number" 1 'gpu:99 +none: (there is no gpu:99|no GPU that a backend can use)' "$info" gpu:99
check "a malformed address" 1 'gpu:41:00 +none: "gpu:41:00" names no GPU' "$info" gpu:41:00
if [ -n "$pretended" ]; then
  kind=$(basename "$pretended" .so); kind=${kind#weir_pretended_}
  json "JSON: the first pretended device" "$kind:0" 'd["usable"] and d["pci_address"] == "0000:a1:00.0"
    and d["memory_bytes"] == 16 << 30 and d["workers"] == 3
    and '"$first" "$pretended"
  json "JSON: the second pretended device" "$kind:1" 'd["usable"] and d["pci_address"] == "0000:b1:00.0"
    and '"$second" "$pretended"
  json "by address" "$kind:0000:B1:00.0" 'd["pci_address"] == "0000:b1:00.0"' "$pretended" "$kind:0000:B1:00.0"
  json "by address, whoever has it" gpu:a1:00.0 'd["name"].startswith("'"$kind"':0 ")' "$pretended" gpu:a1:00.0
  json "by number" gpu:1 'd["pci_address"] == "0000:b1:00.0"' "$pretended" gpu:1
  check "its GPU is listed" 0 'gpu:0, which is '"$kind:0" env LD_PRELOAD="$pretended" "$info"
  check "none at that address" 1 "$kind has no device at c1:00.0: $kind:0 at 0000:a1:00.0, $kind:1 at 0000:b1:00.0" \
    env LD_PRELOAD="$pretended" "$info" "$kind:c1:00.0"
fi
printf '1..%d\n' "$count"
