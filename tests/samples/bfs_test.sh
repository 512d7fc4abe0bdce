#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# BFS over storage equals the in-memory search, whatever the cache, the blocks, the
# wave width and the number of storages; and bad graphs get one clear sentence.
# usage: bfs_test.sh WEIR-GRAPH WEIR-BFS [large]    large: scale 20 too
set -u
# The device to search on: the cpu, whatever else there is, unless told otherwise.
export WEIR_BACKEND=${WEIR_TEST_CONTEXT:-cpu}
graph=$1 bfs=$2 large=${3-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
count=0

check() { # check NAME ARGUMENTS...: the search succeeds and every depth is verified
  local name=$1; shift
  count=$((count + 1))
  if output=$(timeout 1200 "$bfs" "$@" --verify --json 2>&1) && grep -q '"verified": true' <<<"$output"; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s\n' "$count" "$name"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

refuse() { # refuse NAME STATUS WORDS COMMAND...: exit status and one sentence with WORDS
  local name=$1 status=$2 words=$3; shift 3
  local output rc
  count=$((count + 1))
  output=$(timeout 600 "$@" 2>&1 >/dev/null); rc=$?
  if [ "$rc" = "$status" ] && grep -qiE -- "$words" <<<"$output" && [ "$(head -1 <<<"$output" | wc -c)" -gt 20 ]; then
    printf 'ok %d - refused: %s\n' "$count" "$name"
  else
    printf 'not ok %d - refused: %s (status %s, expected %s and /%s/)\n' "$count" "$name" "$rc" "$status" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

# Of the two storages behind the cache one dies, with commands under way on lines that the other one needs. The search
# ends with its sentence; a minute is the deadline of one access.
dies() { # dies NAME WORDS ARGUMENTS...
  local name=$1 words=$2 output rc; shift 2
  count=$((count + 1))
  output=$(timeout 550 "$bfs" "$@" 2>&1 >/dev/null); rc=$?
  if [ "$rc" = 1 ] && grep -qE "^weir-bfs: lane .*$words" <<<"$output"; then
    printf 'ok %d - a storage dies: %s\n' "$count" "$name"
  else
    printf 'not ok %d - a storage dies: %s (status %s, expected 1 and /%s/)\n' "$count" "$name" "$rc" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

for kind in kron urand; do
  for scale in 10 14 17; do
    "$graph" generate $kind --scale $scale --seed 7 --quiet -o "$dir/$kind$scale.bel" || exit 1
  done
  check "$kind 10, 8 cache lines" "$dir/$kind"10.bel --cache-lines 8
  check "$kind 10, 8 cache lines of 512 bytes" "$dir/$kind"10.bel --cache-lines 8 --line 512 --storage block=512
  check "$kind 14, an eighth" "$dir/$kind"14.bel
  check "$kind 14, whole graph in cache" "$dir/$kind"14.bel --cache 64M
  check "$kind 17, an eighth" "$dir/$kind"17.bel
  if [ "$WEIR_BACKEND" = cpu ]; then # elsewhere the watchdog may have to wait for the kernel
    dies "$kind 14, pulled out" 'no longer answers' "$dir/$kind"14.bel --storage fault=gone:after=1000
    dies "$kind 14, pulled out early" 'no longer answers' "$dir/$kind"14.bel --storage fault=gone:after=100
    dies "$kind 14, failed" 'the controller failed' "$dir/$kind"14.bel --storage fault=fatal:after=1000
  fi
  for block in 512 4096; do
    check "$kind 14, block $block" "$dir/$kind"14.bel --storage block=$block
  done
  for wave in 4 32 64; do
    [ "$WEIR_BACKEND" = cpu ] || continue # only the cpu's waves have a choice of widths
    check "$kind 14, wave $wave" "$dir/$kind"14.bel --wave $wave
    check "$kind 10, wave $wave, 8 lines" "$dir/$kind"10.bel --wave $wave --cache-lines 8
    check "$kind 10, wave $wave, depth 2" "$dir/$kind"10.bel --wave $wave --depth 2 --queues 1
  done
  check "$kind 10, plain memory" "$dir/$kind"10.bel --plain
  check "$kind 14, plain memory" "$dir/$kind"14.bel --plain --storage block=512
  check "$kind 17, plain memory, three times more" "$dir/$kind"17.bel --plain --repeat 3
  check "$kind 14, three times more, in cache" "$dir/$kind"14.bel --cache 64M --repeat 3
  check "$kind 14, depth 2, one queue" "$dir/$kind"14.bel --depth 2 --queues 1
  "$graph" stripe "$dir/$kind"14.bel --over "$dir"/s0 "$dir"/s1 "$dir"/s2 "$dir"/s3 --unit 65536 --quiet || exit 1
  for policy in lru fifo random direct sieve frequency; do
    check "$kind 10, policy $policy" "$dir/$kind"10.bel --cache-lines 12 --policy $policy
  done
  check "$kind 14, striped over four" --offsets "file:$dir/${kind}14.bel.col" \
    --edges "file:$dir/s0,file:$dir/s1,file:$dir/s2,file:$dir/s3" --reference "$dir/${kind}14.bel" --cache 512K
  check "$kind 14, striped over four, plain memory" --offsets "file:$dir/${kind}14.bel.col" \
    --edges "file:$dir/s0,file:$dir/s1,file:$dir/s2,file:$dir/s3" --reference "$dir/${kind}14.bel" --plain
  check "$kind 14, from memory" --offsets "virt:64M?load=$dir/${kind}14.bel.col" \
    --edges "virt:64M?load=$dir/${kind}14.bel.dst&lat_us=20" --reference "$dir/${kind}14.bel" --cache 512K
done

if [ "$large" = large ]; then
  for kind in kron urand; do
    "$graph" generate $kind --scale 20 --seed 7 --quiet -o "$dir/large.bel" || exit 1
    check "$kind 20, an eighth" "$dir/large.bel"
    check "$kind 17, an eighth, wave 32" "$dir/$kind"17.bel --wave 32 # wide waves are slow here: collectives switch fibers
    rm -f "$dir"/large.bel.*
  done
fi

refuse "missing graph" 1 "nothing" "$bfs" "$dir/nothing.bel"
refuse "a directory" 1 "directory|regular" "$bfs" --offsets "file:$dir" --edges "file:$dir" --cache 1M
refuse "no cache lines" 2 "cache" "$bfs" "$dir/kron10.bel" --cache-lines 0
refuse "plain memory and a cache" 2 "--plain .*--cache" "$bfs" "$dir/kron10.bel" --plain --cache 1M
refuse "a policy that is none" 2 "lifo.*clock, lru, fifo, random, direct, sieve, frequency, user" \
  "$bfs" "$dir/kron10.bel" --policy lifo
refuse "a policy without its header" 1 "user_policy=HEADER" "$bfs" "$dir/kron10.bel" --policy user
refuse "plain memory and a policy" 2 "--plain .*--policy" "$bfs" "$dir/kron10.bel" --plain --policy lru
refuse "too many repeats" 2 "repeat.*1000" "$bfs" "$dir/kron10.bel" --repeat 1000
refuse "unknown option" 2 "frobnicate" "$bfs" "$dir/kron10.bel" --frobnicate
refuse "a wrong key behind 32 characters" 1 "'blok'" "$bfs" "$dir/kron10.bel" \
  --storage "block=512&lat_us=0&iops=1000000000&retries=7&blok=1"
refuse "a wrong number across character 32" 1 "timeout_ms=86400001 is not accepted" "$bfs" "$dir/kron10.bel" \
  --storage "block=512&lat_us=0&timeout_ms=86400001&retries=7"
refuse "lanes name the storage that failed" 1 'storage "file:.*kron10.bel.dst[?]fault=status:code=0x281:lba=3:dnr=1"' \
  "$bfs" --offsets "file:$dir/kron10.bel.col" --edges "file:$dir/kron10.bel.dst?fault=status:code=0x281:lba=3:dnr=1"
for file in "$dir"/kron10.bel.*; do cp "$file" "$dir/why?100%,&.bel.${file##*.}"; done
check "a path with ? and %" "$dir/why?100%,&.bel" --storage "block=512&lat_us=0&iops=1000000000&retries=7"
check "the same as escapes of URIs" --offsets "file:$dir/why%3F100%25,&.bel.col" --edges "file:$dir/why%3f100%25%2c&.bel.dst" \
  --reference "$dir/kron10.bel"
refuse "unknown URI key" 1 "blok" "$bfs" "$dir/kron10.bel" --storage blok=1
refuse "source past the end" 1 "9999999.*1024" "$bfs" "$dir/kron10.bel" --source 9999999
refuse "unknown backend" 1 "nosuch" "$bfs" "$dir/kron10.bel" --backend nosuch

cp "$dir/kron10.bel.col" "$dir/cut.bel.col"
head -c 40000 "$dir/kron10.bel.dst" >"$dir/cut.bel.dst"
refuse "truncated .bel" 1 "cut.bel.dst" "$bfs" "$dir/cut.bel"
cp "$dir/kron10.bel.col" "$dir/bad.bel.col"
cp "$dir/kron10.bel.dst" "$dir/bad.bel.dst"
printf '\xff\xff\x00\x00\x00\x00\x00\x00' | dd of="$dir/bad.bel.dst" bs=1 seek=$((16 + 8 * 100)) conv=notrunc status=none
refuse "edge to a vertex that does not exist" 1 "65535.*1024" "$bfs" "$dir/bad.bel" --seed 3
refuse "the same in plain memory" 1 "65535.*1024" "$bfs" "$dir/bad.bel" --seed 3 --plain
# Every second of 17 vertices claims all 8192 edges, which lead to such vertices.
python3 - "$dir/claims.bel" <<'END'
import struct, sys
for suffix, numbers in ("col", [8192 * (v % 2) for v in range(18)]), ("dst", [2 * (e % 8) for e in range(8192)]):
    with open(f"{sys.argv[1]}.{suffix}", "wb") as file:
        file.write(struct.pack(f"<{len(numbers) + 2}Q", len(numbers), 8, *numbers))
END
refuse "offsets that overlap" 1 "overlap.*4096 neighbours.*8192" "$bfs" "$dir/claims.bel" --source 0
refuse "the same in plain memory" 1 "overlap.*4096 neighbours.*8192" "$bfs" "$dir/claims.bel" --source 0 --plain

# Figures: the search in a cache that holds everything reads nothing more; plain memory never does.
figure() { # figure NAME WORDS ARGUMENTS...
  local name=$1 words=$2 output; shift 2
  count=$((count + 1))
  output=$(timeout 600 "$bfs" "$@" --json 2>&1)
  if grep -qE -- "$words" <<<"$output"; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s (no /%s/)\n' "$count" "$name" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}
figure "warm: no command" '"warm_commands": 0,?$' "$dir/kron14.bel" --cache 64M --repeat 2
figure "warm: a median" '"warm_seconds": [0-9.]*[1-9]' "$dir/kron14.bel" --cache 64M --repeat 2
figure "plain: no command" '"commands": 0,?$' "$dir/kron14.bel" --plain
figure "plain: says so" '"plain": true,?$' "$dir/kron14.bel" --plain
figure "cached: says so" '"plain": false,?$' "$dir/kron14.bel"

printf '1..%d\n' "$count"
