#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What fio writes, weir reads, byte for byte, as blocks and as arrays; what weir writes, fio verifies.
# usage: fio_test.sh FIO-PEER WEIR-PERF
# Prints TAP; skipped where fio is not installed.
set -u
peer=$(realpath "$1") perf=$(realpath "$2")
command -v fio >/dev/null || { echo "1..0 # SKIP fio is not installed: apt-get install fio"; exit 0; }
# On a disk if there is one: where O_DIRECT works, it is used.
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/weir-fio-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
count=0

try() { # try NAME COMMAND...: it ends with 0
  local name=$1; shift
  count=$((count + 1))
  if "$@" >.log 2>&1; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s\n' "$count" "$name"
    tail -20 .log | sed 's/^/# /'
  fi
}

not() { ! "$@"; }

# fio's job over FILE; with --verify_only it only reads and compares what such a job had written
job() {
  local file=$1; shift
  timeout 600 fio --name=job --filename="$file" --size=4m --ioengine=psync --thread --norandommap=0 --randseed=7 "$@"
}

flip() { # flip FILE BYTE: one bit of it
  local byte
  byte=$(dd if="$1" bs=1 skip="$2" count=1 status=none | od -An -tu1)
  printf "\\x$(printf %02x $((byte ^ 64)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# ---- blocks with fio's checksums: copied by lanes, verified by fio ----

crc=(--rw=write --bs=4k --verify=crc32c)
pattern=(--bs=4k --verify=pattern --verify_pattern=%o)

try "fio writes blocks with checksums" job crc "${crc[@]}" --do_verify=0
copied() { # copied WAY KEYS: lanes copy the file; it is the same, and fio's checksums are right in it
  rm -f to && truncate -s 4M to && timeout 1200 "$peer" copy "$1" "file:crc?ro=1&$2" "file:to?$2" 4096 &&
    cmp crc to && job to "${crc[@]}" --verify_only
}
for keys in "block=512&direct=off" "block=4096&direct=off" "block=4096&direct=auto"; do
  try "read and written as blocks, $keys" copied blocks "$keys"
  try "read and written as arrays, $keys" copied array "$keys"
done
flip to 1000000
try "fio finds one bit that was changed" not job to "${crc[@]}" --verify_only

# ---- a pattern that both know: each word holds the offset of its request ----

try "fio writes offsets" job offsets --rw=randwrite "${pattern[@]}" --do_verify=0
for way in blocks array; do
  try "lanes read them as $way" timeout 1200 "$peer" check $way "file:offsets?ro=1" file:to 4096
  rm -f made && truncate -s 4M made
  try "lanes write them as $way" timeout 1200 "$peer" write $way "file:crc?ro=1" file:made 4096
  try "fio verifies what lanes wrote as $way" job made --rw=read "${pattern[@]}"
  try "which is what fio writes" cmp offsets made
done
flip made 2000001
try "fio finds one bit that was changed there" not job made --rw=read "${pattern[@]}"
for way in blocks array; do
  wrong_word() { [ "$(timeout 1200 "$peer" check $way "file:made?ro=1" file:to 4096)" = "1 wrong of 524288 words" ]; }
  try "lanes find the word as $way" wrong_word
done

# ---- loads that write to part of a file leave fio's blocks alone ----

part() {
  WEIR_BACKEND=cpu timeout 1200 "$perf" "file:crc?direct=off" --rw=randwrite --verify --offset=2M --size=1M --runtime=0.05 --runs=1 &&
    job crc "${crc[@]}" --verify_only --size=2m && job crc "${crc[@]}" --verify_only --size=1m --offset=3m &&
    not job crc "${crc[@]}" --verify_only --size=1m --offset=2m
}
try "a load writes to its range alone" part
beside() {
  cp offsets 'why?50%:a' || return 1
  WEIR_BACKEND=cpu timeout 1200 "$perf" 'file:why%3F50%25:a?direct=off&ro=1' --peer=fio --iodepth=4 --runtime=0.05 --runs=1 --json &&
    cmp offsets 'why?50%:a' && [ "$(find . -name 'why*' | wc -l)" = 1 ] # fio makes the files that it does not find
}
try "fio beside weir reads the file that was named" beside
printf '1..%d\n' "$count"
