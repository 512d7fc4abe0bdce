#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-info lists what there is, as text and as JSON, and says why the rest is not there.
# usage: info_test.sh WEIR-INFO [PRETENDED]    PRETENDED: devices that are none, to preload
set -u
info=$1 pretended=${2-}
count=0

check() { # check NAME STATUS WORDS COMMAND...: exit status, and output with WORDS
  local name=$1 status=$2 words=$3 output rc; shift 3
  count=$((count + 1))
  output=$(timeout 60 "$@" 2>&1); rc=$?
  if [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output"; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s (status %s, expected %s and /%s/)\n' "$count" "$name" "$rc" "$status" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

# what: a Python expression over d, the device named
json() { # json NAME DEVICE WHAT [LIBRARY]
  check "$1" 0 '^True$' python3 -c '
import json, subprocess, sys
info, device, what, library = sys.argv[1:]
output = subprocess.run(["env", "LD_PRELOAD=" + library, info, "--json"], check=True, capture_output=True).stdout
d = [row for row in json.loads(output)["devices"] if row["device"] == device][0]
print(bool(eval("(" + what + ")")) or d)' "$info" "$2" "$3" "${4-}"
}

check "the cpu is there" 0 '^cpu +cpu \([0-9]+ workers?, wave width 1\)' "$info"
check "memory" 0 'memory +[0-9.]+ GiB, [0-9.]+ of them free' "$info" cpu
check "a name that is no device" 1 'nosuch +none: no backend "nosuch"' "$info" nosuch
check "one good and one bad name" 1 'cpu +cpu ' "$info" cpu nosuch
check "an option that is none" 2 'weir-info --help' "$info" --frobnicate
check "help" 0 'usage: weir-info' "$info" --help
json "JSON: cpu" cpu 'd["usable"] and 0 < d["memory_free_bytes"] <= d["memory_bytes"] and d["wave_lanes"] == 1
  and d["pci_address"] is None and d["peer_writes"] == "ordered-all"'
if [ -n "$pretended" ]; then
  kind=$(basename "$pretended" .so); kind=${kind#weir_pretended_}
  json "JSON: the first pretended device" "$kind:0" 'd["usable"] and d["pci_address"] == "0000:a1:00.0"
    and d["numa_node"] == 0 and d["dma_buf"] and d["peer_dma"] and d["peer_writes"] == "ordered"
    and d["memory_bytes"] == 16 << 30 and d["workers"] == 3' "$pretended"
  json "JSON: the second pretended device" "$kind:1" 'd["usable"] and d["pci_address"] == "0000:b1:00.0"
    and d["numa_node"] == 1 and not d["dma_buf"] and d["peer_writes"] == "flushed"' "$pretended"
fi
printf '1..%d\n' "$count"
