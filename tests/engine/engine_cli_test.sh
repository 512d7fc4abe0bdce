#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-engine: makes an engine of a file once, shows it, and finds what is damaged. usage: engine_cli_test.sh WEIR-ENGINE
set -u
engine=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
count=0

# expect STATUS WORDS WHAT COMMAND...
expect() {
  local status=$1 words=$2 what=$3 got
  shift 3
  count=$((count + 1))
  "$@" >"$root/out" 2>&1
  got=$?
  if [ "$got" = "$status" ] && grep -q -- "$words" "$root/out"; then
    echo "ok $count - $what"
  else
    echo "not ok $count - $what"
    echo "# exit status $got, wanted $status with \"$words\""
    sed 's/^/# /' "$root/out"
  fi
}

# damage FILE BLOCK
damage() {
  printf 'x' | dd of="$1" bs=1 seek=$(($2 * 4096 + 100)) conv=notrunc status=none
}

file=$root/e.img
expect 2 'a command is missing' 'no arguments' "$engine"
expect 1 'does not exist' 'a file that is not there' "$engine" show "$file"
expect 0 'room for' 'format makes the file' "$engine" format "$file" --size 4M
expect 0 'write amplification' 'show' "$engine" show "$file"
expect 0 '"erases_most": 0' 'show as JSON' "$engine" show "$file" --json
expect 0 '0 damaged, 0 lost' 'check' "$engine" check "$file"
expect 1 'not empty' 'what is there is not formatted' "$engine" format "$file"
expect 0 'room for' 'but by force' "$engine" format "$file" --force
damage "$file" 0
expect 0 'superblock 0 .* damaged' 'one superblock will do' "$engine" check "$file"
damage "$file" 1
expect 1 'weir-engine format' 'none will not' "$engine" check "$file"
"$engine" format "$file" --force >/dev/null
cp "$file" "$root/whole"
truncate -s 8M "$file"
expect 1 'another size' 'a file that has grown' "$engine" show "$file"
cp "$root/whole" "$file"
for block in $(seq 18 80); do damage "$file" "$block"; done
expect 1 "checkpoint.* damaged" 'both checkpoints damaged' "$engine" check "$file"
cp "$root/whole" "$file"
for command in show check 'format --force' 'format --force --size 2M'; do
  # shellcheck disable=SC2086
  expect 1 "in use by" "$command of one that is in use" flock "$file" "$engine" $command "$file"
done
expect 0 same 'which changes nothing' bash -c "cmp $root/whole $file && echo same"
head -c 65536 /dev/zero >"$root/small"
expect 1 '1 MiB' 'too small' "$engine" format "$root/small"
expect 1 '1 MiB' 'too small, and made for it' "$engine" format "$root/none" --size 64K
expect 2 'cannot access' 'which leaves nothing behind' env LC_ALL=C ls "$root/none"
expect 0 small 'what was there stays' ls "$root/small"
for size in 1 65536 1048575; do # less than what is looked at
  rm -f "$root/small"
  { head -c $((size - 1)) /dev/zero && printf x; } >"$root/small"
  cp "$root/small" "$root/as_it_was"
  expect 1 'not empty' "a file of $size bytes, of which the last is something" "$engine" format "$root/small" --size 4M
  expect 0 '' '... stays as it is' bash -c 'cmp "$0" "$1" && echo' "$root/small" "$root/as_it_was"
done
for at in 65600 $((1048576 - 1)) $((4194304 - 1048576)) $((4194304 - 4096)); do # where file systems and arrays of disks have their superblocks
  rm -f "$root/disk"
  truncate -s 4M "$root/disk"
  printf superblock | dd of="$root/disk" bs=1 seek=$at conv=notrunc status=none
  cp "$root/disk" "$root/as_it_was"
  expect 1 'not empty' "nothing in front, something at $at" "$engine" format "$root/disk"
  expect 1 'not empty' '... nor is it cut' "$engine" format "$root/disk" --size 2M
  expect 0 '' '... and it is as it was' bash -c 'cmp "$0" "$1" && echo' "$root/disk" "$root/as_it_was"
done
echo "1..$count"
