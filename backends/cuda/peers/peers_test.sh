#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The peers read, count and say what they did; where there is nothing to measure, why.
# usage: peers_test.sh PEER-PREAD-COPY PEER-CUFILE
#   PEERS_PRETENDED   a device that is none, to preload
#   PEERS_CUFILE      folder of a libcufile.so.0 that is none
set -u
copy=$1 cufile=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
truncate -s 1M "$dir/data"
: >"$dir/empty"
count=0

check() { # check NAME STATUS WORDS COMMAND...: exit status, and WORDS in the last lines
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

load='--threads=2 --runtime=1 --runs=1'
pretend="env LD_PRELOAD=$PEERS_PRETENDED LD_LIBRARY_PATH=$PEERS_CUFILE${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# shellcheck disable=SC2086
{
  check "pread alone" 0 '^operations/s [1-9][0-9]*$' "$copy" "$dir/data" $load --no-copy
  check "pread and copy" 0 '^operations/s [1-9][0-9]*$' $pretend "$copy" "$dir/data" $load
  check "pread and copy, JSON" 0 '"bs": 8192.*"iops": [1-9]' $pretend "$copy" "$dir/data" $load --bs=8192 --json
  check "cuFile: the way that works is found" 0 'compatibility mode forced$' $pretend "$cufile" "$dir/data" $load
  check "cuFile counts" 0 '^operations/s [1-9][0-9]*$' $pretend "$cufile" "$dir/data" $load
  check "cuFile refuses: its error by name" 3 'cuFileHandleRegister: CU_FILE_HANDLE_NOT_REGISTERED \(5027\)' \
    $pretend PRETENDED_CUFILE_REFUSES=1 "$cufile" "$dir/data" $load
  check "cuFile refuses: every way was tried" 3 'tried: compatibility mode forced, file systems denied, file opened with O_DIRECT: no' \
    $pretend PRETENDED_CUFILE_REFUSES=1 "$cufile" "$dir/data" $load
}
check "no cuFile to be had" 3 'cannot be had here: (libcufile.so.0 is not installed|no configuration)' env LD_PRELOAD="$PEERS_PRETENDED" \
  PRETENDED_CUFILE_REFUSES=1 "$cufile" "$dir/data" --runtime=1 --runs=1
check "a missing file" 1 'cannot open .*nothing.*No such file' "$copy" "$dir/nothing" --no-copy
check "an empty file" 1 'has 0 bytes, less than one block of 4096' "$copy" "$dir/empty" --no-copy
check "half a block" 2 'bs does not take "1000"' "$copy" "$dir/data" --bs=1000
check "no threads" 2 'threads does not take "0"' "$copy" "$dir/data" --threads=0
check "no file" 2 'give one file' "$cufile"
check "cuFile without a copy" 2 'peer-pread-copy' "$cufile" "$dir/data" --no-copy
printf '1..%d\n' "$count"
