#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-resize, weir-matmul and weir-checkpoint: what they make is right by their own verification and by others'; that finds each kind of
# wrong result; bad input gets one clear sentence; a checkpoint that is interrupted leaves the one before.
# usage: storage_samples_test.sh SAMPLES [FORGE LOSING]    the build's folder of samples; forge.c and losing.c, as libraries
set -u
export WEIR_BACKEND=${WEIR_TEST_CONTEXT:-cpu}
samples=$1 forge=${2-} losing=${3-}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d -p .)
trap 'rm -rf "$dir"' EXIT
count=0

run() { local sample=$1; shift; timeout 300 "$samples/$sample/weir-$sample" "$@"; }

say() { # say GOOD NAME OUTPUT
  count=$((count + 1))
  if [ "$1" = 0 ]; then printf 'ok %d - %s\n' "$count" "$2"; else
    printf 'not ok %d - %s\n' "$count" "$2"; printf '%s\n' "${3-}" | sed 's/^/# /'
  fi
}

# WEIR_TEST_CASES is a pattern of the cases to run.
chosen() {
  # shellcheck disable=SC2053
  [[ -z ${WEIR_TEST_CASES-} || $1 == $WEIR_TEST_CASES ]]
}

check() { # check NAME WORDS SAMPLE ARGUMENTS...: succeeds, verified, and the JSON has WORDS
  local name="$3: $1" words=$2 sample=$3 output; shift 3
  chosen "$name" || return 0
  case " $* " in *' --wave '*) [ "$WEIR_BACKEND" = cpu ] || return 0 ;; esac # only the cpu's waves have a choice
  output=$(run "$sample" "$@" --verify --json 2>&1) && grep -q '"verified": true' <<<"$output" && grep -qE -- "$words" <<<"$output"
  say $? "$name (/$words/)" "$output"
}

also() { # also NAME COMMAND...: succeeds
  local name=$1 output; shift
  chosen "$name" || return 0
  output=$("$@" 2>&1)
  say $? "$name" "$output"
}

refuse() { # refuse NAME STATUS WORDS SAMPLE ARGUMENTS...: exit status and one line with WORDS
  local name="$4 refuses: $1" status=$2 words=$3 sample=$4 output rc; shift 4
  chosen "$name" || return 0
  output=$(run "$sample" "$@" 2>&1 >/dev/null); rc=$?
  [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output" && [ "$(wc -l <<<"$output")" = 1 ]
  say $? "$name (status $rc, $status and /$words/ expected)" "$output"
}

agree() { # agree NAME EXPRESSION SAMPLE ARGUMENTS...: figures of its JSON agree with one another
  local name="$3: $1" expression=$2 sample=$3 output; shift 3
  chosen "$name" || return 0
  output=$(run "$sample" "$@" --json 2>&1 | "$here/figures.py" "$expression" 2>&1)
  say $? "$name" "$output"
}

says() { # says NAME PATTERN SAMPLE ARGUMENTS...: it succeeds, and its text has a line that PATTERN matches
  local name="$3 says: $1" pattern=$2 sample=$3 output; shift 3
  chosen "$name" || return 0
  output=$(run "$sample" "$@" 2>&1) && grep -qE -- "^$pattern\$" <<<"$output"
  say $? "$name (/$pattern/)" "$output"
}

found() { # found NAME HOW SAMPLE ARGUMENTS...: a result that is wrong, by the variables HOW of forge.c, is found; in $runs runs, or one
  local name="$3 finds: $1" how=$2 sample=$3 output rc; shift 3
  [ -n "$forge" ] && chosen "$name" || return 0
  # shellcheck disable=SC2086
  output=$(env LD_PRELOAD="$forge" $how timeout 300 "$samples/$sample/weir-$sample" "$@" --verify --runs "${runs-1}" 2>&1 >/dev/null); rc=$?
  [ "$rc" = 1 ] && grep -q 'WRONG' <<<"$output"
  say $? "$name (status $rc, 1 and WRONG expected)" "$output"
}

# Resize. Tiles hold many images, or parts of one; blocks begin within pixels.
from() { printf -- '--from %s --to %s --images %s --runs 1' "$1" "$2" "$3"; }
check 'smaller' '"to_bytes": 460800' resize virt:2M virt:1M $(from 100x75 64x48 50) --plain
check 'larger' '"images": 11,' resize virt:1M virt:4M $(from 100x75 333x201 11) --plain
check 'the same size' '"bytes_read": 1305088' resize virt:2M virt:2M $(from 128x100 128x100 32)
check 'one pixel from many, many from one' '"to_bytes": 3000' resize virt:4M virt:4M $(from 31x33 1x1 1000)
check 'many pixels from one' '"images": 40,' resize virt:1M virt:4M $(from 1x1 63x65 40)
check 'wide to high' '"verified"' resize virt:1M virt:4M $(from 300x2 2x300 100)
check 'tiles within an image' '"tile_bytes": 4096' resize 'virt:1M?block=512' 'virt:4M?block=4096' $(from 40x50 170x190 7) --tile 4K --plain
check 'three waves, depth 2, one queue' '"waves": 3,' resize virt:2M virt:1M $(from 100x75 64x48 50) --waves 3 --depth 2 --queues 1
check 'wave 32' '"verified"' resize virt:2M virt:1M $(from 37x31 25x23 500) --wave 32 --plain
check 'wave 4, other blocks' '"verified"' resize 'virt:2M?block=4096' 'virt:1M?block=512' $(from 37x31 5x3 500) --wave 4
check 'lanes move the data' '"verified"' resize 'virt:2M?mover=pull' 'virt:1M?mover=pull' $(from 100x75 64x48 50)
check 'short commands, in another number of each storage' '"verified"' resize 'virt:2M?mdts=16K' 'virt:1M?mdts=8K' $(from 100x75 64x48 50)
figures() { # figures SAMPLE ARGUMENTS...: what it counted of its I/O
  run "$@" --json | grep -E '"(commands|bytes_read|bytes_written|(save|load)_commands)": [1-9]'
}
same_figures() { # same_figures LINES SAMPLE ARGUMENTS...: so many, of one run and of the latest of three
  local lines=$1 one three; shift
  one=$(figures "$@" --runs 1) && three=$(figures "$@" --runs 3)
  printf '%s\nthen\n%s\n' "$one" "$three"
  [ "$one" = "$three" ] && [ "$(wc -l <<<"$one")" = "$lines" ]
}
also 'resize: what is counted is of one run' same_figures 3 resize virt:2M virt:1M --from 100x75 --to 64x48 --images 20 --waves 3
also 'matmul: what is counted is of one run' same_figures 3 matmul virt:1M --size 128 --waves 2
also 'checkpoint: what is counted is of one run' same_figures 4 checkpoint virt:3M --layers 2 --width 64 --vocabulary 501 --positions 32 --waves 2
check 'several runs' '"runs": 3,' resize virt:2M virt:1M --from 100x75 --to 64x48 --images 20 --runs 3
head -c 98304 /dev/urandom >"$dir/raw"
truncate -s 2400 "$dir/small"
check 'raw images of a file, to a file that ends within a block' '"images": 8,' resize "file:$dir/raw" "file:$dir/small" --from 64x64 --to 10x10 --runs 1 --plain
also 'resize: the file keeps its size' test "$(stat -c %s "$dir/small")" = 2400
# 2400 bytes of images: in their last block zeros come behind them, and the next block stays.
head -c 12288 /dev/zero | tr '\0' x >"$dir/marked"
check 'raw images of a file, to the beginning of one' '"images": 8,' resize "file:$dir/raw" "file:$dir/marked" --from 64x64 --to 10x10 --runs 1
padded() { # padded FILE END BLOCK-END: zeros from END to BLOCK-END, and something before
  python3 -c 'import sys; d = open(sys.argv[1], "rb").read(); e, b = map(int, sys.argv[2:]); assert any(d[e - 256:e]) and not any(d[e:b]), d[e:b]' "$@"
}
also 'resize: zeros to the end of the last block' padded "$dir/marked" 2400 4096
also 'resize: the same images there' cmp -n 2400 "$dir/small" "$dir/marked"
also 'resize: what lies behind stays' test "$(tail -c 8192 "$dir/marked" | tr -d x | wc -c)" = 0
# The same images by another program, which knows nothing of tiles.
cat >"$dir/resize.py" <<'END'
import sys
W, H, w, h, n = map(int, sys.argv[1:6])
a, b = open(sys.argv[6], "rb").read(), open(sys.argv[7], "rb").read()
def axis(x, big, small):
    place = max(0, (2 * x + 1) * big - small)
    whole, rest = divmod(place, 2 * small)
    return whole, min(whole + 1, big - 1), rest * 2048 // (2 * small)
for i in range(n):
    image = a[i * W * H * 3:]
    for y in range(h):
        top, below, fy = axis(y, H, h)
        for x in range(w):
            left, right, fx = axis(x, W, w)
            for c in range(3):
                at = lambda r, q: image[(r * W + q) * 3 + c]
                value = (at(top, left) * (2048 - fx) + at(top, right) * fx) * (2048 - fy) + (at(below, left) * (2048 - fx) + at(below, right) * fx) * fy
                assert b[((i * h + y) * w + x) * 3 + c] == (value + (1 << 21)) // (1 << 22), (i, y, x, c)
END
also 'resize: another program comes to the same' python3 "$dir/resize.py" 64 64 10 10 8 "$dir/raw" "$dir/small"
if run resize virt:1M virt:1M $(from 64x64 8x8 2) --make 2>&1 | grep -q 'needs libjpeg-turbo'; then
  say 0 'resize: pictures out of JPEG files # SKIP this build has no libjpeg-turbo'
else
  check 'pictures out of JPEG files' '"jpeg_bytes": [1-9][0-9]{4}' resize virt:2M virt:1M $(from 100x75 64x48 50) --make --plain
fi
refuse 'no storage' 2 'give two storages' resize --from 2x2 --to 2x2
refuse 'one storage' 2 'give two storages' resize virt:1M --from 2x2 --to 2x2
refuse 'three storages' 2 'give two storages' resize virt:1M virt:1M virt:1M --from 2x2 --to 2x2
refuse 'one storage twice' 2 'same storage' resize "file:$dir/raw" "file:$dir/raw" --from 2x2 --to 2x2
refuse 'no size' 2 '--from and --to' resize virt:1M virt:1M --from 2x2
refuse 'half a size' 2 'WIDTHxHEIGHT' resize virt:1M virt:1M --from 2 --to 2x2
refuse 'no pixels' 2 'WIDTHxHEIGHT' resize virt:1M virt:1M --from 2x0 --to 2x2
refuse 'more pixels than there may be' 2 '1 to 16384' resize virt:1M virt:1M --from 2x16385 --to 2x2
refuse 'more images than there are' 1 'no room for 9 images of 64x64' resize "file:$dir/raw" virt:1M $(from 64x64 2x2 9)
refuse 'no room for what is made' 1 'virt:64K has 65536 bytes: no room for 8 images' resize "file:$dir/raw" virt:64K $(from 64x64 100x100 8)
refuse 'more images than 2^64 bytes have' 1 'raw has 98304 bytes: no room for 1501199875790166 images of 64x64' resize "file:$dir/raw" virt:1M $(from 64x64 2x2 1501199875790166)
agree 'figures, of what is not verified' 'f["verified"] is False and f["from_bytes"] == 50 * 22500 and f["to_bytes"] == 50 * 9216 and f["bytes_written"] == 460800 and
  near(f["images_per_s"], 50 / f["seconds"]) and near(f["bytes_per_s"], (f["from_bytes"] + f["to_bytes"]) / f["seconds"]) and near(f["ratio"], f["seconds"] / f["plain_seconds"])' \
  resize virt:2M virt:1M $(from 100x75 64x48 50) --plain
says 'how many images' 'images    50 of 100x75 to 64x48, 1.1 MiB to 0.4 MiB' resize virt:2M virt:1M $(from 100x75 64x48 50)
says 'not verified' 'result    not verified .*' resize virt:2M virt:1M $(from 100x75 64x48 50)
says 'verified' 'result    verified: .*' resize virt:2M virt:1M $(from 100x75 64x48 50) --verify
refuse 'a missing file' 1 'nothing' resize "file:$dir/nothing" virt:1M $(from 64x64 2x2 1)
refuse 'a tile of three blocks' 2 'power of two' resize virt:1M virt:1M $(from 64x64 2x2 1) --tile 12K
refuse 'a read that fails' 1 'a command of a lane to .*failed' resize 'virt:1M?fault=status:code=0x281:op=read:after=2' virt:1M $(from 64x64 64x64 64)
refuse 'a write that fails' 1 'a command of a lane to .*failed' resize virt:1M 'virt:1M?fault=status:code=0x280:op=write:after=2' $(from 64x64 64x64 64)
# Images are whole blocks here, so that what is forged is theirs.
small=(resize virt:1M virt:1M --from 128x32 --to 64x64 --images 3)
found 'nothing made' 'FORGE=idle FORGE_KERNEL=resize' "${small[@]}"
found 'nothing made in plain memory' 'FORGE=idle FORGE_KERNEL=resize_plain' "${small[@]}" --plain
runs=3 found 'nothing made in a later run' 'FORGE=idle FORGE_KERNEL=resize FORGE_ONLY=1' "${small[@]}"
for how in zero first last end; do
  for image in 0 1 2; do found "$how of image $image" "FORGE=$how FORGE_OF=read FORGE_ONLY=$((2 * image + 1))" "${small[@]}"; done
  found "$how of the input's image 1" "FORGE=$how FORGE_OF=read FORGE_ONLY=2" resize virt:1M virt:1M --from 128x32 --to 1x1 --images 3
  found "$how of all in plain memory" "FORGE=$how FORGE_OF=copy" "${small[@]}" --plain
done
for at in 1 2 5000 12287; do # other bytes of a pixel than its first
  found "byte $at of image 1" "FORGE=byte FORGE_AT=$at FORGE_OF=read FORGE_ONLY=3" "${small[@]}"
  found "byte $at in plain memory" "FORGE=byte FORGE_AT=$at FORGE_OF=copy" "${small[@]}" --plain
done

# Matrices. A panel and a slice of 32 rows are the least.
check 'square, a quarter of it in memory' '"bytes_written": 262144' matmul virt:1M --size 256 --plain
check 'the least memory: B is read for every 32 rows' '"bytes_read": 589824' matmul virt:1M --rows 128 --inner 128 --columns 256 --memory 112K --runs 1
check 'all in memory: everything is read once' '"bytes_read": 196608' matmul virt:1M --rows 128 --inner 128 --columns 256 --memory 4M --runs 1
check 'rows and slices that do not come out even' '"panel_rows": 128,' matmul virt:4M --rows 160 --inner 160 --columns 96 --memory 200000 --runs 2 --plain
check 'a column of tiles' '"columns": 32,' matmul virt:4M --rows 32 --inner 1024 --columns 32 --runs 1 --plain
check 'short sums' '"inner": 32,' matmul virt:4M --rows 512 --inner 32 --columns 320 --runs 1 --plain
check 'wave 32, depth 2, one queue' '"verified"' matmul 'virt:1M?block=4096' --size 160 --wave 32 --depth 2 --queues 1 --runs 1 --plain
check 'wave 4, two waves' '"waves": 2,' matmul 'virt:1M?block=512' --size 96 --wave 4 --waves 2 --runs 1
check 'many commands for a lane' '"commands": 48' matmul 'virt:1M?mdts=8K' --size 128 --waves 1 --runs 1
check 'lanes move the data' '"verified"' matmul 'virt:1M?mover=pull' --size 160 --runs 1
truncate -s 300000 "$dir/matrices"
check 'a file' '"commands": [1-9]' matmul "file:$dir/matrices" --size 128 --runs 2
cat >"$dir/matmul.py" <<'END'
import sys, numpy
a, b, c = numpy.fromfile(sys.argv[1], "<f4", 3 * 128 * 128).reshape(3, 128, 128).astype("f8")
assert numpy.count_nonzero(a) > 10000 and abs(a).max() == 15 and (a @ b == c).all()
END
if python3 -c 'import numpy' 2>/dev/null; then
  also 'matmul: another program comes to the same' python3 "$dir/matmul.py" "$dir/matrices"
else
  say 0 'matmul: another program comes to the same # SKIP python has no numpy'
fi
agree 'figures, of what is not verified' 'f["verified"] is False and near(f["flops"], 2 * 256 * 128 * 64 / f["seconds"]) and
  near(f["bytes_per_s"], (f["bytes_read"] + f["bytes_written"]) / f["seconds"]) and near(f["ratio"], f["seconds"] / f["plain_seconds"])' \
  matmul virt:1M --rows 256 --inner 128 --columns 64 --runs 1 --plain
for memory in 100000 150000 200000 300000; do # parts of the matrices have no more of it than they were given
  agree "no more than $memory bytes of memory" "32 <= f['slice_rows'] and 4 * (f['panel_rows'] * (320 + 96) + 2 * f['slice_rows'] * 96) <= f['memory_bytes'] == $memory" \
    matmul virt:1M --rows 352 --inner 320 --columns 96 --memory $memory --runs 1
done
says 'how large they are' 'matrices  256 x 128 by 128 x 64, 0.2 MiB with the product' matmul virt:1M --rows 256 --inner 128 --columns 64 --runs 1
says 'not verified' 'result    not verified .*' matmul virt:1M --size 64 --runs 1
says 'verified' 'result    verified: .*' matmul virt:1M --size 64 --runs 1 --verify
refuse 'no storage' 2 'give one storage' matmul --size 32
refuse 'a size between tiles' 2 'multiples of 32' matmul virt:1M --size 100
refuse 'sums too long to be exact' 2 'from 32 to 65536' matmul virt:1M --inner 65568
refuse 'a storage too small' 1 'the matrices have 3145728 bytes, and virt:1M has 1048576' matmul virt:1M
refuse 'memory for nothing' 1 'need 262144 at least' matmul virt:4M --memory 64K
refuse 'a storage not to be written' 1 'read-only' matmul "file:$dir/matrices?ro=1" --size 64
refuse 'a read that fails' 1 'a command of a lane to .*failed' matmul 'virt:4M?fault=status:code=0x281:op=read:after=2' --runs 1
refuse 'a write that fails' 1 'a command of a lane to .*failed' matmul 'virt:1M?fault=status:code=0x280:op=write:lba=1024-1100' --size 256 --runs 1
# Storages that die with commands under way: the sample ends with its own sentence, behind that of whoever found it out.
dies() { # dies HOW WORDS SAMPLE ARGUMENTS...
  local name="$3: its storage is $1" words=$2 sample=$3 output rc; shift 3
  [ "$WEIR_BACKEND" = cpu ] && chosen "$name" || return 0 # elsewhere the watchdog may have to wait for the kernel
  output=$(run "$sample" "$@" 2>&1 >/dev/null); rc=$?
  [ "$rc" = 1 ] && tail -1 <<<"$output" | grep -qE "^weir-$sample: a command of a lane to .*failed: .*$words"
  say $? "$name (status $rc, 1 and /$words/ expected)" "$output"
}
for how in 'fatal the controller failed' 'gone no longer answers'; do
  read -r how words <<<"$how"
  dies $how "$words" resize "virt:1M?fault=$how:after=14" virt:1M $(from 64x64 64x64 64)
  dies $how "$words" resize virt:1M "virt:1M?fault=$how:after=2" $(from 64x64 64x64 64)
  dies $how "$words" matmul "virt:4M?fault=$how:after=40" --runs 1
  dies $how "$words" checkpoint "virt:3M?fault=$how:after=6" --layers 2 --width 64 --vocabulary 501 --positions 32 --waves 2
done
small=(matmul 'virt:1M?block=512' --size 128) # a row is a block
found 'nothing made' 'FORGE=idle FORGE_KERNEL=matmul_step' "${small[@]}"
runs=3 found 'nothing made in a later run' 'FORGE=idle FORGE_KERNEL=matmul_step FORGE_ONLY=1' "${small[@]}"
found 'nothing made in plain memory' 'FORGE=idle FORGE_KERNEL=matmul_plain' "${small[@]}" --plain
for how in zero first last end; do
  for row in 0 127 128 255; do found "$how of row $row of A and B" "FORGE=$how FORGE_OF=read FORGE_ONLY=$row" "${small[@]}"; done
  for row in 0 1 17 90 126 127; do found "$how of row $row" "FORGE=$how FORGE_OF=read FORGE_ONLY=$((256 + row))" "${small[@]}"; done
  found "$how of a row in plain memory" "FORGE=$how FORGE_OF=copy FORGE_ONLY=9" "${small[@]}" --plain
done
for at in 2 255 510; do
  found "byte $at of row 33" "FORGE=byte FORGE_AT=$at FORGE_OF=read FORGE_ONLY=$((256 + 33))" "${small[@]}"
  found "byte $at of a row of B" "FORGE=byte FORGE_AT=$at FORGE_OF=read FORGE_ONLY=200" "${small[@]}"
done

# Checkpoints.
model='--layers 2 --width 64 --vocabulary 501 --positions 32'
check 'a small model' '"tensors": 28,' checkpoint virt:3M $model --plain
check 'as many numbers as GPT-2 has tensors' '"tensors": 148,' checkpoint virt:3M --width 8 --vocabulary 257 --positions 16 --runs 1
check 'with the moments' '"tensors": 84,' checkpoint virt:8M $model --optimizer --runs 1 --plain
check 'what is written is the data, a header and two records' '"bytes_written": 549376,' checkpoint virt:3M $model --runs 2
check 'what is read is the data' '"bytes_read": 537088,' checkpoint virt:3M $model --runs 2
check 'wave 32, other blocks' '"verified"' checkpoint 'virt:3M?block=512' $model --wave 32 --runs 1 --plain
check 'wave 4, one wave, depth 2' '"step": 2,' checkpoint 'virt:3M?block=4096' $model --wave 4 --waves 1 --depth 2 --queues 1 --runs 2
check 'lanes move the data' '"verified"' checkpoint 'virt:3M?mover=pull' $model --runs 1
check 'lanes of a wave move the data' '"verified"' checkpoint 'virt:3M?mover=pull' $model --wave 32 --runs 1
check 'short commands' '"verified"' checkpoint 'virt:3M?mdts=8K' $model --runs 1
check 'tensors shorter than a block' '"tensors": 16,' checkpoint virt:64K --layers 1 --width 4 --vocabulary 5 --positions 3 --runs 3
agree 'figures, of what is not verified' 'f["verified"] is False and f["data_bytes"] == 4 * f["numbers"] == 536832 and f["header_bytes"] % 4096 == 0 < f["header_bytes"] and
  near(f["save_bytes_per_s"], f["data_bytes"] / f["save_seconds"]) and near(f["load_bytes_per_s"], f["data_bytes"] / f["load_seconds"]) and
  f["plain_save_seconds"] > 0 < f["plain_load_seconds"] and f["bytes_read"] == f["data_bytes"] + 256' checkpoint virt:3M $model --runs 1 --plain
check 'data of several pieces' '"data_bytes": 4620096,' checkpoint virt:12M --layers 2 --width 208 --vocabulary 501 --positions 32 --runs 2 --output "$dir/pieces.safetensors"
also 'checkpoint: another reader has the numbers of all pieces' python3 "$here/safetensors_reader.py" "$dir/pieces.safetensors" 0 28
file=$dir/checkpoints
truncate -s 1200000 "$file"
check 'a file' '"step": 3,' checkpoint "file:$file" $model
check 'another process loads it' '"step": 3,' checkpoint "file:$file?ro=1" $model --load --runs 1 --output "$dir/model.safetensors"
says 'what is there' 'newest    step 3, safetensors from byte 4096 on' checkpoint "file:$file?ro=1" --load --runs 1
says 'how large it is' 'model     28 tensors, 134208 numbers of F32, 0.5 MiB' checkpoint "file:$file?ro=1" --load --runs 1
says 'not verified' 'result    the sum of what was saved .*' checkpoint "file:$file?ro=1" --load --runs 1
says 'verified' 'result    verified: .*' checkpoint "file:$file?ro=1" $model --load --runs 1 --verify
refuse 'another model to verify with' 1 'WRONG DATA: on storage, the header is not that of this model' checkpoint "file:$file" --load --verify --layers 1 --width 64
refuse 'other numbers to verify with' 1 'WRONG DATA: on storage, number 0' checkpoint "file:$file" $model --load --verify --seed 2
refuse 'no storage' 2 'give one storage' checkpoint --load
refuse 'a width of no whole units' 2 'multiple of 4' checkpoint virt:1M --width 6
refuse 'a storage too small' 1 'two checkpoints of this model need 1097728' checkpoint virt:1M $model
refuse 'no checkpoint' 1 'virt:3M has no checkpoint' checkpoint virt:3M --load
refuse 'a storage not to be written' 1 'read-only' checkpoint "file:$file?ro=1" $model
refuse 'an output that cannot be' 1 'cannot write /dev/full: No space left' checkpoint "file:$file" $model --load --output /dev/full
if [ -n "$losing" ] && chosen 'checkpoint: an output whose end is lost'; then
  output=$(LD_PRELOAD=$losing "$samples/checkpoint/weir-checkpoint" "file:$file?ro=1" $model --load --runs 1 --output "$dir/lost" 2>&1)
  [ $? = 1 ] && grep -q 'cannot write .*/lost: Disk quota exceeded' <<<"$output" && [ ! -e "$dir/lost" ]
  say $? 'checkpoint: an output whose end is lost' "$output"
fi
# One wave goes over several pieces, of which the last one is short: the data ends within a block, with zeros behind it.
head -c 1200000 /dev/zero | tr '\0' x >"$dir/marked"
check 'one wave' '"data_bytes": 536832,' checkpoint "file:$dir/marked" $model --waves 1 --runs 1
behind() {
  local end
  end=$(($(run checkpoint "file:$dir/marked?ro=1" $model --load --runs 1 --json | sed -n 's/.*"\(first_byte\|header_bytes\|data_bytes\)": \([0-9]*\).*/\2/p' | paste -sd+)))
  padded "$dir/marked" "$end" $(((end + 4095) / 4096 * 4096))
}
also 'checkpoint: zeros to the end of the last block' behind
# Of a storage whose second half begins beyond 4 GiB.
truncate -s 9G "$dir/wide"
check 'the newer one beyond 4 GiB' '"first_byte": 4831842304,' checkpoint "file:$dir/wide" $model --runs 2
check 'it is loaded from there' '"step": 2,' checkpoint "file:$dir/wide?ro=1" $model --load --runs 1
dd if="$dir/wide" of="$dir/slice" bs=4096 skip=1179649 count=140 status=none
also 'checkpoint: and lies there' python3 "$here/safetensors_reader.py" "$dir/slice" 0 28
nothing_at() { [ "$(dd if="$dir/wide" bs=1M skip="$1" count=1 status=none | tr -d '\0' | wc -c)" = 0 ]; } # MiB $1
also 'checkpoint: and nothing where the lowest 32 bits of its offset are' nothing_at 512
rm -f "$dir/wide" "$dir/slice"
refuse 'a write that fails' 1 'a command of a lane to .*failed' checkpoint 'virt:3M?fault=status:code=0x280:op=write:after=4' $model
refuse 'a write that fails once' 1 'a command of a lane to .*failed' checkpoint 'virt:3M?fault=status:code=0x280:op=write:after=4:count=1' $model
refuse 'a read that fails' 1 'a command of a lane to .*failed' checkpoint 'virt:3M?fault=status:code=0x281:op=read:lba=100-110' $model
also 'checkpoint: another reader has the numbers of --output' python3 "$here/safetensors_reader.py" "$dir/model.safetensors" 0 28
in_place() {
  local first
  first=$(run checkpoint "file:$file" $model --load --json | sed -n 's/.*"first_byte": \([0-9]*\).*/\1/p')
  python3 "$here/safetensors_reader.py" "$file" "${first:-none}" 28
}
also 'checkpoint: and those that lie in the storage' in_place
small=(checkpoint virt:512K --layers 1 --width 64 --vocabulary 13 --positions 4) # data of whole pages, tensors of 256 bytes at least
found 'nothing saved' 'FORGE=idle FORGE_KERNEL=checkpoint_save' "${small[@]}"
found 'nothing loaded' 'FORGE=idle FORGE_KERNEL=checkpoint_load' "${small[@]}"
for kernel in save load; do runs=3 found "no $kernel in a later run" "FORGE=idle FORGE_KERNEL=checkpoint_$kernel FORGE_ONLY=1" "${small[@]}"; done
found 'no numbers' 'FORGE=idle FORGE_KERNEL=checkpoint_fill' "${small[@]}"
found 'nothing gathered in plain memory' 'FORGE=idle FORGE_KERNEL=checkpoint_load' "${small[@]}" --plain
for how in zero first last end; do
  # Reads: two records; then after the save record, header, record; then the data.
  found "$how of the data on storage" "FORGE=$how FORGE_OF=read FORGE_ONLY=5" "${small[@]}"
  for tensor in 0 2 9 15; do found "$how of tensor $tensor in device memory" "FORGE=$how FORGE_OF=copy FORGE_ONLY=$tensor" "${small[@]}"; done
done
# 1136 bytes of data: a last block that is not whole.
found 'the last number of the data' 'FORGE=byte FORGE_AT=1135 FORGE_OF=read FORGE_ONLY=5' checkpoint virt:64K --layers 1 --width 4 --vocabulary 5 --positions 3

chosen 'checkpoint: interrupted' || { echo "1..$count"; exit; }
for at in 1 65537 204799; do found "byte $at of the data on storage" "FORGE=byte FORGE_AT=$at FORGE_OF=read FORGE_ONLY=5" "${small[@]}"; done

# Of the two checkpoints the newer one counts, if it is whole.
save() { run checkpoint "file:$file$1" $model --runs 1 2>&1; }
step() { run checkpoint "file:$file" $model --load --verify --runs 1 --json 2>&1 | sed -n 's/.*"step": \([0-9]*\).*/\1/p'; }
damage() { cp "$dir/kept" "$file"; printf '\377' | dd of="$file" bs=1 seek="$1" conv=notrunc status=none; }
truncate -s 0 "$file"; truncate -s 1200000 "$file"
save '' >/dev/null; save '' >/dev/null
cp "$file" "$dir/kept" # step 1 in slot 0, step 2 from byte 598016 on
slot=598016
[ "$(step)" = 2 ]
say $? 'checkpoint: two are there, the newer one counts'
for byte in 0 8 16 24 32 40 48; do
  damage $((slot + byte))
  [ "$(step)" = 1 ]
  say $? "checkpoint: a record whose byte $byte is damaged is none"
done
damage $((slot + 4096 + 300))
[ "$(step)" = 1 ]
say $? 'checkpoint: one whose header is damaged is none'
damage $((slot + 4096 + 8192 + 300000))
refuse 'damaged data' 1 'WRONG DATA: the checkpoint of step 2' checkpoint "file:$file" --load
damage 300000
[ "$(step)" = 2 ]
say $? 'checkpoint: damage to the older one does not matter'

# A slot that cannot be read keeps nobody from loading the other one, and is the one that a save goes over.
cp "$dir/kept" "$file"
unread() { echo "file:$file?fault=status:code=0x281:op=read:lba=$1-$1"; } # blocks have 4096 bytes
for which in '0 2' "$((slot / 4096)) 1"; do
  output=$(run checkpoint "$(unread "${which% *}")" $model --load --verify --runs 2 --json 2>&1)
  grep -q "\"step\": ${which#* }," <<<"$output" && [ "$(grep -c 'may not be the newest' <<<"$output")" = 1 ]
  say $? "checkpoint: step ${which#* } is loaded, the other one's record cannot be read" "$output"
done
other() { if [ "$1" = 0 ]; then tail -c +$((slot + 1)) "$2"; else head -c $slot "$2"; fi; } # other UNREAD FILE
for which in '0 3' "$((slot / 4096)) 2"; do
  cp "$dir/kept" "$file"
  output=$(run checkpoint "$(unread "${which% *}"):count=1" $model --runs 1 2>&1) && [ "$(grep -c 'the save goes over it' <<<"$output")" = 1 ] &&
    [ "$(step)" = "${which#* }" ] && cmp <(other "${which% *}" "$dir/kept") <(other "${which% *}" "$file")
  say $? "checkpoint: step ${which#* } goes over what could not be read, and the other one stays" "$output"
done
cp "$dir/kept" "$file"
output=$(run checkpoint "$(unread 0)" $model --runs 1 2>&1)
[ $? = 1 ] && [ "$(wc -l <<<"$output")" = 2 ] && [ "$(step)" = 3 ]
say $? 'checkpoint: one that cannot be read when it is saved is an error, and whole where it can be read' "$output"

# Interrupted after each command of a save: the one before is there, or the new one once its record is written.
whole=
for after in $(seq 3 21); do
  cp "$dir/kept" "$file"
  output=$(save "?fault=gone:after=$after")
  now=$(step)
  [ "$now" = 3 ] && : "${whole:=$after}"
  case $now in 2) [ -z "$whole" ] ;; 3) ;; *) false ;; esac
  say $? "checkpoint: pulled out after $after commands, step ${now:-none} is there" "$output"
done
[ "${whole:-0}" -ge 18 ]
say $? "checkpoint: the new one counts from its record on (${whole:-never} commands)"
# Killed with writes under way, as the trace counts them: of these the last one is not answered, and none behind it.
for writes in 2 5 9; do
  cp "$dir/kept" "$file"
  : >"$dir/trace"
  "$samples/checkpoint/weir-checkpoint" "file:$file?timeout_ms=600000&fault=late:us=1000000000:op=write:after=$((writes - 1))&trace=$dir/trace" $model --waves 2 --runs 1 >/dev/null 2>&1 &
  pid=$!
  until [ "$(grep -c 'begin .* write' "$dir/trace" 2>/dev/null)" -ge $writes ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
  kill -KILL $pid; { wait $pid; } 2>/dev/null
  [ $? = 137 ] && [ "$(step)" = 2 ] && [ "$(save '' >/dev/null; step)" = 3 ]
  say $? "checkpoint: killed at write $writes, the one before is there, and the next save is step 3"
done
# What is durable before what.
cp "$dir/kept" "$file"
save "?trace=$dir/trace.order" >/dev/null
output=$(python3 - "$dir/trace.order" 2>&1 <<'END'
import sys
open_, done = {}, []
for line in open(sys.argv[1]):
    words = line.split()
    if words[0] == "begin":
        open_[words[1]] = words[2:]
        if words[2] == "flush":
            assert len(open_) == 1, "a flush with commands under way"
        done.append(words[2:])
    else:
        del open_[words[1]]
kinds = [(what, int(at)) for what, at, *_ in done if what != "read"]
first, last = kinds.index(("write", 0)), len(kinds) - 1 - kinds[::-1].index(("write", 0))
assert first == 0 and kinds[1][0] == "flush", kinds[:3]
assert kinds[last - 1][0] == "flush" and kinds[last + 1][0] == "flush", kinds[last - 2:]
between = [at for what, at in kinds[2:last - 1]]
assert len(between) >= 9 and min(between) == 4096 and all(what == "write" for what, at in kinds[2:last - 1]), kinds
END
)
say $? 'checkpoint: the old record is cleared, the data is durable before the record, and that at the end' "$output"
echo "1..$count"
