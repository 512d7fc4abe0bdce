#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Graphs in the GAP benchmark suite's layout: weir-graph reads and writes them, and searches over storage find what an
# independent program (gapbs_check.py) finds in the .sg file. Where the suite's own programs are in PATH (converter, bfs,
# cc, sssp), they make graphs, too, read those of weir-graph, and come to the same counts.
# usage: gapbs_test.sh WEIR-GRAPH SAMPLES-FOLDER
# Prints TAP.
set -u
. "$(dirname "$0")/../rig/report.sh"
export WEIR_BACKEND=${WEIR_TEST_CONTEXT:-cpu}
graph=$(realpath "$1") samples=$(realpath "$2") checker=$(realpath "$(dirname "$0")")/gapbs_check.py
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

check() { python3 "$checker" "$@"; }

try() { # try NAME COMMAND...: it ends with 0
  local name=$1; shift
  "$@" >.log 2>&1
  report $? "$name" "$(cat .log)"
}

# searches NAME.sg NAME.wsg SET.bel: every depth, distance and label over storage, of the set and of the files themselves
searches() {
  local sg=$1 wsg=$2 set=$3 from
  from=$(check source "$sg" 7)
  try "$sg: depths from $from" both bfs "$set" "$sg" "$from" --cache-lines 64
  try "$wsg: distances from $from" both sssp "$set" "$wsg" "$from" --line 512 --storage block=512
  try "$sg: components" both cc "$set" "$sg" "" --cache-lines 64
  try "$sg as it is: depths from $from" both bfs "$sg" "$sg" "$from" --cache-lines 64
  try "$wsg as it is: depths from $from" both bfs "$wsg" "$wsg" "$from" --cache-lines 64
  try "$wsg as it is: distances from $from" both sssp "$wsg" "$wsg" "$from" --line 512 --storage block=512
  try "$sg as it is: components" both cc "$sg" "$sg" "" --cache-lines 64
}

# both SAMPLE SET GRAPH SOURCE OPTIONS...: weir's result is what the checker finds; .found keeps the checker's count
both() {
  local sample=$1 set=$2 file=$3 from=$4; shift 4
  rm -f result
  timeout 1200 "$samples/$sample/weir-$sample" "$set" ${from:+--source $from} --output result "$@" || return 1
  check "$sample" "$file" ${from:+$from} result | tee .found
  return "${PIPESTATUS[0]}"
}

# ---- the checker by itself: it can fail ----

check make undirected 1 u.sg u.wsg u.el u.wel && check make directed 2 d.sg d.wsg d.el d.wel || exit 1
wrong_is_found() { # one vertex's value is another
  local sample=$1 set=$2 file=$3 from=$4 bytes=$5
  both "$sample" "$set" "$file" "$from" --cache-lines 64 >/dev/null || return 1
  printf '\001' | dd of=result bs=1 seek=$((10 * bytes)) conv=notrunc status=none
  printf '\077' | dd of=result bs=1 seek=$((10 * bytes + 1)) conv=notrunc status=none
  ! check "$sample" "$file" ${from:+$from} result
}
"$graph" convert u.wsg u.bel --quiet && "$graph" convert d.wsg d.bel --quiet || exit 1
try "the check finds a wrong depth" wrong_is_found bfs u.bel u.sg 0 4
try "the check finds a wrong label" wrong_is_found cc u.bel u.sg "" 4
try "the check finds a wrong distance" wrong_is_found sssp u.bel u.wsg 0 8

# ---- the layout, both ways ----

for kind in u d; do
  for suffix in sg wsg; do
    try "$kind.$suffix through .bel and back, byte for byte" \
      bash -c "'$graph' convert $kind.$suffix via.bel --quiet && '$graph' convert via.bel back.$suffix --quiet && cmp $kind.$suffix back.$suffix"
    text=${suffix/sg/el}
    try "$kind.$text becomes $kind.$suffix" \
      bash -c "'$graph' convert $kind.$text made.$suffix --quiet && cmp $kind.$suffix made.$suffix"
    try "$kind.$suffix becomes text of the same edges" \
      bash -c "'$graph' convert $kind.$suffix made.$text --quiet && python3 '$checker' same $kind.$suffix made.$text"
  done
done
searches u.sg u.wsg u.bel
searches d.sg d.wsg d.bel
"$graph" generate kron --scale 11 --degree 8 --seed 3 --weights --quiet -o k.bel || exit 1
"$graph" convert k.bel k.sg --quiet 2>/dev/null && "$graph" convert k.bel k.wsg --quiet || exit 1
searches k.sg k.wsg k.bel

# ---- the suite itself ----

# All in the folder of the converter: a cc elsewhere is a compiler.
missing= suite=$(dirname "$(command -v converter || echo /)")
for program in converter bfs cc sssp; do
  [ -x "$suite/$program" ] || missing="$missing $program"
done
export OMP_NUM_THREADS=1

converted() { # converted OPTIONS...: the suite's generator, read by weir-graph, written again
  rm -f g.sg g.wsg g.bel
  "$suite/converter" "$@" -b g.sg && "$suite/converter" "$@" -wb g.wsg &&
    "$graph" convert g.wsg g.bel --quiet && "$graph" convert g.bel h.wsg --quiet && check same g.wsg h.wsg &&
    "$graph" convert g.sg h.bel --quiet && "$graph" convert h.bel h.sg --quiet && check same g.sg h.sg
}

# counted PROGRAM GRAPH SET PATTERN OPTIONS...: the suite verifies its own result of a file, and counts as many as weir
counted() {
  local program=$1 file=$2 set=$3 pattern=$4 from; shift 4
  from=$([ "$program" = cc ] || check source "$file" 3)
  both "$program" "$set" "$file" "$from" --cache-lines 64 || return 1
  "$suite/$program" -f "$file" ${from:+-r $from} -n 1 -a -v >said || return 1
  cat said
  grep -q 'Verification: *PASS' said && grep -q "$pattern $(cut -d' ' -f2 .found) " said
}

if [ -n "$missing" ]; then
  skip "the suite's own programs" "not in a folder of PATH:$missing"
else
  for kind in "-g 10" "-u 10"; do
    # shellcheck disable=SC2086
    try "the suite's generator, $kind" converted $kind
    searches g.sg g.wsg g.bel
    try "the suite's bfs, $kind" counted bfs g.sg g.bel "BFS Tree has"
    try "the suite's cc, $kind" counted cc g.sg g.bel "There are"
    try "the suite's sssp, $kind" counted sssp g.wsg g.bel "SSSP Tree reaches"
  done
  for name in u d k; do
    try "the suite's bfs of weir-graph's $name.sg" counted bfs $name.sg $name.bel "BFS Tree has"
    try "the suite's cc of weir-graph's $name.sg" counted cc $name.sg $name.bel "There are"
    try "the suite's sssp of weir-graph's $name.wsg" counted sssp $name.wsg $name.bel "SSSP Tree reaches"
  done
fi
printf '1..%d\n' "$count"
