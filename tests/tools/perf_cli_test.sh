#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of weir-perf: what it refuses, that verification finds what is wrong, what its JSON says.
# No figure is judged: speed is no matter of tests.
# usage: perf_cli_test.sh path/to/weir-perf [BACKEND [LIBRARY [LYING]]]
#        BACKEND: cpu if not given; LIBRARY: to preload, a device that is none; LYING: lying.c, as a library
# Prints TAP.
set -u

tool=$(realpath "${1:-weir-perf}") || { echo "Bail out! there is no ${1:-weir-perf}"; exit 1; }
backend=${2:-cpu}
preload=${3:+$(realpath "$3")}
lying=${4:+$(realpath "$4")}
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-perf-cli-XXXXXX") || { echo "Bail out! no work directory"; exit 1; }
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

number=0
failures=0
why=
tool_path=$PATH
short=(--runtime=0.02 --runs=2)

# Ends the current test with what was found wrong since the last one ($why).
finish() {
    number=$((number + 1))
    if [ -z "$why" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        printf '%s' "$why" | sed 's/^/# /'
        failures=$((failures + 1))
    fi
    why=
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

wrong() { why+="$*"$'\n'; }

# run STATUS ARGS...: the tool must exit with STATUS; its output is left in $out and $err.
run() {
    local expected=$1 status
    shift
    LD_PRELOAD=$preload WEIR_BACKEND=$backend PATH=$tool_path "$tool" "$@" >.out 2>.err
    status=$?
    out=$(<.out) err=$(<.err)
    [ "$status" = "$expected" ] || wrong "weir-perf $*: status $status instead of $expected: $out $err"
}

says() { [[ $err == *"$1"* ]] || wrong "expected on stderr: $1"$'\n'"found: $err"; }
prints() { [[ $out == *"$1"* ]] || wrong "expected on stdout: $1"$'\n'"found: $out"; }
one_sentence() { [ "$(printf '%s\n' "$err" | wc -l)" = 1 ] || wrong "more than one line on stderr: $err"; }

# refuses STATUS SENTENCE ARGS...: fails with one line that holds SENTENCE, and says nothing else.
refuses() {
    local status=$1 sentence=$2
    shift 2
    run "$status" "$@"
    says "$sentence"
    one_sentence
    [ -z "$out" ] || wrong "weir-perf $* wrote to stdout: $out"
}

# json EXPRESSION...: each is true of the object j that the last run printed.
json() {
    python3 - "$@" <<'PYTHON' 2>&1 || wrong "$*"$'\n'"$out"
import json, sys
j = json.load(open(".out"))
for expression in sys.argv[1:]:
    assert eval(expression), expression
PYTHON
}

# load ARGS...: one short load, judged by its JSON.
load() { run 0 "$@" "${short[@]}" --json; }

# load_of REQUESTS ARGS...: the same; a longer one where a busy machine does fewer requests in that time.
load_of() {
    local least=$1 runtime
    shift
    for runtime in 0.02 0.2 2 20; do
        run 0 "$@" --runtime=$runtime --runs=2 --json
        python3 -c 'import json, sys; j = json.load(open(".out")); exit(j["reads"] + j["writes"] < int(sys.argv[1]))' "$least" && break
    done
}

if [ "$backend" = cpu ]; then echo "1..30"; else echo "1..12"; fi

# ---- what every backend does ----

load virt:4M
json 'j["reads"] > 0 and j["writes"] == 0 and j["errors"] == 0 and j["commands"] == j["reads"]' \
    'j["direct"] + j["pull"] == j["commands"]' 'j["bytes_read"] == j["reads"] * 4096' \
    'len(j["iops_runs"]) == 2 and j["iops_min"] <= j["iops"] <= j["iops_max"]' \
    '0 < j["p50_us"] <= j["p90_us"] <= j["p99_us"] <= j["p999_us"] <= j["p9999_us"]' \
    'j["kernels"][0]["name"] == "perf_sync"' 'j["rings"] == 0 and j["cpu_s"] > 0 and "shadow" not in j["path"]'
finish "random reads"

load 'virt:4M?shadow=on' --verify --rw=randrw
json 'j["commands"] == j["reads"] + j["writes"]' '0 < j["rings"] < 2 * j["commands"] and j["bad_blocks"] == 0' \
    'j["path"].endswith("shadow doorbells")'
finish "shadow doorbells"

load virt:4M --rw=randrw --rwmixread=25 --window=4 --plain=host
json 'j["kernels"][0]["name"] == "perf_window"' '0 < j["reads"] < j["writes"]' \
    'j["commands"] == j["reads"] + j["writes"]' 'j["write_p50_us"] > 0' \
    'j["plain"] == "host" and j["plain_iops"] > 0 and len(j["plain_iops_runs"]) == 2' \
    'abs(j["ratio_to_plain"] - j["iops"] / j["plain_iops"]) < 1e-6'
finish "a mixed load in a window, and the plain kernel beside it"

load virt:4M --plain=device --plain-bytes=64K --plain-blocks=3 --plain-threads=200
json 'j["plain_blocks"] == 3 and j["plain_threads"] == 200 and j["plain_bytes"] == 65536 and j["plain_iops"] > 0'
finish "the plain kernel's size and grid"

for places in "--rw=randread" "--rw=randread --zipf=1.1" "--rw=read --stride=12K" "--rw=rw --window=3 --bs=8K" \
    "--rw=randrw --random_distribution=zipf:0.8 --window=2"; do
    # shellcheck disable=SC2086
    load virt:4M virt:3M --verify --offset=512 --size=2M --iodepth=7 $places
    json 'j["reads"] > 0 and j["bad_blocks"] == 0 and j["kernels"][0]["name"] == "perf_verify"'
done
finish "every kind of places holds what was written, on two storages"

load virt:4M --zipf=1.3
json 'j["zipf"] == 1.3 and j["kernels"][0]["name"] == "perf_window"'
load virt:4M --no-latency
json 'j["reads"] > 0 and "p50_us" not in j'
finish "Zipf places; a load without times"

load_of 1000 virt:2M virt:2M --cached=128K --verify --offset=64K
json 'j["bad_blocks"] == 0 and j["reads"] > 0 and j["raw_iops"] > 0 and j["ratio_to_raw"] > 0' \
    'j["misses"] > j["cache_lines"] and j["lines_used"] >= j["misses"] and j["commands"] == j["misses"]' \
    'j["requests"] > j["reads"] and j["errors"] == 0'
load_of 1000 virt:2M --cached=64K --verify --zipf=1 --policy=frequency
json 'j["policy"] == "frequency" and j["bad_blocks"] == 0 and 0 < j["misses"] < j["lines_used"]'
finish "misses of a small cache over a stripe, beside raw reads"

load virt:2M virt:2M --cached=128K --rw=randrw --verify
json 'j["bad_blocks"] == 0 and j["reads"] > 0 and j["writes"] > 0 and j["raw_iops"] > 0' \
    'j["commands"] == j["misses"] + j["writebacks"] and j["kernels"][0]["name"] == "perf_cached_write_verify"' \
    'j["bytes_written"] == 4096 * j["writebacks"] and j["bytes_read"] == 4096 * j["misses"]'
load virt:2M --cached=256K --rw=randwrite --zipf=1 --bs=8K --line=4K
json 'j["reads"] == 0 and j["misses"] == 0 and 0 < j["writebacks"] <= j["lines_used"] == 2 * j["writes"]'
finish "writes through a small cache, verified, beside raw writes; whole lines are never read"

for kind in random8 wave256 line4k; do
    load virt:1M --hit=$kind --iodepth=64
    json 'j["misses"] == 0 and j["pattern"] and int(j["checksum"], 16) != 0' 'j["iops"] > 0 and j["ratio_to_plain"] > 0' \
        "[k['name'] for k in j['kernels']] == ['hit_$kind', 'hit_${kind}_plain']"
done
finish "hits of a full cache give what plain memory gives"

load_of 1000 virt:2M --cached=64K --tier=4M --verify
json 'j["tier_lines"] == 1024 and j["bad_blocks"] == 0 and 0 < j["tier_hits"] and j["tier_stored"] >= j["tier_hits"] and j["misses"] <= 512'
load_of 1000 virt:2M --cached=64K --tier=4M --tier-inclusive
json 'j["tier_inclusive"] and j["tier_kept"] > 0'
load_of 1000 virt:2M --cached=64K --tier=1M --rw=randrw --verify
json 'j["bad_blocks"] == 0 and j["errors"] == 0 and j["tier_hits"] > 0 and j["writebacks"] > 0'
finish "a tier in host memory behind a small cache"

load virt:4M --cached=64K --bs=16K --line=4K
json 'j["line_bytes"] == 4096 and j["lines_used"] == 4 * j["reads"]'
finish "several lines a read"

for kind in "--rw=randwrite" "--rw=write --bs=8K --window=3" "--rw=randwrite --zipf=1.1 --cached=64K" "--rw=write --cached=128K --bs=8K --line=4K" \
    "--rw=randwrite --cached=64K --tier=1M"; do
    # shellcheck disable=SC2086
    load virt:2M virt:2M --verify --offset=64K $kind
    json 'j["writes"] > 0 and j["reads"] == 0 and j["errors"] == 0 and j["bad_blocks"] == 0' '0 < j["verified_blocks"]' \
        'j["requests"] > j["verified_blocks"] + j["writes"] - 1 and "p50_us" in j'
done
finish "what a load wrote is read back from storage and compared"

[ "$backend" = cpu ] || exit $((failures != 0))

# ---- what needs no device of its own ----

# Of each storage, and each of its places once a run: 2 runs over 2 storages of 16 places; with a cache the raw runs have as many more.
for cached in "" "--cached=32K"; do
    for runtime in 0.02 0.2 2 20; do # until some lane has been everywhere
        # shellcheck disable=SC2086
        run 0 virt:64K virt:64K --verify --rw=randwrite --iodepth=8 $cached --runtime=$runtime --runs=2 --json
        python3 -c "import json; exit(json.load(open('.out'))['verified_blocks'] < 64 * (${cached:+1 +} 1))" && break
    done
    json "j['verified_blocks'] == 64 * (${cached:+1 +} 1) and j['bad_blocks'] == 0"
done
finish "each place of two storages is written, read back and compared"

for wave in 4 64; do
    load virt:2M --verify --rw=randrw --window=3 --iodepth=50 --wave=$wave --workers=2 --queues=2 --depth=4
    json 'j["reads"] > 0 and j["bad_blocks"] == 0'
    load virt:1M --hit=line4k --wave=$wave --iodepth=64 --offset=8K
    json 'j["misses"] == 0'
    load virt:1M --plain=host --wave=$wave --iodepth=37 --bs=1536
    json 'j["plain_iops"] > 0'
done
finish "waves of several lanes"

for window in 1 3; do
    load virt:4M --service=2 --window=$window
    kernel=perf_sync
    [ $window = 1 ] || kernel=perf_window
    json 'j["reads"] > 0 and j["errors"] == 0 and j["service"] == 2' "j['kernels'][0]['name'] == '${kernel}_service'"
done
load virt:4M virt:4M --service=1 --verify --rw=randrw
json 'j["reads"] > 0 and j["bad_blocks"] == 0 and j["kernels"][0]["name"] == "perf_verify_service"'
load virt:4M --service=1 --cached=128K
json 'j["misses"] > 0 and j["kernels"][1]["name"] == "perf_sync_service"'
finish "a service that reaps, and kernels that cannot"

truncate -s 1M disk
load "file:disk?direct=off" --verify
json 'j["bad_blocks"] == 0 and j["reads"] > 0'
[ "$(head -c 4096 disk | tr -d '\0' | wc -c)" -gt 1000 ] || wrong "the file still holds zeros"
for cached in "" --cached=64K; do
    cp disk before
    # shellcheck disable=SC2086
    load "file:disk?direct=off" --verify $cached
    ! cmp -s -n 4096 disk before || wrong "what an older run left would be taken for this one's"
done
for how in text zeros "text --cached=64K" "zeros --cached=64K"; do
    # Zeros are whole words, the last of a block: no other word tells.
    if [ "${how%% *}" = text ]; then at=50000; printf 'not what was written there' >.wrong; else at=53224; head -c 24 /dev/zero >.wrong; fi
    cached=${how#text}
    # On a busy machine nobody may read that block while it is wrong; not each time.
    for ((try = 0; try < 10; try++)); do
        # shellcheck disable=SC2086
        WEIR_BACKEND=cpu "$tool" "file:disk?direct=off" --verify --runtime=0.4 --runs=1 --json ${cached#zeros} >.out 2>.err &
        while kill -0 $! 2>/dev/null; do
            dd if=.wrong of=disk bs=1 seek=$at conv=notrunc status=none
            sleep 0.02
        done
        wait $! || break
    done
    [ $try -lt 10 ] || wrong "wrong data, and the exit status was 0"
    out=$(<.out)
    json 'j["bad_blocks"] > 0 and j["errors"] == 0' '49152 <= j["bad_byte"] < 53248'
done
finish "verification finds what somebody else wrote"

# Writes that are lost, each of them: no block is what it should be. Of reads that bring nothing some leave what was there, and right.
lies() { # lies KIND ARGUMENTS...
    preload=$lying
    export WEIR_LYING=$1:1
    shift
    truncate -s 0 disk && truncate -s 1M disk
    run 1 'file:disk?engine=threads&direct=off' --verify "${short[@]}" "$@"
    preload=
    unset WEIR_LYING
}
if [ -n "$lying" ]; then
    for load in "writes --rw=randread" "reads --rw=randread" "writes --rw=randwrite" "writes --rw=randwrite --window=3" \
        "writes --cached=64K" "reads --cached=64K" "writes --rw=randwrite --cached=64K"; do
        # shellcheck disable=SC2086
        lies $load --json
        json 'j["verified_blocks"] >= j["bad_blocks"] > 0 and j["errors"] == 0'
        [ "${load%% *}" = reads ] || json 'j["bad_blocks"] == j["verified_blocks"]'
        says "do not hold what was written"
    done
    for kind in random8 wave256 line4k; do
        for lost in writes reads; do
            lies $lost --hit=$kind --iodepth=64
            says "the cache returned wrong data"
            one_sentence
        done
    done
    finish "writes that are lost and reads that bring nothing are found"
else
    skip "writes that are lost and reads that bring nothing are found" "a sanitizer's library has to come first"
fi

# Place 0 is written once, at first; whoever reads it afterwards finds what somebody else wrote. On a busy machine that somebody
# may come too late; not each time.
for cached in "" --cached=64K; do
    for ((try = 0; try < 10; try++)); do
        truncate -s 0 disk && truncate -s 8M disk
        # shellcheck disable=SC2086
        WEIR_BACKEND=cpu "$tool" "file:disk?direct=off&iops=300" --rw=write --verify --iodepth=1 --runtime=1 --runs=1 --json $cached >.out 2>.err &
        while kill -0 $! 2>/dev/null; do
            head -c 24 /dev/zero | dd of=disk bs=1 seek=504 conv=notrunc status=none # whole words
            sleep 0.02
        done
        wait $!
        status=$?
        python3 -c "import json; exit(json.load(open('.out'))['bad_blocks'] < ${cached:+1 +} 1)" 2>/dev/null && break
    done
    [ "$status" != 0 ] || wrong "wrong data, and the exit status was 0"
    out=$(<.out) err=$(<.err)
    json "j['bad_blocks'] >= ${cached:+1 +} 1" 'j["errors"] == 0 and j["bad_byte"] < 4096 and j["verified_blocks"] > j["bad_blocks"]'
    says "do not hold what was written"
done
finish "reading back finds what somebody else wrote"

head -c 1M /dev/zero | tr '\0' x >disk
before=$(cksum <disk)
load "file:disk?direct=off" --hit=random8
json 'not j["pattern"]'
load "file:disk?direct=off" --rw=read
load "file:disk?direct=off" --cached=64K
[ "$before" = "$(cksum <disk)" ] || wrong "reads changed the file"
load "file:disk?direct=off" --rw=write --offset=512K
[ "$(head -c 512K disk | tr -d x | wc -c)" = 0 ] || wrong "a write load wrote before its range"
[ "$(tail -c 512K disk | tr -d x | wc -c)" != 0 ] || wrong "a write load wrote nothing"
nonzero() { dd if=wide bs=1M skip="$1" count=1 status=none | tr -d '\0' | wc -c; } # in MiB @1 of that file
for how in --rw=write "--rw=write --window=3" "--rw=randwrite --cached=64K" "--rw=randread --verify" --hit=line4k; do
    rm -f wide && truncate -s 6G wide
    # shellcheck disable=SC2086
    load "file:wide?direct=off" --offset=5G --size=1M $how $([ "$how" != --hit=line4k ] || echo --verify)
    [ "$(nonzero 5120)" != 0 ] || wrong "$how: nothing was written behind 5 GiB"
    [ "$(nonzero 1024) $(nonzero 0)" = "0 0" ] || wrong "$how: written where the lowest 32 bits of the offset are"
done
rm -f wide
finish "only write loads write, and only to their range"

run 1 'virt:1M?fault=status:code=0x281:every=50' "${short[@]}" --window=2 --json
json 'j["errors"] > 0 and j["errors"] == j["failed"]'
run 1 'virt:1M?fault=status:code=0x281:every=50' "${short[@]}"
prints "unrecovered read"
refuses 1 "unrecovered read" 'virt:1M?fault=status:code=0x281:every=50' "${short[@]}" --cached=64K
refuses 1 "cannot fill the storage" 'virt:1M?fault=status:code=0x280:op=write:every=5' --verify
# Dirty lines that all have room: only what is written back at the end of a run fails.
refuses 1 "lines could not be written" 'virt:1M?fault=status:code=0x280:op=write' "${short[@]}" --rw=randwrite --cached=4M
finish "failed requests are counted, named, and fail the run"

for rw in randread write randrw; do
    run 1 'virt:1M?fault=status:code=0x281' "${short[@]}" --rw=$rw --json
    json 'j["errors"] == j["requests"] > 0 and j["reads"] == j["writes"] == 0 and j["iops"] == j["bytes_per_s"] == 0' \
        '"p50_us" not in j and "write_p50_us" not in j'
    says "requests failed, one of them with: unrecovered read"
    run 1 'virt:1M?fault=status:code=0x281' "${short[@]}" --rw=$rw
    prints $'\nFAILED    '
    prints $'\nweir      0.00 thousand'
done
run 1 'virt:1M?fault=status:code=0x281:every=2' "${short[@]}" --json
json 'j["reads"] > 0 and j["requests"] == j["reads"] + j["errors"] and 0.4 < j["errors"] / j["requests"] < 0.6' \
    'j["iops"] * 0.02 * 2 < j["reads"] * 1.1'
run 1 'virt:1M?fault=status:code=0x280:op=write' "${short[@]}" --sweep=bs:512,4K --rw=write
[ "$(grep -c 'requests failed' .err)" = 2 ] || wrong "not a sentence for each point: $err"
finish "a failed request is no throughput"

# A run ends when its time is up, neither before nor much later: of 2,000 requests a second about 1,000 are in half of one.
for window in 1 2; do
    run 0 'virt:1M?iops=2000' --runtime=0.5 --runs=1 --iodepth=4 --window=$window --json
    json 'j["reads"] >= 0.5 * j["iops"]' '0 < j["reads"] <= 1500'
done
finish "a run takes the time that it was given"

for window in 1 4; do
    run 1 'virt:1M?fault=status:code=0x281:op=read' "${short[@]}" --verify --window=$window --json
    json 'j["verified_blocks"] == 0 and j["bad_blocks"] == 0 and j["errors"] > 0'
    says "nothing is verified"
done
run 1 'virt:1M?fault=status:code=0x281:op=read' "${short[@]}" --verify
[[ $out != *verified* ]] || wrong "says verified of nothing: $out"
run 1 'virt:1M?fault=status:code=0x281:op=read' "${short[@]}" --verify --rw=write --json
json 'j["writes"] > 0 and j["verified_blocks"] == 0 and j["errors"] > 0'
says "nothing is verified"
run 1 'virt:1M?fault=status:code=0x280:op=write' "${short[@]}" --verify --rw=write --json
json 'j["writes"] == 0 and j["verified_blocks"] == 0 and j["errors"] > 0'
# More places than are wiped at a time before a run: what the run before wrote is none of this one's.
load virt:160M --verify --rw=randwrite --bs=512
json 'j["writes"] > 0 and 0 < j["verified_blocks"] <= j["writes"] and j["bad_blocks"] == 0'
# What a place holds to which a write failed is not known: nobody looks there.
run 1 'virt:64M?fault=status:code=0x280:op=write:every=2' "${short[@]}" --verify --rw=randwrite --json
json 'j["writes"] > 0 and j["errors"] > 0 and 0 < j["verified_blocks"] <= j["writes"] and j["bad_blocks"] == 0'
# Every other one is bad: of two runs, however short, one read at least is, and one is not.
run 1 'virt:64K?fault=status:code=0x281:op=read:every=2' "${short[@]}" --verify --json
json 'j["verified_blocks"] == j["reads"] > 0 and j["errors"] > 0 and j["bad_blocks"] == 0'
refuses 1 'of storage "virt:64K?fault=status:code=0x281:op=read"' virt:64K 'virt:64K?fault=status:code=0x281:op=read' "${short[@]}" \
    --cached=64K
finish "blocks that were not read are not verified"

run 0 virt:1M "${short[@]}" --sweep=iodepth:1,4,16 --json
json '[p["swept"] for p in j] == ["1", "4", "16"] and [p["iodepth"] for p in j] == [1, 4, 16]'
run 0 virt:1M "${short[@]}" --sweep=bs:512,4K
[ "$(printf '%s\n' "$out" | wc -l)" = 3 ] || wrong "not a heading and two lines: $out"
for rw in randread randwrite randrw; do
    run 0 virt:1M "${short[@]}" --sweep=iodepth:4 --rw=$rw
    [ "$(awk 'NR == 2 && NF == 8 && $6 > 0 && $7 >= $6' .out | wc -l)" = 1 ] || wrong "no percentiles of $rw: $out"
done
run 0 virt:1M "${short[@]}" --sweep=iodepth:4 --no-latency
[ "$(awk 'NR == 2 && $6 == "-" && $7 == "-"' .out | wc -l)" = 1 ] || wrong "percentiles of no times: $out"
refuses 2 "--plain-blocks counts" virt:1M --plain-threads=64
refuses 2 "NAME:VALUE" virt:1M --sweep=iodepth
refuses 2 "its name is one of bs iodepth" virt:1M --sweep=backend:cpu
refuses 2 '--iodepth does not take "0"' virt:1M --sweep=iodepth:4,0
refuses 2 "values have commas between" virt:1M --sweep=iodepth:4,,8
refuses 2 "--sweep: 65 values; 64 at most" virt:1M "${short[@]}" --sweep=iodepth:$(seq -s, 65)
refuses 2 "it goes with randrw or rw, not randread" virt:1M --rwmixread=70
refuses 2 "it goes with randrw or rw, not randwrite" virt:1M --rw=randwrite --rwmixread=70
run 1 virt:1M "${short[@]}" --sweep=bs:4K,2M --json
json '[p["swept"] for p in j] == ["4K"] and j[0]["reads"] > 0'
one_sentence
finish "a sweep, and values that are none"

tool_path=/nowhere
refuses 2 "apt-get install gnuplot-nox" virt:1M --plot=x.svg
tool_path=$PATH
refuses 2 "No such file" virt:1M --plot=no/such/folder/x.svg
refuses 2 "--no-latency" virt:1M --no-latency --plot=x.svg
finish "plots that cannot be"

if command -v gnuplot >/dev/null; then
    refuses 1 "No such file" virt:?load=no/such/file --plot=none.svg
    [ ! -e none.svg ] || wrong "a run that failed left none.svg"
    run 0 virt:1M "${short[@]}" --sweep=bs:512,4K --plain=host --plot=sweep.svg
    run 0 virt:1M "${short[@]}" --rw=randrw --plot=latency.svg
    for file in sweep.svg latency.svg; do
        python3 -c "import sys, xml.etree.ElementTree as t; sys.exit(not t.parse('$file').getroot().tag.endswith('svg'))" ||
            wrong "$file is no SVG"
    done
    grep -q 'plain kernel' sweep.svg || wrong "sweep.svg does not name the plain kernel"
    grep -q 'writes' latency.svg || wrong "latency.svg does not name the writes"
    finish "plots of a sweep and of latencies"
else
    skip "plots of a sweep and of latencies" "gnuplot is not installed"
fi

# A stand-in for fio, which says what it is asked for; with registered buffers it is twice as fast.
mkdir stand_in
cat >stand_in/fio <<'FIO'
#!/bin/sh
printf '%s\n' "$*" >>asked
case " $* " in *' --fixedbufs '* | *' --fixedbufs') iops=2000 ;; *) iops=1000 ;; esac
[ ! -e broken ] || exit 3
echo "{\"jobs\": [{\"read\": {\"iops\": $iops}}]}"
FIO
chmod 755 stand_in/fio
truncate -s 1M peer
tool_path=$work/stand_in:$PATH
asks() { # asks WORDS...: each is in each line of what was asked, of which there are four, and of these two have registered buffers
    local word
    for word; do
        [ "$(grep -cw -e "$word" asked)" = 4 ] || wrong "not each time: $word: $(<asked)"
    done
    [ "$(wc -l <asked)" = 4 ] || wrong "not four times: $(<asked)"
    [ "$(grep -c -e '--registerfiles --fixedbufs' asked)" = 2 ] || wrong "registered buffers: $(<asked)"
    rm -f asked
}
load 'file:peer?direct=off' --peer=fio --iodepth=7 --bs=8K --offset=64K --size=256K
json 'j["fio_iops"] == 1000 and j["fio_iops_runs"] == [1000, 1000] and j["fio_fixed_iops"] == 2000' \
    'abs(j["ratio_to_fio"] - j["iops"] / 1000) < 1e-9 and abs(j["ratio_to_fio_fixed"] - j["iops"] / 2000) < 1e-9' \
    'j["fio_bytes_per_s"] == 8192000'
asks --filename=peer --bs=8192 --iodepth=7 --offset=65536 --size=262144 --rw=randread --direct=0 --ioengine=io_uring --runtime=1
load 'file:peer?direct=off' --peer=fio --rw=read --iodepth=3 --offset=512K
asks --bs=4096 --iodepth=3 --offset=524288 --size=524288 --rw=read
truncate -s 6G wide
load 'file:wide?direct=off' --peer=fio --offset=5G
asks --offset=5368709120 --size=1073741824
rm -f wide
: >broken
refuses 1 "fio ended with status 3 and no figure for peer" 'file:peer?direct=off' --peer=fio "${short[@]}"
tool_path=/nowhere
refuses 1 "fio is not installed: apt-get install fio" 'file:peer?direct=off' --peer=fio "${short[@]}"
tool_path=$PATH
finish "fio is asked for the same load"

# A stand-in for gnuplot, which keeps what it is to draw.
rm broken
printf '#!/bin/sh\ncat >drawn\n[ ! -e broken ]\n' >stand_in/gnuplot
chmod 755 stand_in/gnuplot
tool_path=$work/stand_in:$PATH
cat >drawn.py <<'PYTHON'
import json, re, sys
j, drawn = json.load(open(".out")), open("drawn").read()
blocks = {name: [line.split() for line in text.splitlines()] for name, text in re.findall(r"^\$(\w+) << END\n(.*?)^END$", drawn, re.M | re.S)}
def near(a, b): return abs(float(a) - b) <= 1e-5 * abs(b)
if isinstance(j, list):
    assert "set output 's.svg'" in drawn and "set xlabel 'bs'" in drawn and "using 0:5:6:7" in drawn, drawn
    for row, point in zip(blocks["data"], j, strict=True):
        iops = [point[kind + key] for kind in ("", "plain_") for key in ("iops", "iops_min", "iops_max")]
        assert row[0] == point["swept"] and all(near(a, b * point["bs"] / 1e9) for a, b in zip(row[1:], iops, strict=True)), (row, point)
else:
    for name, count, p50 in ("reads", j["reads"], j["p50_us"]), ("writes", j["writes"], j["write_p50_us"]):
        seen = 0
        assert sum(int(row[1]) for row in blocks[name]) == count and f"${name} using 1:2" in drawn, (name, count)
        for at, requests in blocks[name]:
            seen += int(requests)
            if seen > count // 2:
                assert near(at, p50), (at, p50)
                break
PYTHON
run 0 virt:1M "${short[@]}" --sweep=bs:512,4K --plain=host --json --plot=s.svg
python3 drawn.py >.err 2>&1 || wrong "another sweep is drawn: $(<.err)"
load_of 1000 virt:1M --rw=randrw --rwmixread=30 --plot=l.svg
python3 drawn.py >.err 2>&1 || wrong "other latencies are drawn: $(<.err)"
: >broken
run 1 virt:1M "${short[@]}" --json --plot=s.svg
says "gnuplot failed to draw s.svg (status 1)"
json 'j["reads"] > 0'
rm broken
tool_path=$PATH
finish "what is drawn is what was measured"

# ---- what is refused ----

run 0 --help
prints "usage: weir-perf"
refuses 2 "give a storage URI"
refuses 2 "--turbo is no option" virt:1M --turbo
refuses 2 "--bs needs a value" virt:1M --bs
refuses 2 '--rw does not take "sideways"; it is one of randread read' virt:1M --rw=sideways
refuses 2 '--bs does not take "4Q"' virt:1M --bs=4Q
refuses 2 '--bs does not take "0"; it is a whole number of bytes, or one with K, M, G or T, from 1 to' virt:1M --bs=0
refuses 2 '--iodepth does not take "-1"' virt:1M --iodepth=-1
refuses 2 "from 0 to 100" virt:1M --rwmixread=101
refuses 2 '--service does not take "0"; it is a whole number from 1 to' virt:1M --service=0
refuses 2 '--runtime does not take "fast"' virt:1M --runtime=fast
refuses 2 "from 0.01 to 4" virt:1M --zipf=9
refuses 2 "random, or zipf:THETA" virt:1M --random_distribution=pareto:1
refuses 2 "--stride is a step" virt:1M --stride=8K
refuses 2 "would overlap" virt:1M --rw=read --stride=512
refuses 2 "--zipf is about random places" virt:1M --rw=read --zipf=1
refuses 2 "2 storages need a lane each" virt:1M virt:1M --iodepth=1
refuses 2 "has no hits of its own" virt:1M --hit=random8 --rw=randwrite
refuses 2 "waits for each read" virt:1M --cached=64K --window=2
refuses 2 "goes with --cached or --hit" virt:1M --line=4K
refuses 2 "no cache policy is called \"lifo\"; there are clock, lru, fifo" virt:1M --cached=64K --policy=lifo
refuses 2 "--policy is the replacement policy of a cache" virt:1M --policy=lru
refuses 2 "behind a cache" virt:1M --tier=64K
refuses 2 "goes with --tier" virt:1M --cached=64K --tier-inclusive
refuses 2 "power of two from 512" virt:1M --cached=64K --line=5000
refuses 2 "leave --cached out" virt:1M --hit=random8 --cached=64K
refuses 2 "--hit takes one storage" virt:1M virt:1M --hit=random8
refuses 2 "places of its own" virt:1M --hit=random8 --zipf=1
refuses 2 "--hit takes none" virt:1M --hit=random8 --plot=x.svg
refuses 2 "--peer=fio reads a file" virt:1M --peer=fio
refuses 2 "peer=fio only reads" file:disk --peer=fio --rw=write
refuses 2 "it needs one file: storage" file:disk file:disk --peer=fio
refuses 2 "leave --stride, --zipf and --window out" file:disk --peer=fio --window=2
refuses 2 "leave --stride, --zipf and --window out" file:disk --peer=fio --zipf=1
refuses 2 "leave --stride, --zipf and --window out" file:disk --peer=fio --rw=read --stride=8K
refuses 2 "32768 requests in flight at most, not 32769" file:disk --peer=fio --iodepth=32769
refuses 2 "have nothing in common" file:disk --peer=fio --hit=random8
refuses 2 "--hit reads only" virt:1M --hit=line4k --rw=rw
refuses 2 "places of its own" virt:1M --hit=random8 --rw=read
refuses 2 "waits for each read" virt:1M --hit=random8 --window=2
refuses 2 "power of two from 512" virt:1M --cached=64K --line=256
refuses 2 "power of two from 512" virt:1M --cached=256K --line=128K
refuses 2 "16 storages at most, virt:17M is one too many" virt:{1..17}M
finish "options that cannot be, or do not go together"

refuses 1 "whole blocks of 512 bytes" virt:1M --bs=1000
refuses 1 "8192 bytes at most" 'virt:1M?mdts=8K' --bs=16K
refuses 1 "has only 4096 bytes" virt:4K --bs=8K
refuses 1 "reach beyond virt:1M" virt:1M --offset=512K --size=1M
refuses 1 "reach beyond virt:1M" virt:1M --offset=2M --size=4K
refuses 1 "reach beyond virt:1M" virt:4M virt:1M --offset=1M --size=4K
refuses 1 "does not hold one request" virt:1M --size=2K
refuses 1 "does not hold one request" virt:1M --offset=1M
refuses 1 "reach beyond virt:1M" virt:1M --offset=2M
refuses 1 "--stride=2199023255552: not a multiple" virt:1M --rw=read --stride=2T
refuses 1 "--stride=5000: not a multiple" virt:1M --rw=read --stride=5000
refuses 1 "are more than 67108864 requests in flight" virt:1M --iodepth=1048576 --window=65
refuses 1 "whole cache lines of 4096 bytes, one at least" virt:1M --hit=random8 --offset=512
refuses 1 "whole cache lines of 4096 bytes, one at least" virt:1M --hit=random8 --size=2K --bs=512
refuses 1 "--offset=100" virt:1M --offset=100
refuses 1 "one load needs one block size" virt:1M 'virt:1M?block=4096'
refuses 1 "is read-only: this load" 'file:disk?ro=1' --rw=write
refuses 1 "is read-only: --verify" 'file:disk?ro=1' --verify
refuses 1 "whole cache lines" virt:1M --cached=64K --bs=6K --line=4K
refuses 1 "striped by 65536" virt:1M virt:1M --cached=64K --offset=4K
refuses 1 "-Duser_policy=HEADER" virt:1M --cached=64K --policy=user
refuses 1 "not even one request" virt:1M --plain=host --plain-bytes=1K
refuses 1 "must be a multiple of the lines of 4096 bytes" virt:1M --cached=64K --tier=5000
refuses 1 "cache of 1024 bytes" virt:1M --cached=1K
refuses 1 'no backend "abacus"' virt:1M --backend=abacus
refuses 1 "exist" file:no/such/file
finish "what the storage or the device does not allow"

exit $((failures != 0))
