#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-dataset from make to bench, and an upload that Ctrl-C interrupts.
# usage: cli_test.sh WEIR-DATASET [TWICE]    TWICE: twice.c, as a library
set -u
tool=$1 twice=${2-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
number=0
failed=0
verdict() { # RC NAME
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=1; fi
}
echo 1..29
"$tool" --help | grep -q '^usage: weir-dataset'
verdict $? "help"
"$tool" frob 2>"$folder/err"; [ $? = 2 ] && grep -q 'no command frob' "$folder/err"
verdict $? "a wrong command is refused by name"
"$tool" make "$folder/files" --samples 500 --bytes 10-3000 --classes 5 &&
  truncate -s 4M "$folder/one" "$folder/two" &&
  "$tool" upload "$folder/files" "file:$folder/one" "file:$folder/two" &&
  "$tool" verify "file:$folder/one" "file:$folder/two" | grep -q '^500 samples'
verdict $? "make, upload, verify"
"$tool" info "file:$folder/one" "file:$folder/two" | grep -q '^labels  *5$'
verdict $? "info"
# What is not asked for is something else: so a number that is printed is the one that was asked for.
info() { "$tool" info "file:$folder/one" "file:$folder/two" "$@"; }
info --row 8K --chunk 64K --cache 512K >"$folder/asked" && info >"$folder/usual" &&
  grep -q '^row  *8192$' "$folder/asked" && grep -q '^chunks .* of 65536$' "$folder/asked" && grep -q '^cache  *524288$' "$folder/asked" &&
  [ "$(grep -cE '^row  *8192$|^chunks .* of 65536$|^cache  *524288$' "$folder/usual")" = 0 ]
verdict $? "info: rows, chunks and a cache as they were asked for"
for lookup in buckets avl; do
  "$tool" bench "file:$folder/one" "file:$folder/two" --parts lookup --lookup $lookup --json
done >"$folder/lookups" && python3 -c 'import json, sys
buckets, avl = map(json.loads, sys.stdin)
assert buckets["what"] == "lookup buckets" and avl["what"] == "lookup avl" and buckets["found"] == buckets["names"] == avl["found"] == 2000
assert buckets["bytes_per_sample"] != avl["bytes_per_sample"], "one index was looked into twice"' <"$folder/lookups"
verdict $? "bench: each kind of lookup has an index of its own"
"$tool" make "$folder/t.tar" --as tar --samples 300 && tar -tf "$folder/t.tar" >/dev/null && "$tool" index "file:$folder/t.tar" >/dev/null &&
  "$tool" verify "file:$folder/t.tar" --order full | grep -q '^300 samples'
verdict $? "a tar file that tar can read, index, verify"
for seed in 1 2 1; do "$tool" make "$folder/r$seed.tar" --as tar --samples 300 --bytes 1-3 --seed $seed && cksum <"$folder/r$seed.tar"; done >"$folder/sums" &&
  [ "$(sort "$folder/sums" | uniq -c | awk '{ print $1 }' | sort | tr '\n' ' ')" = '1 2 ' ] && "$tool" index "file:$folder/r1.tar" >/dev/null &&
  "$tool" info "file:$folder/r1.tar" | grep -q '^lengths  *1 to 3$'
verdict $? "make: lengths from the least to the most, the same of each seed"
python3 -c 'import sys, tarfile
info = tarfile.TarInfo("large")
info.size = 9 << 30 # in base 256, as sizes of 8 GiB and more are
with open(sys.argv[1], "wb") as file:
    file.write(info.tobuf(tarfile.GNU_FORMAT))
    file.truncate(512 + info.size)' "$folder/large.tar"
"$tool" index "file:$folder/large.tar" 2>&1 | grep -q "sample 'large' has 9663676416 bytes"
verdict $? "a member of 9 GiB is refused with its size"
rm -f "$folder/large.tar"
python3 -c 'import io, sys, tarfile
with tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT) as archive:
    for name, size, headers in ("a", 700, {"size": "700"}), ("b", 300, {}):
        info = tarfile.TarInfo(name)
        info.size, info.pax_headers = size, headers
        archive.addfile(info, io.BytesIO(bytes(size)))' "$folder/pax.tar" &&
  "$tool" index "file:$folder/pax.tar" >/dev/null && "$tool" info "file:$folder/pax.tar" >"$folder/out" &&
  [ "$(grep -cE '^(samples  *2|bytes  *1000|lengths  *300 to 700|labels  *0|storages  *1|ranks  *1)$' "$folder/out")" = 6 ]
verdict $? "a size in a pax header is of one member"
"$tool" make "$folder/part" --as records --samples 10 --bytes 1000 && truncate -s -1 "$folder/part" &&
  ! "$tool" index "file:$folder/part" --format fixed:1000 2>"$folder/err" && grep -q '9999 bytes .*no whole number of records of 1000' "$folder/err"
verdict $? "a part of a record at the end is refused"
! "$tool" make /dev/full --as records --samples 3 --bytes 100 2>"$folder/err" && grep -q 'cannot write /dev/full: No space left' "$folder/err"
verdict $? "a full disk, which the last bytes meet"
part=0
for as in records tar folder; do
  (trap '' XFSZ; ulimit -f 4; exec "$tool" make "$folder/part-$as" --as "$as" --samples 3 --bytes 10K) 2>"$folder/err" && part=1
  grep -q "cannot write $folder/part-$as: File too large" "$folder/err" && [ -z "$(find "$folder/part-$as" -type f 2>/dev/null)" ] || part=1
done
verdict $part "no part of a file stays behind an error"
truncate -s 4M "$folder/traced" && "$tool" upload "$folder/files" "file:$folder/traced?trace=$folder/trace" && python3 -c 'import sys
kinds = [(words[2], int(words[3]) if words[2] == "write" else None) for words in map(str.split, open(sys.argv[1])) if words[0] == "begin" and words[2] != "read"]
headers = [i for i, kind in enumerate(kinds) if kind == ("write", 0)]
assert len(headers) == 2 and len(kinds) > 6, kinds
for i in headers:
    assert kinds[i - 1][0] == kinds[i + 1][0] == "flush", kinds' "$folder/trace"
verdict $? "samples are durable before the header that says so, and that at the end"
"$tool" order "file:$folder/t.tar" | grep -q '^shuffled-chunk  *[01]\.'
verdict $? "order"
mkdir "$folder/bin" && ln -s "$(command -v sh)" "$folder/bin/sh" && head -c 1280000 /dev/zero >"$folder/many" &&
  "$tool" index "file:$folder/many" --format fixed:64 >/dev/null &&
  { PATH=$folder/bin "$(realpath "$tool")" order "file:$folder/many" --plot "$folder/x.svg" >/dev/null 2>"$folder/err"; [ $? = 1 ]; } &&
  grep -q 'needs gnuplot: apt-get install gnuplot-nox' "$folder/err"
verdict $? "order: no gnuplot, and more than a pipe holds"
"$tool" bench "file:$folder/t.tar" --order full --no-drop --seconds 1 --runs 2 --json >"$folder/bench" &&
  python3 -c 'import json, sys
rows = {row["what"]: row for row in map(json.loads, sys.stdin)}
full = rows["weir full"]
for what, unit in (("samples_per_s", 1), ("bytes_per_s", 1), ("cores", 0.01)):
    assert abs(full[what] - sum(run[what] for run in full["runs"]) / 2) <= unit, what
assert full["samples_per_s"] > 0 and len(full["runs"]) == 2 and rows["all runs"]["samples"] >= 300 and rows["lookup buckets"]["one_ns"] > 0' <"$folder/bench" &&
  [ "$("$tool" bench "file:$folder/t.tar" --parts lookup --json | grep -c what)" = 1 ] &&
  "$tool" bench "file:$folder/t.tar" --parts lookups 2>&1 | grep -q 'list of orders, lookup and peers'
verdict $? "bench, as JSON, and parts of it"
head -c 2000000 /dev/zero >"$folder/equal" && "$tool" index "file:$folder/equal" --format fixed:1000 >/dev/null &&
  "$tool" bench "file:$folder/equal" --parts orders --no-drop --seconds 1 --runs 1 --json | python3 -c 'import json, sys
rows = [json.loads(line) for line in sys.stdin]
ways = [way for row in rows if row["what"].startswith("weir") for way in [row] + row["runs"]]
assert len(ways) == 6, rows
for way in ways:
    assert abs(way["bytes_per_s"] - 1000 * way["samples_per_s"]) < 1000, way'
verdict $? "bench: as many bytes as samples have"
"$tool" bench "file:$folder/t.tar" --order chunk --chunk 64K --cache 256K --buffer 16 --batch 64 --no-drop --seconds 1 --runs 1 --parts orders >"$folder/bench" 2>&1 &&
  [ "$(grep -c 'need all 4 chunks of the cache' "$folder/bench")" = 1 ] && grep -q '^  [0-9]* samples one by one.*--cache is too small$' "$folder/bench"
verdict $? "bench says that a cache is too small"
"$tool" verify "file:$folder/one" 2>&1 | grep -q 'name all storages'
verdict $? "half of the storages are refused"
if [ -n "$twice" ]; then
  ! LD_PRELOAD=$twice "$tool" verify "file:$folder/equal" >"$folder/out" 2>"$folder/err" &&
    grep -q '2000 samples were read, as many as there are, but not each of them once' "$folder/err" &&
    "$tool" verify "file:$folder/equal" | grep -q '^2000 samples'
  verdict $? "verify sees that samples of one length came twice"
else
  verdict 0 "verify sees that samples of one length came twice # SKIP nothing can come between here"
fi
ln -s nowhere "$folder/files/00000/link" && truncate -s 4M "$folder/three" &&
  ! "$tool" upload "$folder/files" "file:$folder/three" 2>"$folder/err" && grep -q "the link '.*/00000/link' leads nowhere" "$folder/err"
verdict $? "a link that leads nowhere is no sample that is left out"
rm -f "$folder/files/00000/link"
python3 -c 'import struct, sys
with open(sys.argv[1], "wb") as file: # a record whose own checksum is wrong, that of its length right
    file.write(bytes.fromhex("0400000000000000") + struct.pack("<I", int(sys.argv[2], 16)) + b"data" + bytes(4))' "$folder/x.tfrecord" \
  "$(python3 -c 'table = []
for n in range(256):
    for _ in range(8):
        n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
    table.append(n)
crc = 0xFFFFFFFF
for b in bytes.fromhex("0400000000000000"):
    crc = table[(crc ^ b) & 255] ^ (crc >> 8)
crc ^= 0xFFFFFFFF
print("%x" % ((((crc >> 15) | (crc << 17)) + 0xa282ead8) & 0xFFFFFFFF))')" &&
  "$tool" upload "$folder/x.tfrecord" "file:$folder/three" && dd if=/dev/zero of="$folder/three" bs=4096 count=1 conv=notrunc status=none &&
  ! "$tool" upload "$folder/x.tfrecord" "file:$folder/three" --checks 2>"$folder/err" && grep -q 'record 0 .*damaged' "$folder/err"
verdict $? "an upload checks records where it is to"
"$tool" index "file:$folder/x.tfrecord" >/dev/null && rm -f "$folder/x.tfrecord.weir" &&
  ! "$tool" index "file:$folder/x.tfrecord" --checks >/dev/null 2>"$folder/err" && grep -q 'record 0 .*damaged' "$folder/err"
verdict $? "so does an index"
"$tool" make "$folder/first" "$folder/second" --samples 3 2>"$folder/err"
[ $? = 2 ] && grep -q 'give make PATH' "$folder/err" && [ ! -e "$folder/first" ]
verdict $? "samples are written to one path"
! "$tool" index "file:$folder/t.tar" "file:$folder/pax.tar" --manifest "$folder/both.weir" 2>"$folder/err" &&
  grep -q -e '--manifest names one file' "$folder/err" && [ ! -e "$folder/both.weir" ]
verdict $? "two storages have no manifest in common"
"$tool" make "$folder/large" --as records --samples 400 --bytes 1M && truncate -s 450M "$folder/target"
target="file:$folder/target?timeout_ms=600000" # what is written is long, and the disk may be others', too
# Upload until the storage has a header, then a signal; the STATUS that the upload ends with if it was under way: interrupt SIGNAL STATUS
interrupt() {
  dd if=/dev/zero of="$folder/target" bs=4096 count=1 conv=notrunc status=none
  "$tool" upload "$folder/large" "$target" --format fixed:1M 2>"$folder/err" &
  upload=$!
  while kill -0 $upload 2>/dev/null && ! head -c 8 "$folder/target" | grep -q WDAT; do sleep 0.01; done
  kill -"$1" $upload
  wait $upload 2>/dev/null
  [ $? != "$2" ] || "$tool" verify "$target" 2>&1 | grep -q 'was interrupted after'
}
completes() {
  "$tool" upload "$folder/large" "$target" --format fixed:1M && "$tool" verify "$target" | grep -q '^400 samples' &&
    cmp <("$tool" info "$target" | grep samples) <(echo "samples         400")
}
interrupt INT 1 && completes
verdict $? "an upload that is interrupted is not mounted, and the next one completes it"
interrupt KILL 137 && completes
verdict $? "an upload that is killed is not mounted, and the next one completes it"
"$tool" upload "$folder/large" "file:$folder/target" --format fixed:1M && truncate -s 300M "$folder/target" &&
  "$tool" verify "file:$folder/target" 2>&1 | grep -q 'storage 0.*ends at byte 314572800'
verdict $? "a storage that was cut short is refused, with its length"
exit $failed
