#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Several ranks mount one dataset and read it once together; a rank that cannot mount lets no rank mount.
set -u
tool=$1 mpirun=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
number=0
failed=0
verdict() { # RC NAME
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=1; fi
}
options=
if "$mpirun" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then options='--allow-run-as-root --oversubscribe'; fi
ranks() { timeout 600 "$mpirun" $options -n "$@" 2>&1; }
# MPICH's does not always start, when others do at the same time.
starts() { ranks 1 true >/dev/null || ranks 1 true >/dev/null || ranks 1 true >/dev/null; }
if ! starts; then echo "1..0 # SKIP mpirun does not start a process here"; exit 0; fi
echo 1..11
"$tool" make "$folder/a.tar" --as tar --samples 700 --bytes 100-5000 --seed 1
"$tool" make "$folder/b.tar" --as tar --samples 300 --bytes 100-5000 --seed 2
"$tool" index "file:$folder/a.tar" "file:$folder/b.tar" >/dev/null
for count in 1 2 3 4 8; do
  out=$(ranks $count "$tool" verify "file:$folder/a.tar" "file:$folder/b.tar" --batch 32)
  echo "$out" | grep -q "^1000 samples, .* $count ranks: all there"
  verdict $? "$count ranks read each sample once"
done
# One line for all ranks, and what it says is what all of them read; a ramp is not in it.
ranks 4 "$tool" bench "file:$folder/a.tar" "file:$folder/b.tar" --batch 32 --seconds 1 --runs 1 --order full --no-drop --json >"$folder/bench"
python3 -c 'import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert [row["what"] for row in rows] == ["weir full", "all runs"], rows
(run,) = rows[0]["runs"]
assert rows[0]["ranks"] == 4 and rows[1]["samples"] >= 4 * 32, rows
assert abs(run["samples_per_s"] * run["seconds"] - rows[1]["samples"]) <= run["seconds"] + 1e-6 * run["samples_per_s"], rows # both rounded' <"$folder/bench" &&
  ranks 4 "$tool" bench "file:$folder/a.tar" "file:$folder/b.tar" --ramp 1 --seconds 1 --runs 1 --order full --no-drop --json >"$folder/bench" &&
  python3 -c 'import json, sys
rows = [json.loads(line) for line in sys.stdin]
(run,) = rows[0]["runs"]
assert run["samples_per_s"] > 0 and run["samples_per_s"] * run["seconds"] < rows[1]["samples"], rows' <"$folder/bench"
verdict $? "bench adds four ranks up, on one line"
ranks 3 "$tool" bench "file:$folder/a.tar" "file:$folder/b.tar?fault=status:code=0x281:op=read" --batch 32 --seconds 1 --no-drop >"$folder/bench"
status=$?
[ $status = 1 ] && grep -q '^weir-dataset: .*unrecovered read error' "$folder/bench" # mpirun may drop what later ranks say
verdict $? "a storage that fails ends bench on all three ranks"
# Of an upload one rank alone opens the storages: there is one trace.
"$tool" make "$folder/files" --samples 200 --bytes 10-3000
truncate -s 4M "$folder/target"
ranks 3 sh -c '"$0" upload "$1/files" "file:$1/target?trace=$1/trace-$$"' "$tool" "$folder" >"$folder/out" &&
  [ "$(ls "$folder" | grep -c '^trace-')" = 1 ] && "$tool" verify "file:$folder/target" | grep -q '^200 samples'
verdict $? "three ranks upload once"
out=$(ranks 3 "$tool" upload "$folder/none" "file:$folder/target")
[ $? = 1 ] && [ "$(echo "$out" | grep -c "^weir-dataset: rank 0: .*none")" = 3 ]
verdict $? "an upload that fails is an error on all three ranks, with its rank"
printf 'x' | dd of="$folder/b.tar.weir" bs=1 seek=4100 conv=notrunc status=none
out=$(ranks 3 "$tool" verify "file:$folder/a.tar" "file:$folder/b.tar")
[ "$(echo "$out" | grep -c "rank 1: .*checksum of its entries")" = 3 ]
verdict $? "a damaged manifest is an error on all three ranks, with its rank"
rm "$folder/b.tar.weir"
out=$(ranks 2 "$tool" verify "file:$folder/a.tar" "file:$folder/b.tar")
[ "$(echo "$out" | grep -c "no manifest")" = 2 ]
verdict $? "a missing manifest is an error on both ranks"
exit $failed
