#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-kvcache and weir-safetensors: every byte is right on the device by each path; whatever a trace or a header has
# that cannot be gets one clear sentence.
# usage: file_samples_test.sh SAMPLES [FORGE]    the build's folder of samples; forge.c, as a library
set -u
export WEIR_BACKEND=${WEIR_TEST_CONTEXT:-cpu}
samples=$1 forge=${2-}
dir=$(mktemp -d -p .)
trap 'rm -rf "$dir"' EXIT
count=0

# WEIR_TEST_PRELOAD: a device that is none, to stand in front of the run time
run() { local limit=$1 sample=$2; shift 2
  timeout "$limit" env ${WEIR_TEST_PRELOAD:+LD_PRELOAD="$WEIR_TEST_PRELOAD"} "$samples/$sample/weir-$sample" "$@"; }

say() { # say GOOD NAME OUTPUT
  count=$((count + 1))
  if [ "$1" = 0 ]; then printf 'ok %d - %s\n' "$count" "$2"; else
    printf 'not ok %d - %s\n' "$count" "$2"; printf '%s\n' "$3" | sed 's/^/# /'
  fi
}

check() { # check NAME WORDS SAMPLE ARGUMENTS...: succeeds, verified, and the JSON has WORDS
  local name=$1 words=$2 sample=$3 output; shift 3
  output=$(run 120 "$sample" "$@" --json 2>&1) && grep -q '"verified": true' <<<"$output" && grep -qE -- "$words" <<<"$output"
  say $? "$sample: $name (/$words/)" "$output"
}

agree() { # agree NAME EXPRESSION SAMPLE ARGUMENTS...: figures of its JSON agree with one another
  local name=$1 expression=$2 sample=$3 output; shift 3
  output=$(run 120 "$sample" "$@" --json 2>&1 | "$(dirname "$0")/../samples/figures.py" "$expression" 2>&1)
  say $? "$sample: $name" "$output"
}

refuse() { # refuse NAME STATUS WORDS SAMPLE ARGUMENTS...: exit status and a sentence with WORDS, in one line if it is no usage
  local name=$1 status=$2 words=$3 sample=$4 output rc; shift 4
  output=$(run 60 "$sample" "$@" 2>&1 >/dev/null); rc=$?
  [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output" && [ "$(wc -l <<<"$output")" -le "$status" ]
  say $? "$sample refuses: $name (status $rc, $status and /$words/ expected)" "$output"
}

# What the device can do: the host sees memory on the cpu only, and pulls only elsewhere.
paths="auto bounce"
[ "$WEIR_BACKEND" = cpu ] && paths="$paths direct"

check "made, blocks of 8 KiB" '"blocks": 500,' kvcache "$dir/kv" --make 8M --block 8K --loads 500 --batch 100 --runs 1 --threads 2
for path in $paths; do
  check "16 KiB by $path" '"block_bytes": 16384' kvcache "$dir/kv" --path $path --loads 300 --batch 128 --runs 1 --threads 3
  check "64 KiB by $path, O_DIRECT" '"direct": true' kvcache "$dir/kv" --path $path --block 64K --loads 60 --batch 7 --runs 1 --threads 1 --direct
done
check "blocks of 512 bytes, no plain version" '"block_bytes": 512' kvcache "$dir/kv" --block 512 --loads 3000 --batch 2000 --runs 1 --no-plain
agree "rates" 'near(f["weir_blocks_per_s"] * f["weir_seconds"], f["blocks"]) and near(f["weir_bytes_per_s"], f["weir_blocks_per_s"] * 8192) and
  near(f["plain_blocks_per_s"] * f["plain_seconds"], f["blocks"]) and near(f["ratio"], f["plain_seconds"] / f["weir_seconds"]) and
  near(f["mapped_ratio"], f["mapped_seconds"] / f["weir_seconds"])' kvcache "$dir/kv" --block 8K --loads 500 --batch 100 --runs 1 --threads 2 --mmap
check "one block longer than staging" '"block_bytes": 3145728' kvcache "$dir/kv" --block 3M --loads 3 --batch 2 --runs 1 --threads 1
if [ "$WEIR_BACKEND" = cpu ]; then
  truncate -s 32M "$dir/memory"
  check "memory that one context can have" '"plain_threads": 3' kvcache "$dir/kv" --backend "cpu:memory=$dir/memory" --loads 300 --batch 128 --runs 1 --threads 3
fi
for ways in "" "--path bounce"; do
  check "by threads and by a mapping, none of it in the page cache $ways" '"mapped_ratio"' kvcache "$dir/kv" $ways --loads 300 --batch 128 --runs 2 --threads 3 --mmap --cold
  check "stored $ways" '"store": true' kvcache "$dir/kv" $ways --store --loads 300 --batch 128 --runs 2 --threads 3 --mmap
  check "stored with O_DIRECT, blocks of 64 KiB $ways" '"store": true' kvcache "$dir/kv" $ways --store --block 64K --loads 60 --batch 7 --runs 1 --threads 2 --direct
done
printf '# a trace\n1 2 3\n\n100-131 7\r\n 511\n' >"$dir/trace"
check "a trace" '"requests": 3,' kvcache "$dir/kv" --trace "$dir/trace" --batch 10 --runs 2 --threads 2
check "its blocks" '"blocks": 37,' kvcache "$dir/kv" --trace "$dir/trace" --runs 1 --threads 2

if [ "$WEIR_BACKEND" = cpu ]; then # which way blocks went: 300 of 16 KiB, in the run that warms up and in the one that counts
  agree "bytes that went straight there" 'f["path"] == "direct" and f["direct_bytes"] == 2 * 300 * 16384 and f["copied_bytes"] == f["pulled_bytes"] == 0 < f["weir_threads"]' \
    kvcache "$dir/kv" --loads 300 --batch 128 --runs 1 --no-plain
  agree "bytes that were copied" 'f["path"] == "bounce" and f["copied_bytes"] == 2 * 300 * 16384 and f["direct_bytes"] == f["pulled_bytes"] == 0' \
    kvcache "$dir/kv" --path bounce --loads 300 --batch 128 --runs 1 --no-plain
fi
for seed in "1 14" "2 12"; do # so many requests come to 3,000 blocks
  check "the trace of seed ${seed% *}" "\"requests\": ${seed#* }," kvcache "$dir/kv" --block 512 --loads 3000 --seed ${seed% *} --runs 1 --no-plain
done

says() { # says NAME PATTERN SAMPLE ARGUMENTS...: it succeeds, and its text has a line that PATTERN matches
  local name=$1 pattern=$2 sample=$3 output; shift 3
  output=$(run 120 "$sample" "$@" 2>&1) && grep -qE -- "^$pattern\$" <<<"$output"
  say $? "$sample says: $name (/$pattern/)" "$output"
}
says "what was loaded" 'trace     37 blocks of 16384 bytes in 3 requests, 10 at a time' kvcache "$dir/kv" --trace "$dir/trace" --batch 10 --runs 1 --no-plain
says "what was stored" 'trace     37 blocks of 16384 bytes in 3 requests, 10 at a time, stored' kvcache "$dir/kv" --store --trace "$dir/trace" --batch 10 --runs 1 --no-plain
says "from where" 'file      .*/kv \(O_DIRECT\), 512 blocks' kvcache "$dir/kv" --trace "$dir/trace" --batch 10 --runs 1 --no-plain --direct

# Blocks beyond 4 GiB, of a file that has nothing but them, its first one, and its last one.
python3 - "$dir/wide" <<'PYTHON'
import struct, sys
M = (1 << 64) - 1
def word(i):
    v = (i + 0x51ED270B27B4C5FF) * 0x9E3779B97F4A7C15 & M
    v = (v ^ v >> 31) * 0xBF58476D1CE4E5B9 & M
    return v ^ v >> 29
with open(sys.argv[1], "wb") as file:
    for block in 0, 262149, 327679:
        file.seek(block * 16384)
        file.write(struct.pack("<2048Q", *(word(block * 2048 + i) for i in range(2048))))
PYTHON
printf '262149 327679\n262149\n' >"$dir/far"
for how in $paths; do
  check "blocks beyond 4 GiB by $how" '"blocks": 3,' kvcache "$dir/wide" --trace "$dir/far" --path $how --runs 1 --threads 2 --mmap
  check "blocks stored beyond 4 GiB by $how" '"store": true' kvcache "$dir/wide" --trace "$dir/far" --path $how --runs 1 --threads 2 --mmap --store
done
[ "$(head -c 1M "$dir/wide" | tail -c +16385 | tr -d '\0' | wc -c)" = 0 ]
say $? "kvcache: nothing was stored where the lowest 32 bits of the offsets are" "$(du -k "$dir/wide")"
rm -f "$dir/wide"

# A block of zeros, which is none of the file's; the other blocks come in batches of their own.
cp "$dir/kv" "$dir/holed"; dd if=/dev/zero of="$dir/holed" bs=16384 seek=5 count=1 conv=notrunc status=none
printf '1 2 3 4 5\n6 7 8 9\n10 11 12 13\n' >"$dir/holes"
for path in $paths; do
  refuse "a block of zeros by $path" 1 'WRONG DATA: [0-9]+ words' kvcache "$dir/holed" --trace "$dir/holes" --batch 4 --runs 1 --path $path --no-plain
done

printf '1 2\n3 x4\n' >"$dir/letters"; printf '1\n2 9-3\n' >"$dir/falls"; printf '512\n' >"$dir/beyond"; printf '# nothing\n' >"$dir/none"; printf '510-512\n' >"$dir/reaches"
printf '99999999999999999999\n' >"$dir/long"; head -c 1000000 /dev/zero >"$dir/zeros"; : >"$dir/empty"
refuse "no file" 2 'give one file' kvcache
refuse "a missing file" 1 'cannot open .*nothing.*No such file' kvcache "$dir/nothing"
refuse "an empty file" 1 'has 0 bytes, less than one block' kvcache "$dir/empty"
refuse "somebody else's file" 1 'not written by weir-kvcache' kvcache "$dir/zeros"
cp "$dir/kv" "$dir/longer"; truncate -s +1M "$dir/longer"
refuse "a file that is longer than what was written" 1 'not written by weir-kvcache up to its end' kvcache "$dir/longer" --runs 1
refuse "a block of 1000 bytes" 2 'multiple of 512' kvcache "$dir/kv" --block 1000
refuse "a path that is none" 2 'auto, module' kvcache "$dir/kv" --path swift
refuse "the module's path" 1 '"module" is not to be had' kvcache "$dir/kv" --path module --runs 1
refuse "letters in a trace" 1 'letters, line 2: "x4" is neither' kvcache "$dir/kv" --trace "$dir/letters"
refuse "a range that falls" 1 'falls, line 2: "9-3" is neither' kvcache "$dir/kv" --trace "$dir/falls"
refuse "a number that is none" 1 'long, line 1: "9' kvcache "$dir/kv" --trace "$dir/long"
refuse "a block beyond the end" 1 'no block 512: the file has 512' kvcache "$dir/kv" --trace "$dir/beyond"
refuse "a range that ends beyond the end" 1 'reaches, line 1: there is no block 512: the file has 512' kvcache "$dir/kv" --trace "$dir/reaches"
refuse "a trace of nothing" 1 'names no block' kvcache "$dir/kv" --trace "$dir/none"
refuse "a missing trace" 1 'cannot read the trace .*absent' kvcache "$dir/kv" --trace "$dir/absent"
refuse "a trace that cannot be read" 1 'cannot read the trace .*: Is a directory' kvcache "$dir/kv" --trace "$dir"
refuse "a folder to write to" 1 'cannot write' kvcache "$dir" --make 1M

check "made" '"tensors": 36,' safetensors "$dir/model" --make 3M --runs 1
for path in $paths; do
  check "by $path" '"path": "[a-z]+"' safetensors "$dir/model" --path $path --runs 2
  check "by $path, O_DIRECT" '"direct": true' safetensors "$dir/model" --path $path --runs 1 --direct
done

agree "made as long as was asked for, or a little shorter" '15000000 < f["bytes"] <= 16777216' safetensors "$dir/made1" --make 16M --runs 1
for seed in 1 2; do run 60 safetensors "$dir/made$seed" --make 16M --seed $seed --list >"$dir/listed$seed" 2>&1; done
! cmp -s "$dir/made1" "$dir/made2" && cmp -s "$dir/listed1" "$dir/listed2" && grep -qx 'model.layers.3.mlp.up_proj.weight BF16 1032192 bytes at [0-9]*' "$dir/listed1"
say $? "safetensors: the same tensors of each seed, of other numbers" "$(diff "$dir/listed1" "$dir/listed2")"
rm -f "$dir/made1" "$dir/made2"
agree "rates" 'near(f["weir_bytes_per_s"] * f["weir_seconds"], f["bytes"]) and near(f["ratio"], f["plain_seconds"] / f["weir_seconds"]) and
  near(f["mapped_ratio"], f["mapped_seconds"] / f["weir_seconds"])' safetensors "$dir/model" --threads 3 --mmap --runs 1
check "three ways, none of it in the page cache" '"mapped_ratio"' safetensors "$dir/model" --threads 3 --mmap --cold --runs 2
check "tensors of several pieces" '"plain_threads": 64,' safetensors "$dir/pieces" --make 40M --threads 64 --mmap --runs 1
rm -f "$dir/pieces"

if [ -n "$forge" ]; then
  for how in zero last; do
    output=$(env LD_PRELOAD="$forge" FORGE=$how FORGE_OF=copy timeout 600 "$samples/safetensors/weir-safetensors" "$dir/model" --runs 1 2>&1 >/dev/null)
    [ $? = 1 ] && grep -q 'WRONG DATA' <<<"$output"
    say $? "safetensors finds: $how of the sums" "$output"
  done
  for way in --no-plain --threads=2 "--no-plain --mmap"; do
    how="FORGE=byte FORGE_AT=77 FORGE_OF=copy"
    [ "$way" != --no-plain ] || how="FORGE=idle FORGE_KERNEL=kvcache_fill"
    output=$(env LD_PRELOAD="$forge" $how timeout 600 "$samples/kvcache/weir-kvcache" "$dir/kv" --store --loads 30 --batch 10 --runs 1 $way 2>&1 >/dev/null)
    [ $? = 1 ] && grep -q 'WRONG DATA: .* in the file are not what the device had' <<<"$output"
    say $? "kvcache finds: stored blocks that are others, $way" "$output"
  done
fi

forged() { # forged NAME HOW WORDS SAMPLE ARGUMENTS...: what came or went otherwise, by the variables HOW of forge.c, is found
  local name=$1 how=$2 words=$3 sample=$4 output rc; shift 4
  [ -n "$forge" ] || return 0
  # shellcheck disable=SC2086
  output=$(env LD_PRELOAD="$forge" $how timeout 600 "$samples/$sample/weir-$sample" "$@" --runs 1 2>&1 >/dev/null); rc=$?
  [ "$rc" = 1 ] && grep -qE -- "$words" <<<"$output"
  say $? "$sample finds: $name (status $rc, 1 and /$words/ expected)" "$output"
}
run 60 kvcache "$dir/fresh" --make 1M --loads 1 --batch 1 --runs 1 --no-plain >/dev/null 2>&1
cp "$dir/fresh" "$dir/stored"
# The second batch does nothing: what the first one left is no result of its own.
again='FORGE=idle FORGE_KERNEL=weir_file_batch FORGE_ONLY=1'
forged "nothing loaded again" "$again" 'WRONG DATA: .* on the device are not what the file has' kvcache "$dir/fresh" --loads 30 --batch 30 --no-plain
forged "nothing stored again" "$again" 'WRONG DATA: .* in the file are not what the device had' kvcache "$dir/stored" --store --loads 30 --batch 30 --no-plain
forged "nothing loaded again" "$again" 'WRONG DATA: by weir, ' safetensors "$dir/model"
put='FORGE=byte FORGE_AT=77 FORGE_OF=put'
forged "a byte that threads load" "$put" 'WRONG DATA: .* on the device' kvcache "$dir/fresh" --loads 30 --batch 30 --threads 2
forged "a byte that comes out of a mapping" "$put" 'WRONG DATA: .* on the device' kvcache "$dir/fresh" --loads 30 --batch 30 --no-plain --mmap

# What a run stored is durable when its time ends: by an fsync() behind those that drop the pages and make what is stored before known.
cp "$dir/fresh" "$dir/stored"
forged "blocks that were not made durable" 'FORGE=unsynced FORGE_ONLY=1' '^weir-kvcache: fsync: Input/output error$' \
  kvcache "$dir/stored" --store --loads 30 --batch 30 --no-plain
forged "a file that was not made durable" 'FORGE=unsynced' '^weir-kvcache: cannot write .*/unsynced: Input/output error$' \
  kvcache "$dir/unsynced" --make 1M --loads 1 --batch 1 --no-plain
for sample in kvcache safetensors; do
  of=$([ $sample = kvcache ] && echo fresh || echo model)
  forged "pages that are not on the storage yet" 'FORGE=unsynced' 'cannot drop the file.s pages from the page cache: Input/output error' $sample "$dir/$of" --cold
done

model() { # model NAME HEADER [DATA-BYTES]: a file with that header, and data
  python3 - "$dir/$1" "$2" "${3:-0}" <<'PYTHON'
import sys
header = sys.argv[2].encode("utf-8", "surrogateescape")
open(sys.argv[1], "wb").write(len(header).to_bytes(8, "little") + header + bytes(i % 251 for i in range(int(sys.argv[3]))))
PYTHON
}
good='{"a":{"dtype":"F32","shape":[3,5],"data_offsets":[0,60]},"b":{"dtype":"U8","shape":[7],"data_offsets":[60,67]},"__metadata__":{"x":"y"}}   '
model good "$good" 67
says "what was loaded" 'model     .*/good: 2 tensors, 0.0 MiB' safetensors "$dir/good" --runs 1
check "tensors of any length" '"tensors": 2,' safetensors "$dir/good" --runs 1
model scalar '{"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"e":{"dtype":"F16","shape":[0,9],"data_offsets":[8,8]},"e2":{"dtype":"I8","shape":[0],"data_offsets":[0,0]}}' 8
check "a scalar and empty ones" '"tensors": 3,' safetensors "$dir/scalar" --runs 1
model nothing '{}' 0
check "no tensors" '"tensors": 0,' safetensors "$dir/nothing" --runs 1

# The last three bytes of a tensor are no whole word; a thread puts them there first, then the mapping.
model odd '{"a":{"dtype":"U8","shape":[1003],"data_offsets":[0,1003]}}' 1003
for byte in 0 999 1000 1002; do
  put="FORGE=byte FORGE_AT=$byte FORGE_OF=put"
  forged "byte $byte of 1003, by threads" "$put FORGE_ONLY=0" 'WRONG DATA: by hand, tensor "a"' safetensors "$dir/odd" --mmap
  forged "byte $byte of 1003, out of a mapping" "$put FORGE_ONLY=1" 'WRONG DATA: by a mapping, tensor "a"' safetensors "$dir/odd" --mmap
done
model far '{"a":{"dtype":"U8","shape":[5368709120],"data_offsets":[0,5368709120]},"b":{"dtype":"U8","shape":[7],"data_offsets":[5368709120,5368709127]}}'
truncate -s +5368709127 "$dir/far"
output=$(run 60 safetensors "$dir/far" --list 2>&1)
[ "$output" = $'a U8 5368709120 bytes at 0\nb U8 7 bytes at 5368709120' ]
say $? "safetensors: a list of tensors beyond 4 GiB" "$output"
output=$(run 60 safetensors "$dir/good" --list 2>&1)
[ "$output" = $'a F32 60 bytes at 0\nb U8 7 bytes at 60' ]
say $? "safetensors: a list of tensors" "$output"

malformed() { # malformed NAME WORDS HEADER [DATA-BYTES]
  model bad "$3" "${4:-0}"
  refuse "$1" 1 "$2" safetensors "$dir/bad" --runs 1
}
head -c 5 "$dir/good" >"$dir/bytes5"; head -c 50 "$dir/good" >"$dir/cut"; head -c 8 /dev/zero >"$dir/zero8"
refuse "5 bytes" 1 'bytes5: the file has 5 bytes' safetensors "$dir/bytes5"
refuse "a header cut short" 1 'but only 42 follow' safetensors "$dir/cut"
refuse "a header of no bytes" 1 'header has 0 bytes' safetensors "$dir/zero8"
refuse "random bytes" 1 'at most 100000000 can be' safetensors "$dir/kv"
refuse "no file" 2 'give one file' safetensors
refuse "a missing file" 1 'cannot open' safetensors "$dir/absent"
refuse "a length that no file has" 2 'make does not take' safetensors "$dir/none" --make 18446744073709551615
malformed "no JSON" 'no JSON, at byte' '{"a":'
malformed "JSON with more behind it" 'no JSON, at byte' '{} x'
malformed "a list" 'does not begin with \{' '[1,2]'
malformed "a space before" 'does not begin with \{' ' {}'
malformed "a name twice" 'no JSON.*duplicate' '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
malformed "a number for a tensor" '"a": what is said of it is no object' '{"a":5}'
malformed "no dtype" '"a": it has no dtype' '{"a":{"shape":[1],"data_offsets":[0,1]}}' 1
malformed "a dtype that is a number" '"a": it has no dtype' '{"a":{"dtype":3,"shape":[1],"data_offsets":[0,1]}}' 1
malformed "a dtype that is none" 'dtype "F15" is not known' '{"a":{"dtype":"F15","shape":[1],"data_offsets":[0,1]}}' 1
malformed "no shape" '"a": it has no shape' '{"a":{"dtype":"U8","data_offsets":[0,1]}}' 1
malformed "a negative dimension" 'dimension 1 of its shape is no count' '{"a":{"dtype":"U8","shape":[1,-1],"data_offsets":[0,1]}}' 1
malformed "a broken dimension" 'dimension 0 of its shape is no count' '{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}' 1
malformed "too many dimensions" '17 dimensions; 16' '{"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}' 1
malformed "a shape that overflows" 'more than 2\^64 bits' '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}'
malformed "half a byte" '4 bits, which are no whole bytes' '{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}}' 1
malformed "no offsets" 'no data_offsets' '{"a":{"dtype":"U8","shape":[1]}}' 1
malformed "three offsets" 'no data_offsets' '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}' 1
malformed "a negative offset" 'no data_offsets' '{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}' 1
malformed "offsets that fall" 'ends at 0, before it begins at 1' '{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}' 1
malformed "data cut short" 'ends at byte 10 of the data, and the file has 9' '{"a":{"dtype":"U8","shape":[10],"data_offsets":[0,10]}}' 9
malformed "another length than its shape's" 'come to 8 bytes, its data_offsets to 4' '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}' 4
malformed "an overlap" '"b": it begins at 1, within "a", which ends at 2' '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}' 3
malformed "a gap" '"b": it begins at 3, and nobody has the 1 bytes before' '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}' 4
malformed "more data than tensors" 'tensors end at byte 1 of the data, and the file has 2' '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 2
malformed "metadata that is no object" '__metadata__" is no object' '{"__metadata__":[]}'
malformed "metadata that is no text" 'value of "k" is no text' '{"__metadata__":{"k":1}}'
malformed "a number too large" 'no JSON.*too big' '{"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}}' 1

printf '1..%d\n' "$count"
