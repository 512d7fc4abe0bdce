#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every sample comes to what a plain computation comes to, whatever the cache, the lines,
# the blocks, the wave width and the number of storages; and bad input gets one clear
# sentence. weir-bfs has a test of its own.
# usage: samples_test.sh WEIR-GRAPH SAMPLES [FORGE]    SAMPLES: the build's folder of samples; FORGE: forge.c, as a library
set -u
# The device to run on: the cpu, whatever else there is, unless told otherwise.
export WEIR_BACKEND=${WEIR_TEST_CONTEXT:-cpu}
graph=$1 samples=$2 forge=${3-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
count=0

# WEIR_TEST_CASES is a pattern of the cases to run.
chosen() {
  # shellcheck disable=SC2053
  [[ -z ${WEIR_TEST_CASES-} || $1 == $WEIR_TEST_CASES ]]
}

program() { printf '%s/%s/weir-%s' "$samples" "$1" "$1"; }

check() { # check NAME WORDS SAMPLE ARGUMENTS...: succeeds, verified, and the JSON has WORDS
  local name=$1 words=$2 sample=$3; shift 3
  chosen "$name" || return 0
  count=$((count + 1))
  if output=$(timeout 1200 "$(program "$sample")" "$@" --json 2>&1) && grep -q '"verified": true' <<<"$output" &&
    grep -qE -- "$words" <<<"$output"; then
    printf 'ok %d - %s: %s\n' "$count" "$sample" "$name"
  else
    printf 'not ok %d - %s: %s (verified, and /%s/)\n' "$count" "$sample" "$name" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

refuse() { # refuse NAME STATUS WORDS SAMPLE ARGUMENTS...: exit status and one sentence with WORDS
  local name=$1 status=$2 words=$3 sample=$4; shift 4
  chosen "$name" || return 0
  local output rc
  count=$((count + 1))
  output=$(timeout 600 "$(program "$sample")" "$@" 2>&1 >/dev/null); rc=$?
  if [ "$rc" = "$status" ] && grep -qiE -- "$words" <<<"$output" && [ "$(head -1 <<<"$output" | wc -c)" -gt 20 ]; then
    printf 'ok %d - %s refuses: %s\n' "$count" "$sample" "$name"
  else
    printf 'not ok %d - %s refuses: %s (status %s, expected %s and /%s/)\n' "$count" "$sample" "$name" "$rc" "$status" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

table() { # one case per line: SAMPLE | NAME | WORDS | ARGUMENTS; @ is the folder
  local sample name words arguments
  while IFS='|' read -r sample name words arguments; do
    [ -n "${sample// /}" ] || continue
    read -r sample <<<"$sample"; read -r name <<<"$name"; read -r words <<<"$words"
    read -r -a arguments <<<"${arguments//@/$dir}"
    case " ${arguments[*]} " in *' --wave '*) [ "$WEIR_BACKEND" = cpu ] || continue ;; esac # only the cpu's waves have a choice
    "${@}" "$name" "$words" "$sample" "${arguments[@]}"
  done
}

found() { # found NAME HOW SAMPLE ARGUMENTS...: a result that is wrong, by the variables HOW of forge.c, is found
  local name=$1 how=$2 sample=$3 output rc; shift 3
  chosen "$name" || return 0
  count=$((count + 1))
  output=$(env LD_PRELOAD="$forge" $how timeout 600 "$(program "$sample")" "$@" 2>&1 >/dev/null); rc=$?
  if [ "$rc" = 1 ] && grep -q 'WRONG' <<<"$output"; then
    printf 'ok %d - %s finds: %s\n' "$count" "$sample" "$name"
  else
    printf 'not ok %d - %s finds: %s (status %s, expected 1 and WRONG)\n' "$count" "$sample" "$name" "$rc"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

for kind in kron urand; do
  for scale in 10 14; do
    "$graph" generate $kind --scale $scale --seed 7 --weights --quiet -o "$dir/$kind$scale.bel" || exit 1
  done
done
"$graph" generate kron --scale 8 --seed 3 --quiet -o "$dir/light.bel" || exit 1
"$graph" stripe "$dir/kron14.bel" --over "$dir"/s0 "$dir"/s1 "$dir"/s2 --unit 65536 --quiet || exit 1
"$graph" stripe "$dir/kron10.bel" --over "$dir"/n0 "$dir"/n1 --unit 8192 --quiet || exit 1

# A directed graph of four vertices with two edges: 0 -> 1 (weight 7), 2 -> 1 (weight 300000).
words() { local word; for word in "$@"; do printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x\\x%02x\\x%02x\\x%02x\\x%02x' \
  $((word & 255)) $((word >> 8 & 255)) $((word >> 16 & 255)) $((word >> 24 & 255)) $((word >> 32 & 255)) 0 0 0)"; done; }
words 5 8 0 1 1 2 2 >"$dir/tiny.bel.col"
words 2 8 1 1 >"$dir/tiny.bel.dst"
words 2 4 $((7 + (300000 << 32))) >"$dir/tiny.bel.val"

# Hubs: eight vertices of 4097 edges each, which are two pieces; others about a piece's ends. Of each the last edge alone leads somewhere.
# And a chain whose length has more than 32 bits.
python3 - "$dir" <<'END'
import struct, sys
def write(name, rows, weight):
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    for suffix, kind, values in ("col", "Q", offsets), ("dst", "Q", sum(rows, [])), ("val", "I", [weight] * offsets[-1]):
        with open(f"{sys.argv[1]}/{name}.bel.{suffix}", "wb") as file:
            file.write(struct.pack(f"<2Q{len(values)}{kind}", len(values), struct.calcsize(kind), *values))
def hubs(degrees):
    first = len(degrees) + 1
    return [list(range(1, first))] + [[0] * (degree - 1) + [first + i] for i, degree in enumerate(degrees)] + [[]] * len(degrees)
write("hubs", hubs([4097] * 8), 3)
write("pieces", hubs([1, 4095, 4096, 4097, 8191, 8192, 8193, 12289]), 5)
write("chain", [[1], [2], [3], []], 4294967295)
END
for name in hubs pieces; do
  for sample in bfs sssp; do
    table check <<CASES
      $sample | $name | "verified" | @/$name.bel --source 0 --verify
      $sample | $name, wave 32 | "verified" | @/$name.bel --source 0 --verify --wave 32
      $sample | $name, plain memory | "plain_bytes": [1-9] | @/$name.bel --source 0 --verify --plain
CASES
  done
done
for sample in spmv pagerank cc sssp; do
  for kind in kron urand; do
    table check <<CASES
      $sample | $kind 10, 8 cache lines | "commands": [1-9] | @/${kind}10.bel --verify --cache-lines 8
      $sample | $kind 10, 8 lines of 512 bytes | "line_bytes": 512 | @/${kind}10.bel --verify --cache-lines 8 --line 512 --storage block=512
      $sample | $kind 14, an eighth, and plain memory | "ratio": [0-9] | @/${kind}14.bel --verify --plain
      $sample | $kind 14, all in cache, twice more | "warm_seconds": [0-9.]*[1-9] | @/${kind}14.bel --verify --cache 64M --repeat 2
      $sample | $kind 10, wave 32 | "verified" | @/${kind}10.bel --verify --wave 32 --plain --cache 512K
      $sample | $kind 10, wave 4, depth 2, one queue | "queues": [1-9] | @/${kind}10.bel --verify --wave 4 --depth 2 --queues 1 --cache-lines 64
CASES
  done
  one_way=$([ $sample != pagerank ] || printf -- --undirected)
  table check <<CASES
    $sample | two edges one way, large lines | "edges": 2, | @/tiny.bel $one_way --verify --line 65536 --cache 1M
CASES
done
# Files of the GAP benchmark suite, where they lie: no folder for another copy is there. The tiny one is directed.
"$graph" generate urand --scale 10 --seed 5 --weights --quiet -o "$dir/u.bel" || exit 1
for suffix in sg wsg; do
  for name in kron10 kron14 u tiny; do "$graph" convert "$dir/$name.bel" "$dir/$name.$suffix" --quiet 2>/dev/null || exit 1; done
  for sample in bfs cc pagerank sssp spmv; do
    case $suffix$sample in sgsssp | sgspmv) continue ;; esac
    one_way=$([ $sample != pagerank ] || printf -- --undirected)
    export TMPDIR=/nonexistent
    table check <<CASES
      $sample | .$suffix as it is | "verified" | @/kron14.$suffix --verify --cache 256K
      $sample | .$suffix as it is, 8 lines of 512 bytes | "line_bytes": 512 | @/u.$suffix --verify --cache-lines 8 --line 512 --storage block=512
      $sample | .$suffix as it is, wave 32 | "verified" | @/kron10.$suffix --verify --wave 32 --cache 128K
      $sample | .$suffix as it is, wave 4, depth 2, one queue | "verified" | @/u.$suffix --verify --wave 4 --depth 2 --queues 1 --cache-lines 64
      $sample | .$suffix in plain memory | "plain_bytes": [1-9] | @/kron10.$suffix --verify --plain
      $sample | .$suffix, directed | "edges": 2, | @/tiny.$suffix $one_way --verify --line 65536 --cache 1M
CASES
    unset TMPDIR
  done
done
table check <<CASES
  cc | .sg, large component left out | "sampled": true | @/kron14.sg --sample --verify --plain
  spmv | .wsg, the vector on storage, too | "x_stored": true | @/kron14.wsg --x virt:1M --verify --plain
  bfs | .bel set verified with .wsg | "verified" | @/kron10.bel --verify --reference @/kron10.wsg
CASES
truncate -s 3M "$dir/scratch"
weights="--weights file:$dir/kron14.bel.val --reference $dir/kron14.bel --verify"
striped="--offsets file:@/kron14.bel.col --edges file:@/s0,file:@/s1,file:@/s2 --reference @/kron14.bel --verify"
narrow="--offsets file:@/kron10.bel.col --edges file:@/n0,file:@/n1 --stripe 8K --reference @/kron10.bel --verify"
memory="--offsets virt:1M?load=@/kron14.bel.col --edges virt:8M?load=@/kron14.bel.dst&lat_us=20 --reference @/kron14.bel --verify"
table check <<CASES
  pagerank | striped over three | "verified" | $striped
  pagerank | all 20 iterations | "iterations": 20 | @/kron10.bel --tolerance 0 --verify
  pagerank | three iterations at most | "iterations": 3 | @/kron10.bel --iterations 3 --verify
  cc | striped over two in units of 8 KiB | "verified" | $narrow
  cc | the same in plain memory, too | "plain_bytes": [1-9] | $narrow --plain
  cc | from memory | "verified" | $memory --cache 512K
  cc | large component left out | "sampled": true | @/kron14.bel --sample --verify --plain
  cc | components counted | "components": 2,? | @/tiny.bel --verify
  sssp | from memory, weights too | "verified" | $memory --weights virt:4M?load=@/kron14.bel.val --cache 2M
  sssp | Bellman and Ford's way | "phases": 1,? | @/kron14.bel --delta 0 --verify
  sssp | small steps | "delta": 1,? | @/kron10.bel --delta 1 --verify
  sssp | from vertex 0 | "source": 0,? | @/tiny.bel --source 0 --verify
  sssp | lengths beyond 32 bits | "phases": 4,? | @/chain.bel --source 0 --verify --plain
  sssp | the longest steps | "phases": 1,? | @/chain.bel --source 0 --delta 18446744073709551615 --verify
  spmv | just room for the vector | "x_stored": true | @/kron14.bel --x virt:64K --verify
  spmv | striped over three | "verified" | $striped $weights
  spmv | the vector on storage, too | "x_stored": true | @/kron14.bel --x virt:1M --verify --plain
  spmv | the vector on storage, small cache | "x_stored": true | @/urand10.bel --x virt:1M --verify --cache-lines 8
  vecmean | u64 | "elements": 524288 | virt:4M --verify --plain --repeat 2
  vecmean | f32 | "type": "f32" | virt:4M --type f32 --verify --plain
  vecmean | f32, twice as many as of u64 | "elements": 1048576 | virt:4M --type f32 --verify
  vecmean | f32, 8 lines of 512 bytes | "line_bytes": 512 | virt:1M --type f32 --verify --cache-lines 8 --line 512
  vecmean | wave 32, lines of 64K | "line_bytes": 65536 | virt:4M?block=512 --verify --wave 32 --line 65536 --cache 2M --plain
  vecmean | a part of a file | "bytes": 8192 | file:@/kron14.bel.dst --size 8192 --verify
  vecmean | wave 64, depth 2 | "verified" | virt:256K?lat_us=20 --type f32 --verify --wave 64 --depth 2 --queues 1
  vectoradd | u64, an eighth | "tiled_bytes_written": 4194304 | virt:12M --verify --plain
  vectoradd | f32, nothing read that is overwritten | "cached_bytes_read": 8388608 | virt:12M --type f32 --cache 16M --runs 1 --verify
  vectoradd | 16 cache lines of 512 bytes, tiles of 4K | "line_bytes": 512 | virt:1M?block=512 --cache-lines 16 --line 512 --tile 4K --verify
  vectoradd | wave 32, lines of 64K | "tile_bytes": 65536 | virt:6M --wave 32 --line 65536 --tile 64K --cache 2M --runs 1 --verify
  vectoradd | tiles as long as lines are | "tile_bytes": 16384 | virt:6M --line 16K --cache 2M --runs 1 --verify
  vectoradd | a file, depth 2, one queue | "cached_bytes_written": 1048576 | file:@/scratch --depth 2 --queues 1 --runs 2 --verify
  ctc | one lane | "best_speedup": [0-9] | virt:1M?lat_us=20 --step 1 --runs 1 --commands 8
  ctc | 100 lanes in blocks of 32 | "lanes": 100 | virt:8M --lanes 100 --block 32 --step 1 --runs 1 --commands 8
  ctc | wave 32, small blocks, few slots | "verified" | virt:1M?block=512 --lanes 64 --wave 32 --depth 4 --queues 1 --step 2 --runs 1 --commands 4
  ctc | a file, with a service | "service": 2 | file:@/kron14.bel.dst --service 2 --lanes 4 --step 2 --runs 1 --commands 4
CASES

# Damaged and missing things.
cp "$dir/kron10.bel.col" "$dir/bad.bel.col"; cp "$dir/kron10.bel.dst" "$dir/bad.bel.dst"; cp "$dir/kron10.bel.val" "$dir/bad.bel.val"
printf '\xff\xff\x00\x00\x00\x00\x00\x00' | dd of="$dir/bad.bel.dst" bs=1 seek=$((16 + 8 * 100)) conv=notrunc status=none
cp "$dir/kron10.bel.dst" "$dir/worse.bel.dst"; cp "$dir/kron10.bel.col" "$dir/worse.bel.col"; cp "$dir/kron10.bel.val" "$dir/worse.bel.val"
printf '\xff\xff\xff\x00\x00\x00\x00\x00' | dd of="$dir/worse.bel.col" bs=1 seek=$((16 + 8 * 50)) conv=notrunc status=none
for suffix in col dst val; do cp "$dir/kron10.bel.$suffix" "$dir/behind.bel.$suffix"; done
printf '\0\4\0\0\0\0\0\0' | dd of="$dir/behind.bel.dst" bs=1 seek=$((16 + 8 * 100)) conv=notrunc status=none
truncate -s 1000 "$dir/short"
printf '0 1\n' >"$dir/text.el"; printf '0 1 2\n' >"$dir/text.wel"
head -c 65536 /dev/zero | tr '\0' '\377' >"$dir/nan"
damage() { # damage FROM TO BYTE BYTES: a copy of FROM that has BYTES, in octal, from BYTE on
  cp "$dir/$1" "$dir/$2"; printf "$4" | dd of="$dir/$2" bs=1 seek="$3" conv=notrunc status=none
}
edges=$((17 + 8 * 1025)) # of a graph of 1,024 vertices
damage kron10.sg neighbour.sg $((edges + 4 * 100)) '\377\377\0\0'
damage kron10.sg behind.sg $((edges + 4 * 100)) '\0\4\0\0'
damage kron10.wsg neighbour.wsg $((edges + 8 * 100)) '\377\377\0\0'
damage kron10.wsg weight.wsg $((edges + 8 * 100 + 4)) '\376\377\377\377'
damage kron10.sg offset.sg $((17 + 8 * 50)) '\377\377\377\0\0\0\0\0'
damage kron10.sg last.sg $((17 + 8 * 1024)) '\1\0\0\0\0\0\0\0'
damage kron10.sg direction.sg 0 '\2'
head -c 20000 "$dir/kron10.sg" >"$dir/cut.sg"
cp "$dir/kron10.sg" "$dir/renamed.wsg"
refused() { local name=$1 words=$2 sample=$3 status; shift 3; status=$1; shift; refuse "$name" "$status" "$words" "$sample" "$@"; }
for sample in spmv pagerank cc; do
  table refused <<CASES
    $sample | missing graph | nothing | 1 @/nothing.bel
    $sample | no graph | a graph .*--offsets | 2 --verify
    $sample | two graphs | one graph | 2 @/kron10.bel @/kron14.bel
    $sample | unknown option | frobnicate | 2 @/kron10.bel --frobnicate
    $sample | no cache lines | cache needs | 2 @/kron10.bel --cache-lines 0
    $sample | unknown backend | nosuch | 1 @/kron10.bel --backend nosuch
    $sample | edge to a vertex that does not exist | 65535.*1024 | 1 @/bad.bel
    $sample | the same in plain memory | 65535.*1024 | 1 @/bad.bel --plain
    $sample | edge to the vertex behind the last | edge to vertex 1024, .* only 1024; | 1 @/behind.bel
    $sample | offsets that fall | vertex [45][90] .*damaged | 1 @/worse.bel
CASES
done
# One of the storages behind the cache dies, with commands under way on lines that the others need.
for sample in spmv pagerank cc sssp; do
  [ "$WEIR_BACKEND" = cpu ] || continue # elsewhere the watchdog may have to wait for the kernel
  table refused <<CASES
    $sample | one storage is pulled out | lane .*no longer answers | 1 @/kron14.bel --storage fault=gone:after=200
    $sample | one storage fails | lane .*the controller failed | 1 @/kron14.bel --storage fault=fatal:after=200
CASES
done

if [ "$WEIR_BACKEND" = cpu ]; then
  table refused <<CASES
    vecmean | its storage fails | lane .*the controller failed | 1 virt:1M?fault=fatal:after=100
    vecmean | its storage is pulled out | lane .*no longer answers | 1 virt:1M?fault=gone:after=100
    vectoradd | its storage fails | a tile of .*: the controller failed | 1 virt:12M?fault=fatal:after=500 --tile 4K --runs 1
    vectoradd | its storage is pulled out | a tile of .*no longer answers | 1 virt:12M?fault=gone:after=500 --tile 4K --runs 1
    ctc | its storage fails | a read of .* failed: .*the controller failed | 1 virt:1M?fault=fatal:after=50 --lanes 4 --step 2 --runs 1 --commands 16
CASES
fi

for sample in bfs cc pagerank; do
  table refused <<CASES
    $sample | a .sg file cut short | cut short | 1 @/cut.sg
    $sample | a .sg file of no direction | no .sg file | 1 @/direction.sg
    $sample | a .sg file under the other name | rename it to .sg | 1 @/renamed.wsg
    $sample | a last offset that is not the number of edges | last offset .at byte 8209. is 1, | 1 @/last.sg
    $sample | text | is text.*weir-graph convert | 1 @/text.el
CASES
done
for sample in cc pagerank; do # (bfs comes by these vertices or does not)
  table refused <<CASES
    $sample | .sg: edge to a vertex that does not exist | 65535.*1024; the file is damaged | 1 @/neighbour.sg
    $sample | .sg: the same in plain memory | 65535.*1024; the file is damaged | 1 @/neighbour.sg --plain
    $sample | .sg: edge to the vertex behind the last | edge to vertex 1024, .* only 1024; | 1 @/behind.sg
    $sample | .sg: offsets that fall | vertex [45][90] .*begin; the file is damaged | 1 @/offset.sg
CASES
done
table refused <<CASES
  spmv | .wsg: edge to a vertex that does not exist | 65535.*1024; the file is damaged | 1 @/neighbour.wsg
  spmv | .wsg: a weight below 0 | edge 100 has the weight -2: negative | 1 @/weight.wsg
  sssp | .wsg: a weight below 0 | edge 100 has the weight -2: negative | 1 @/weight.wsg --delta 0
  sssp | .sg: no weights | has no weights.*\.wsg | 1 @/kron10.sg
  spmv | .sg: no weights | has no weights.*\.wsg | 1 @/kron10.sg
  spmv | text to verify with | no rows of edges, being text | 1 @/kron10.bel --verify --reference @/text.wel
  spmv | no weights | --weights | 1 @/light.bel
  spmv | no weights among URIs | --weights | 2 --offsets file:@/light.bel.col --edges file:@/light.bel.dst --cache 1M
  spmv | no room for the vector | needs 65536 | 1 @/kron14.bel --x virt:4K
  sssp | no weights | --weights | 1 @/light.bel
  sssp | source past the end | 9999999.*1024 | 1 @/kron10.bel --source 9999999
  sssp | a delta that is no number | does not take "few" | 2 @/kron10.bel --delta few
  sssp | edge to a vertex that does not exist | 65535.*1024 | 1 @/bad.bel --delta 0
  cc | verification without a reference | --reference | 1 --offsets file:@/kron10.bel.col --edges file:@/kron10.bel.dst --cache 1M --verify
  cc | a larger graph to verify with | is another graph: 16384 vertices .* 1024 and | 1 @/kron10.bel --verify --reference @/kron14.bel
  cc | a smaller graph to verify with | is another graph: 4 vertices | 1 @/kron10.bel --verify --reference @/tiny.bel
  bfs | another graph to verify with | is another graph: 4 vertices | 1 @/kron10.bel --verify --reference @/tiny.bel
  sssp | another graph to verify with | is another graph: 4 vertices | 1 @/kron10.bel --source 999 --verify --reference @/tiny.bel
  pagerank | one with as many vertices to verify with | is another graph: 1024 vertices | 1 @/kron10.bel --verify --reference @/urand10.bel
  pagerank | no iterations | from 1 to | 2 @/kron10.bel --iterations 0
  vecmean | no storage | give one storage | 2 --verify
  vecmean | missing file | nothing | 1 file:@/nothing
  vecmean | a type that is none | u64 or f32 | 2 virt:1M --type f16
  vecmean | more than there is | has 1048576 | 1 virt:1M --size 2M
  vecmean | numbers that are none | element 0 is not a finite number | 1 file:@/nan --type f32 --verify
  vecmean | a value that is missing | --size needs a value | 2 virt:1M --size
  vectoradd | no storage | give one storage | 2 --verify
  vectoradd | a storage too small | three vectors | 1 virt:64K
  vectoradd | a length between blocks | multiple of 65536 | 1 virt:12M --size 100000
  vectoradd | a tile of three blocks | power of two | 2 virt:12M --tile 12K
  vectoradd | a tile longer than a command | takes 8192 at most | 1 virt:12M?mdts=8K --tile 64K
  vectoradd | a storage not to be written | read-only | 1 file:@/scratch?ro=1
  ctc | no storage | give one storage | 2 --runs 1
  ctc | missing file | nothing | 1 file:@/nothing
  ctc | a step of nothing | 0.05 to | 2 virt:1M --step 0
  ctc | a file shorter than a block | short | 1 file:@/short?block=512
  ctc | blocks too large | from 1 to 1024 | 2 virt:1M --block 2000
  ctc | a read that fails | failed: | 1 virt:1M?fault=status:code=0x281:op=read:every=20 --runs 1 --step 2 --commands 4
CASES

# Results that are wrong. A kernel that does nothing leaves what was there before.
if [ -n "$forge" ]; then
  for how in zero first last; do
    for sample in bfs cc pagerank spmv sssp; do # (of one component all labels are zero)
      found "$how of the result" "FORGE=$how FORGE_OF=copy" $sample "$dir/kron10.bel" --verify
    done
    found "$how of the vector" "FORGE=$how FORGE_OF=read" vectoradd virt:12M --runs 1 --verify
    found "$how of the vector, f32" "FORGE=$how FORGE_OF=read" vectoradd virt:12M --type f32 --runs 1 --verify
  done
  found "the end of the result" "FORGE=end FORGE_OF=copy" spmv "$dir/urand10.bel" --verify
  found "the end of the result" "FORGE=end FORGE_OF=copy" cc "$dir/urand10.bel" --verify
  # (of a lane's sum the first word counts for integers only, and the last is a rounding rest)
  found "zero of the sums" "FORGE=zero FORGE_OF=copy" vecmean virt:1M --verify
  found "first of the sums" "FORGE=first FORGE_OF=copy" vecmean virt:1M --verify
  found "zero of the sums, f32" "FORGE=zero FORGE_OF=copy" vecmean virt:1M --type f32 --verify
  found "other blocks on the host" "FORGE=first FORGE_OF=read" ctc virt:1M --lanes 4 --step 2 --runs 1 --commands 4
  found "zeros on the host" "FORGE=zero FORGE_OF=read" ctc virt:1M --lanes 4 --step 2 --runs 1 --commands 4
  # Where storage has not what was written, lanes and host read the same of it.
  for how in zero last; do
    found "$how on storage" "FORGE=$how FORGE_OF=write FORGE_ONLY=0" ctc virt:1M --lanes 4 --step 2 --runs 1 --commands 4
    for type in u64 f32; do found "$how on storage, $type" "FORGE=$how FORGE_OF=write FORGE_ONLY=0" vecmean virt:1M --type $type --verify; done
    found "$how on storage" "FORGE=$how FORGE_OF=write FORGE_ONLY=0" vectoradd virt:12M --runs 1 --verify
  done
  found "no reads behind the first run" "FORGE=idle FORGE_KERNEL=ctc_iterations" ctc virt:1M --lanes 4 --step 2 --runs 1 --commands 4
  found "no reads at the same time" "FORGE=idle FORGE_KERNEL=ctc_async" ctc virt:1M --lanes 4 --step 2 --runs 1 --commands 4
  found "no product" "FORGE=idle FORGE_KERNEL=spmv_multiply" spmv "$dir/urand10.bel" --verify
  found "no product in plain memory" "FORGE=idle FORGE_KERNEL=spmv_plain_multiply" spmv "$dir/urand10.bel" --verify --plain
  found "no product of a .wsg" "FORGE=idle FORGE_KERNEL=spmv_gapbs_multiply" spmv "$dir/u.wsg" --verify
  found "no labels of a .sg" "FORGE=idle FORGE_KERNEL=cc_gapbs_edges" cc "$dir/u.sg" --verify
  found "no labels in plain memory" "FORGE=idle FORGE_KERNEL=cc_plain_edges" cc "$dir/urand10.bel" --verify --plain
  found "no sums by hand" "FORGE=idle FORGE_KERNEL=vectoradd_tiled" vectoradd virt:12M --runs 1 --verify
  found "no sums through the cache" "FORGE=idle FORGE_KERNEL=vectoradd_cached" vectoradd virt:12M --runs 1 --verify
  found "no sums in plain memory" "FORGE=idle FORGE_KERNEL=vectoradd_plain" vectoradd virt:12M --runs 1 --verify --plain
  found "the last sum in plain memory" "FORGE=last FORGE_OF=copy FORGE_ONLY=3" vectoradd virt:12M --runs 1 --verify --plain
  found "no sum in plain memory" "FORGE=idle FORGE_KERNEL=vecmean_plain_u64" vecmean virt:1M --verify --plain
  found "no sum in plain memory, f32" "FORGE=idle FORGE_KERNEL=vecmean_plain_f32" vecmean virt:1M --type f32 --verify --plain
  # What rounding cannot do, though it is little: 2^-3 of one lane's sum, 2^-11 of a row, 2^-34 of all rank.
  found "a bit of one sum, f32" "FORGE=byte FORGE_AT=18 FORGE_OF=copy" vecmean virt:1M --type f32 --verify
  found "a bit of one row" "FORGE=byte FORGE_AT=1 FORGE_OF=copy" spmv "$dir/urand10.bel" --verify
  found "a bit of one rank" "FORGE=byte FORGE_AT=3 FORGE_OF=copy" pagerank "$dir/urand10.bel" --verify
  found "zero of the second pass' sums, f32" "FORGE=zero FORGE_OF=copy FORGE_ONLY=1" vecmean virt:1M --type f32 --repeat 2 --verify
fi

# Results as files, and graphs as they are. (tests/graph/gapbs_test.sh compares results with another program's.)
same() { # same NAME COMMAND...: it ends with 0
  count=$((count + 1))
  if output=$("${@:2}" 2>&1); then printf 'ok %d - %s\n' "$count" "$1"; else printf 'not ok %d - %s\n' "$count" "$1"; sed 's/^/# /' <<<"$output"; fi
}
cat >"$dir/compare" <<'END'
import struct, sys
of, kind, text, binary = sys.argv[1:]
values = [v[0] for v in struct.iter_unpack("<" + kind, open(binary, "rb").read())]
lines = [line.split() for line in open(text)]
read = float if kind in "fd" else int
assert len(values) == len(lines) > 0 and any(values)
for v, (value, line) in enumerate(zip(values, lines)):
    got = read(line[1])
    assert int(line[0]) == v and (struct.pack("<f", got) == struct.pack("<f", value) if kind == "f" else got == value), (v, value, line)
if of == "pagerank":
    assert abs(sum(values) - 1) < 1e-6, sum(values)
END
for kind in "bfs I --source 1" "cc I" "sssp Q --source 1" "pagerank d --iterations 5" "spmv f"; do
  read -r sample kind options <<<"$kind"
  same "$sample: --output as bytes" "$(program "$sample")" "$dir/kron10.bel" $options --output "$dir/out"
  same "$sample: a .wsg as it is, --output as text" "$(program "$sample")" "$dir/kron10.wsg" $options --output "$dir/out.txt"
  same "$sample: both say the same" python3 "$dir/compare" "$sample" "$kind" "$dir/out.txt" "$dir/out"
  refuse "a full disk" 1 'cannot write /dev/full: No space left' "$sample" "$dir/kron10.bel" $options --output /dev/full
done
printf '0 1\n1 2\n2 0\n' >"$dir/ring.el"
"$graph" convert "$dir/ring.el" "$dir/ring.sg" --quiet
refuse "a directed graph" 1 "directed.*symmetrize" pagerank "$dir/ring.sg"
"$graph" convert "$dir/ring.sg" "$dir/ring.bel" --quiet
refuse "a directed graph" 1 "directed.*symmetrize" pagerank "$dir/ring.bel"
printf '0 1\n1 0\n5 1\n1 5\n' >"$dir/gaps.el" # 2 to 4 have no edges
"$graph" convert "$dir/gaps.el" "$dir/gaps.sg" --quiet
check "rank of vertices without edges is lost" '"iterations": 20' pagerank "$dir/gaps.sg" --lose-dangling --tolerance 0 --verify
check "or shared out" '"iterations": 20' pagerank "$dir/gaps.sg" --tolerance 0 --verify
python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<?qqq", False, 0, 0, 0))' >"$dir/none.sg"
check "a graph without vertices" '"vertices": 0' pagerank "$dir/none.sg" --verify
# Each iteration goes over all edges: in the text, too.
if chosen "edges of all iterations"; then
  count=$((count + 1))
  text=$("$(program pagerank)" "$dir/kron14.bel" --iterations 7 --tolerance 0 2>&1)
  edges=$("$(program pagerank)" "$dir/kron14.bel" --iterations 1 --json | sed -n 's/.*"edges": \([0-9]*\).*/\1/p')
  if awk -v edges="$edges" '$1 == "time" { found = 1; wanted = 7 * edges / $2 / 1e6; good = $4 > 0.5 * wanted && $4 < 2 * wanted }
    END { exit !(found && good) }' <<<"$text"; then
    printf 'ok %d - pagerank: edges of all iterations\n' "$count"
  else
    printf 'not ok %d - pagerank: edges of all iterations\n' "$count"
    printf '%s\n' "$text" "$edges edges" | sed 's/^/# /'
  fi
fi
# Figures agree with one another.
agree() { # agree NAME EXPRESSION RESULT SAMPLE ARGUMENTS...
  local name=$1 expression=$2 result=$3 sample=$4; shift 4
  chosen "$name" || return 0
  count=$((count + 1))
  if output=$("$(program "$sample")" "$@" --json 2>&1 | "$(dirname "$0")/figures.py" "$expression" ${result:+"$result"} 2>&1); then
    printf 'ok %d - %s: %s\n' "$count" "$sample" "$name"
  else
    printf 'not ok %d - %s: %s\n' "$count" "$sample" "$name"
    sed 's/^/# /' <<<"$output"
  fi
}
agree "vertices reached, and levels" 'f["reached"] == sum(v != NEVER for v in d) < len(d) and f["levels"] == 1 + max(v for v in d if v != NEVER)' \
  "$dir/out" bfs "$dir/kron10.bel" --source 1 --output "$dir/out"
agree "the median of three between the least and the most" '0 < f["warm_seconds_min"] < f["warm_seconds"] < f["warm_seconds_max"]' \
  '' bfs "$dir/kron14.bel" --source 1 --repeat 3
agree "the median of two" 'near(f["warm_seconds"], (f["warm_seconds_min"] + f["warm_seconds_max"]) / 2)' '' bfs "$dir/kron10.bel" --source 1 --repeat 2
agree "rates" 'near(f["teps"], f["edges_traversed"] / f["seconds"]) and near(f["iops"], f["commands"] / f["seconds"])' '' bfs "$dir/kron10.bel" --source 1
agree "gains and their limits" 'all(near(p["speedup"], p["sync_seconds"] / p["async_seconds"]) and
  near(p["limit"], 4 * (1 + p["ratio"]) / (1 + p["ratio"] + 3 * max(p["ratio"], 1))) for p in f["points"]) and
  f["best_speedup"] == max(p["speedup"] for p in f["points"]) and (f["best_speedup"], f["best_ratio"]) in [(p["speedup"], p["ratio"]) for p in f["points"]]' \
  '' ctc virt:1M --lanes 4 --step 0.5 --runs 1 --commands 4
if [ "$WEIR_BACKEND" = cpu ]; then # the graph is looked at before, and then all of it is in the cache
  agree "commands of the run alone" 'f["commands"] == f["bytes_read"] == f["misses"] == 0' '' pagerank "$dir/kron10.bel" --iterations 1 --tolerance 0 --cache 64M
fi
for sample in bfs cc pagerank sssp spmv; do # what nobody asked for is not said to have been done
  agree "not verified" 'f["verified"] is False' '' $sample "$dir/kron10.bel"
done
for sample in vecmean vectoradd; do agree "not verified" 'f["verified"] is False' '' $sample virt:1M; done
# Of a graph: header, offsets and edges, in their files or in one.
weighted='f["graph_bytes"] == 3 * 16 + 8 * (f["vertices"] + 1 + f["edges"]) + 4 * f["edges"] and f["queues"] > 0 < f["queue_bytes"]'
agree "bytes of a weighted graph" "$weighted" '' spmv "$dir/kron10.bel"
agree "bytes of a graph" 'f["graph_bytes"] == 2 * 16 + 8 * (f["vertices"] + 1 + f["edges"]) and f["plain_bytes"] == f["graph_bytes"] - 2 * 16' '' \
  cc "$dir/kron10.bel" --plain
agree "bytes of a .wsg" "f[\"graph_bytes\"] == $(stat -c %s "$dir/kron10.wsg")" '' sssp "$dir/kron10.wsg"
# Of the computation: its own vectors and bitmaps; a row for each chunk of 512 edges, the first two edges earlier; pieces of hubs.
rows='8 * ((f["edges"] + 513) // 512) + 8' bits='8 * ((f["vertices"] + 63) // 64)'
agree "bytes of the state" "f['state_bytes'] == $rows + 4 * f['vertices'] + 4" '' cc "$dir/kron14.bel"
agree "bytes of the state" "f['state_bytes'] == $rows + 4 * (8 * f['vertices'] + 8) + 24" '' pagerank "$dir/kron14.bel"
agree "bytes of the state" "f['state_bytes'] == $rows + 2 * (4 * f['vertices'] + 4)" '' spmv "$dir/kron14.bel"
agree "bytes of the state" "f['state_bytes'] == 3 * $bits + 8 + 24 * (2 * (f['edges'] // 4096) + 1) + 8 * f['vertices'] + 8 + 16" '' sssp "$dir/kron14.bel"
agree "an eighth of the graph, and a little" '0.9 * (f["vertices"] + f["edges"]) < f["cache_lines"] * f["line_bytes"] <= f["vertices"] + f["edges"] + 65536' '' cc "$dir/kron14.bel"
agree "the largest of the components" 'f["components"] == 2 and f["largest"] == 3' '' cc "$dir/tiny.bel"
agree "the largest of the components, of labels" 'f["components"] == len(set(d)) and f["largest"] == max(d.count(v) for v in set(d))' "$dir/out" \
  cc "$dir/kron10.bel" --output "$dir/out"
agree "hits" 'near(f["hit_rate"], 1 - f["misses"] / f["lookups"]) and f["edges_traversed"] / 8 <= f["lookups"] and
  f["warm_hit_rate"] == 1 and near(f["warm_teps"], f["edges_traversed"] / f["warm_seconds"])' '' bfs "$dir/kron10.bel" --cache 64M --source 1 --repeat 1
agree "ratios to plain memory" 'near(f["ratio"], f["seconds"] / f["plain_seconds"]) and near(f["warm_ratio"], f["warm_seconds"] / f["plain_seconds"])' '' \
  spmv "$dir/kron10.bel" --plain --repeat 3
agree "operations" 'near(f["flops"], 2 * f["edges"] / f["seconds"])' '' spmv "$dir/kron10.bel"
agree "edges of all iterations" 'f["iterations"] == 3 and near(f["edges_per_s"], 3 * f["edges"] / f["seconds"])' '' pagerank "$dir/kron10.bel" --iterations 3
# The last iteration is the first one that changes less than the tolerance.
last=$("$(program pagerank)" "$dir/kron14.bel" --json | sed -n 's/.*"iterations": \([0-9]*\).*/\1/p')
agree "changes less than the tolerance at last" '1 < f["iterations"] < 20 and 0 < f["change"] < 1e-4' '' pagerank "$dir/kron14.bel"
agree "and not before" 'f["change"] >= 1e-4' '' pagerank "$dir/kron14.bel" --iterations $((${last:-1} - 1)) --tolerance 0
# Each seed has a source of its own, with neighbours, and a vector of its own.
for sample in bfs sssp; do
  sources=$(for seed in 1 2 3 4 5; do
    "$(program $sample)" "$dir/kron14.bel" --seed $seed --json | sed -n 's/.*"\(source\|edges_traversed\)": \([0-9]*\).*/\1 \2/p'
  done)
  same "$sample: sources of five seeds, all with neighbours" python3 -c '
import sys
words = sys.argv[1].split()
found = list(zip(words[::2], map(int, words[1::2])))
assert len(found) == 10 and len({v for key, v in found if key == "source"}) == 5 and all(v for key, v in found if key == "edges_traversed"), found' "$sources"
done
check "another vector" '"verified": true' spmv "$dir/kron10.bel" --seed 2 --verify
check "another vector, on storage" '"verified": true' spmv "$dir/kron10.bel" --seed 2 --x virt:1M --verify
same "spmv: the vector of each seed is another" sh -c '"$1" "$2" --output "$3/y1" && "$1" "$2" --seed 2 --output "$3/y2" && ! cmp -s "$3/y1" "$3/y2"' \
  sh "$(program spmv)" "$dir/kron10.bel" "$dir"
# A vector whose last line is not whole, of a file or loaded, which is only read.
python3 -c '
import struct, sys
for kind, suffix in ("Q", "u64"), ("f", "f32"):
    count = 8208 // struct.calcsize(kind)
    open(f"{sys.argv[1]}.{suffix}", "wb").write(struct.pack(f"<{count}{kind}", *(i * i % 1000 for i in range(count))))' "$dir/ramp"
for kind in "u64 1026" "f32 2052"; do
  read -r type elements <<<"$kind"
  mean="f[\"elements\"] == $elements and near(f[\"mean\"], sum(i * i % 1000 for i in range($elements)) / $elements)"
  agree "the mean of a file, $type" "$mean" '' vecmean "file:$dir/ramp.$type" --type $type
  agree "the mean of a file, $type, lines of 512 bytes" "$mean and f[\"verified\"]" '' \
    vecmean "file:$dir/ramp.$type?block=512" --type $type --line 512 --cache-lines 8 --verify --plain
  agree "the mean of what was loaded, $type" "$mean" '' vecmean "virt:16K?load=$dir/ramp.$type" --type $type --size 8208
done
agree "rates" 'near(f["bytes_per_s"], f["bytes"] / f["seconds"]) and near(f["ratio"], f["seconds"] / f["plain_seconds"]) and
  near(f["warm_ratio"], f["warm_seconds"] / f["plain_seconds"])' '' vecmean virt:1M --plain --repeat 3
agree "rates" 'f["vector_bytes"] == 4 << 20 and near(f["bytes_per_s"], 3 * (4 << 20) / f["cached_seconds"]) and
  near(f["ratio"], f["cached_seconds"] / f["tiled_seconds"]) and near(f["plain_ratio"], f["cached_seconds"] / f["plain_seconds"])' '' vectoradd virt:12M --runs 1 --plain
agree "waves that are asked for" 'f["tiled_waves"] == 3 and f["cached_waves"] == 2' '' vectoradd virt:12M --waves 3 --cache-lines 128 --runs 1
agree "no more of the storage than its size" 'f["verified"]' '' ctc 'virt:1M?block=512&fault=status:code=0x281:op=read:lba=128-2047' --size 64K --lanes 4 --step 2 --runs 1 --commands 32
# The text says the same.
says() { # says NAME PATTERN SAMPLE ARGUMENTS...: it succeeds, and its text has a line that PATTERN matches
  local name=$1 pattern=$2 sample=$3 output; shift 3
  chosen "$name" || return 0
  count=$((count + 1))
  if output=$("$(program "$sample")" "$@" 2>&1) && grep -qE -- "^$pattern\$" <<<"$output"; then
    printf 'ok %d - %s says: %s\n' "$count" "$sample" "$name"
  else
    printf 'not ok %d - %s says: %s (/%s/ expected)\n' "$count" "$sample" "$name" "$pattern"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}
for run in "bfs $dir/kron10.bel" "cc $dir/kron10.bel" "pagerank $dir/kron10.bel" "sssp $dir/kron10.bel" "spmv $dir/kron10.bel" "vecmean virt:1M" "vectoradd virt:1M"; do
  says "not verified" 'result    not verified \(--verify .*' $run
  says "verified" 'result    verified: .*' $run --verify
done
says "how large the graph is" 'graph     4 vertices, 2 edges, 0.0 MiB on storage' cc "$dir/tiny.bel"
says "how many components" 'found     2 components, the largest of 3 vertices' cc "$dir/tiny.bel"
says "what was reached" 'search    from vertex 0: 2 vertices reached in 2 levels, 1 edges' bfs "$dir/tiny.bel" --source 0
says "what was looked at" 'search    from vertex 0: [0-9]+ levels in [0-9]+ phases, 1 edges looked at' sssp "$dir/tiny.bel" --source 0
says "how often" 'ranks     7 iterations; .*' pagerank "$dir/gaps.sg" --tolerance 0 --iterations 7
says "the mean" "mean      $(python3 -c 'print("%.17g" % (sum(i * i % 1000 for i in range(1026)) / 1026))')" vecmean "file:$dir/ramp.u64"
says "how many elements" 'vectors   1048576 elements of f32 each, 4.0 MiB' vectoradd virt:12M --type f32 --runs 1
if [ "$WEIR_BACKEND" = cpu ]; then # only its workers and waves have a choice
  for run in "bfs $dir/kron10.bel" "cc $dir/kron10.bel" "vecmean virt:1M" "ctc virt:1M --lanes 8 --step 2 --runs 1 --commands 4"; do
    read -r sample arguments <<<"$run"
    agree "workers and waves as asked for" '"(3 workers, wave width 8)" in f["device"]' '' $sample $arguments --workers 3 --wave 8
  done
fi
agree "queue pairs as asked for" 'f["queues"] == 2 * 3' '' cc "$dir/kron10.bel" --queues 3
tiers=$(for run in "cc $dir/kron10.bel" "vecmean virt:1M" "vectoradd virt:12M --runs 1"; do # a build has kernels for tiers or has none
  read -r sample arguments <<<"$run"
  timeout 600 "$(program "$sample")" $arguments --tier 1M >/dev/null 2>&1
  printf '%s' $?
done)
same "a tier is for all of them or for none" sh -c '[ "$1" = 000 ] || [ "$1" = 111 ]' sh "$tiers"
for run in "bfs $dir/kron10.bel" "cc $dir/kron10.bel" "pagerank $dir/kron10.bel" "sssp $dir/kron10.bel" "spmv $dir/kron10.bel" "vecmean virt:1M" \
  "vectoradd virt:1M" "ctc virt:1M"; do # who passes it over succeeds
  refuse "a depth that is none" 1 'depth 3 is not a power of two' $run --depth 3
done
if [ "$WEIR_BACKEND" = cpu ]; then # of one worker, of the first run alone: each line once
  agree "what was read" '0 <= 4096 * f["commands"] - f["bytes_read"] < 8192 and f["commands"] == f["misses"] > 0' '' \
    bfs "$dir/kron10.bel" --cache 64M --source 1 --workers 1 --repeat 2
  agree "what was read" 'f["bytes_read"] == f["bytes"] == 1 << 20 and f["commands"] == 256' '' vecmean virt:1M --cache 4M --workers 1 --repeat 2
fi
agree "ratios that are asked for" 'len(f["points"]) == 3 and f["commands"] == 4 and f["block"] == 2' '' \
  ctc virt:1M --lanes 4 --block 2 --step 0.5 --most 1 --runs 1 --commands 4
refuse "a graph by its name and by URIs" 2 'give either' cc "$dir/kron10.bel" --offsets "file:$dir/kron10.bel.col" --edges "file:$dir/kron10.bel.dst"
refuse "offsets without edges" 2 'give either' cc --offsets "file:$dir/kron10.bel.col"
refuse "edges without offsets" 2 'give either' cc --edges "file:$dir/kron10.bel.dst"
for run in "cc $dir/kron10.bel" "spmv $dir/kron10.bel" "vecmean virt:1M" "vectoradd virt:12M"; do # whose cache has it
  refuse "a policy without its header" 1 'user_policy=HEADER' $run --policy user
done
ln -sf /dev/full "$dir/full.txt" # of so few values none is written before the end
refuse "a full disk, for a few bytes" 1 'cannot write /dev/full: No space left' pagerank "$dir/gaps.sg" --tolerance 0 --output /dev/full
refuse "a full disk, for a few lines" 1 'cannot write .*full.txt: No space left' pagerank "$dir/gaps.sg" --tolerance 0 --output "$dir/full.txt"
no_part() {
  (trap '' XFSZ; ulimit -f 0; exec "$(program pagerank)" "$dir/gaps.sg" --tolerance 0 --output "$dir/part.txt")
  [ $? = 1 ] && [ ! -e "$dir/part.txt" ] && [ -L "$dir/full.txt" ]
}
same "a full disk leaves no part of a file, and a link as it is" no_part
"$(program pagerank)" "$dir/gaps.sg" --lose-dangling --tolerance 0 --output "$dir/lost.txt" >/dev/null 2>&1
same "what is lost is missing from the sum" python3 -c '
import sys
total = sum(float(line.split()[1]) for line in open(sys.argv[1]))
assert 0.2 < total < 0.9, total' "$dir/lost.txt"

# A cache that has half of its lines free for whoever is not done with them: little is read twice. By one worker: of two, one
# that other programs keep waiting comes to lines that made room.
number() { sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p"; }
at_most() { # at_most NAME FIGURE TIMES MORE COUNT SAMPLE ARGUMENTS...: FIGURE of a run is COUNT * TIMES / 100 + MORE at most
  local name=$1 figure=$2 times=$3 more=$4 of=$5 sample=$6 got; shift 6
  count=$((count + 1))
  got=$("$(program "$sample")" "$@" --json | number "$figure")
  if [ -n "$got" ] && [ -n "$of" ] && [ "$got" -le $((of * times / 100 + more)) ]; then
    printf 'ok %d - %s: %s\n' "$count" "$sample" "$name"
  else
    printf 'not ok %d - %s: %s (%s %s, of %s)\n' "$count" "$sample" "$name" "$got" "$figure" "$of"
  fi
}
[ "$WEIR_BACKEND" != cpu ] || {
  once=$("$(program spmv)" "$dir/kron14.bel" --cache 64M --json | number commands)
  at_most "an eighth of the graph is enough" commands 125 0 "$once" spmv "$dir/kron14.bel" --workers 1
  at_most "no more of a .wsg as it is" commands 100 0 "$once" spmv "$dir/kron14.wsg" --workers 1
  # A mesh: 2 x 90 levels and more, of few vertices each. A wave of 8 lanes has no more lanes to it than one of a single lane.
  python3 -c '
for v in range(90 * 90):
    for u in ([v + 1] if v % 90 < 89 else []) + ([v + 90] if v < 90 * 89 else []):
        print(v, u, 1 + v * 7 % 60, "\n%d %d %d" % (u, v, 1 + v * 7 % 60))' >"$dir/mesh.wel"
  "$graph" convert "$dir/mesh.wel" "$dir/mesh.bel" --quiet
  levels=$("$(program sssp)" "$dir/mesh.bel" --cache 4M --json | number levels)
  lanes=$("$(program sssp)" "$dir/mesh.bel" --cache 4M --json | number lanes_launched)
  at_most "few vertices, few lanes" lanes_launched 100 "$((3 * 90 * 90))" 0 sssp "$dir/mesh.bel" --cache 4M
  at_most "as few in waves of 8" lanes_launched 110 "$((16 * levels))" "$lanes" sssp "$dir/mesh.bel" --cache 4M --wave 8
}

printf '1..%d\n' "$count"
