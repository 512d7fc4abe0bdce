#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/figures with programs that only say what they would have measured: what it makes of
# that, of programs that fail, hang or are not there, and what it leaves behind.
# usage: figures_test.sh
# Prints TAP.
set -u
figures=$(realpath "$(dirname "$0")/../../ci/figures")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
build=$dir/build
mkdir -p "$build"/runtime/tools/{weir-perf,weir-info,weir-dataset,weir-target,weir-volumed,weir-volume,graph} "$build"/{samples/{bfs,ctc,vectoradd},backends/gadget/peers,tests/bench,meson-info} \
  "$dir"/{memory,results}
export WEIR_FIGURES_BACKEND=gadget WEIR_FIGURES_RESULTS=$dir/results WEIR_FIGURES_MEMORY=$dir/memory \
  WEIR_FIGURES_FILE_BYTES=1048576 WEIR_FIGURES_SCALE=4 WEIR_FIGURES_LIMIT=20 WEIR_FIGURES_COMMIT=abc123 FIGURES_TEST=$dir
result=$dir/results/imaginary-g100
count=0

program() { # program PATH: its text comes in
  cat >"$build/$1"
  chmod +x "$build/$1"
}

program runtime/tools/weir-info/weir-info <<'EOF'
#!/bin/sh
echo '{"version": "0", "devices": [{"device": "gadget:0", "usable": true, "name": "gadget:0 Imaginary G100 (4 multiprocessors)"}]}'
EOF
# Half of what is wanted with FIGURES_HALF; each call is noted.
program runtime/tools/weir-perf/weir-perf <<'EOF'
#!/bin/bash
echo "$*" >>"$FIGURES_TEST/calls"
kernels='{"name": "perf_sync", "registers": 60, "local_bytes": 8}, {"name": "perf_plain", "registers": 40, "local_bytes": 0}'
extra= bs=4096
case $* in *--bs=512*) bs=512 ;; esac
case $* in
  *data=off*iodepth=1\ *) iops=250000 extra='"p50_us": 4.5,' ;;
  *iodepth=1\ *) iops=200000 extra='"p50_us": 5.5,' ;;
  *data=off*) iops=1200000000 ;;
  *--hit=*) iops=900000000 extra='"plain_iops": 1000000000, "plain_iops_min": 1000000000, "plain_iops_max": 1000000000, "hit": "x", "misses": 0,'
    kernels='{"name": "hit_random8", "registers": 50, "local_bytes": 0}, {"name": "hit_random8_plain", "registers": 30, "local_bytes": 0}' ;;
  *--cached=*) iops=90 extra='"raw_iops": 100, "raw_iops_min": 90, "raw_iops_max": 110,' ;;
  *nvmf:tcp://127.0.0.1:4711/nqn.x*) iops=400000 ;;
  *file:*direct=on*) iops=300000 ;;
  *file:*) iops=6000000 ;;
  *threads=4*) iops=20000000 extra='"plain_iops": 20000000, "plain_iops_min": 1, "plain_iops_max": 2, "plain": "host", "plain_blocks": 128, "plain_threads": 128, "commands": 7, "pull": 7, "direct": 0,' ;;
  *--plain-blocks=16*) iops=600000000 extra='"plain_iops": 800000000, "plain_iops_min": 1, "plain_iops_max": 2, "plain": "device", "plain_blocks": 16, "plain_threads": 768,' ;;
  *) iops=600000000 extra='"plain_iops": 2000000000, "plain_iops_min": 1, "plain_iops_max": 2, "plain": "device", "plain_blocks": 768, "plain_threads": 128,' ;;
esac
case $* in *--service=*) kernels=${kernels/perf_sync\", \"registers\": 60/perf_sync_service\", \"registers\": 48} ;; esac
[ -z "${FIGURES_HALF-}" ] || iops=$((iops / 2))
case ${FIGURES_TROUBLE-} in
  fails) case $* in *--bs=512*) echo 'weir-perf: the controller is gone' >&2; exit 1 ;; esac ;;
  dies) case $* in *--bs=512*) kill -SEGV $$ ;; esac ;;
  hangs) case $* in *--bs=512*) sleep 300 & echo $! >"$FIGURES_TEST/sleeper"; wait ;; esac ;;
  stays) sleep 600 & echo $! >"$FIGURES_TEST/sleeper"; wait ;;
  babbles) echo 'nothing of the kind'; exit 0 ;;
  empty) echo '{}'; exit 0 ;;
esac
echo "{\"iops\": $iops, \"iops_min\": $((iops - 10)), \"iops_max\": $((iops + 10)), \"iops_runs\": [1, 2, 3, 4, 5], \"bs\": $bs, $extra
  \"path\": \"somewhere\", \"kernels\": [$kernels]}"
EOF
program runtime/tools/graph/weir-graph <<'EOF'
#!/bin/bash
for out; do :; done
head -c 1000 /dev/zero >"$out.col"
head -c 3000000 /dev/zero >"$out.dst"
EOF
program samples/bfs/weir-bfs <<'EOF'
#!/bin/bash
[ -f "$1.dst" ] || { echo "weir-bfs: no graph" >&2; exit 1; }
time=0.30
case $* in *--plain*) time=0.25 ;; esac
echo "{\"warm_seconds\": $time, \"warm_seconds_min\": 0.2, \"warm_seconds_max\": 0.4, \"warm_commands\": ${FIGURES_SPILT-0}}"
EOF
program samples/ctc/weir-ctc <<'EOF'
#!/bin/bash
echo "{\"path\": \"somewhere\", \"read_us\": 36.04, \"best_speedup\": 1.9, \"best_ratio\": 0.951}"
EOF
program samples/vectoradd/weir-vectoradd <<'EOF'
#!/bin/bash
echo "{\"path\": \"somewhere\", \"tiled_seconds\": 0.02, \"ratio\": 1.05}"
EOF
program runtime/tools/weir-target/weir-target <<'EOF'
#!/bin/bash
echo $$ >"$FIGURES_TEST/served"
echo "weir-target: serving nqn.x at tcp://127.0.0.1:4711; nvmf:tcp://127.0.0.1:4711/nqn.x"
exec sleep 300
EOF
program runtime/tools/weir-volumed/weir-volumed <<'EOF'
#!/bin/bash
echo "weir-volumed: serving $*"
exec sleep 300
EOF
program runtime/tools/weir-volume/weir-volume <<'EOF'
#!/bin/bash
EOF
program tests/bench/target-bench <<'EOF'
#!/bin/bash
echo '{"target_per_s": 300000, "plain_per_s": 500000}'
EOF
program runtime/tools/weir-dataset/weir-dataset <<'EOF'
#!/bin/bash
[ "$1" = bench ] || { touch "${@: -1}"; exit 0; }
[ -e "$4" ] || { echo "weir-dataset: no manifest" >&2; exit 1; }
echo '{"what": "weir full", "samples_per_s": 2000000, "bytes_per_s": 1, "cores": 1}'
echo '{"what": "all runs", "samples": 1}'
EOF
program backends/gadget/peers/peer-pread-copy <<'EOF'
#!/bin/bash
[ "$(stat -c %s "$1")" -gt 0 ] && [ "$(tr -d '\0' <"$1" | wc -c)" -gt 1000 ] || { echo "peer: no random bytes" >&2; exit 1; }
case $* in *--threads=16\ *) iops=500000 ;; *--threads=64\ *) iops=400000 ;; *) iops=1000 ;; esac
case $* in *--no-copy*) iops=$((iops * 2)) ;; esac
case $* in *--direct*) echo >>"$0.turns" ;; esac
echo "{\"how\": \"by hand\", \"iops\": $iops, \"iops_min\": 1, \"iops_max\": 2}"
EOF
program backends/gadget/peers/peer-cufile <<'EOF'
#!/bin/bash
[ -z "${FIGURES_HALF-}" ] || { echo '{"how": "by it", "iops": 100000, "iops_min": 1, "iops_max": 2}'; exit 0; }
echo "peer: tried: all of $1: no" >&2
echo "peer: cannot be had here" >&2
exit 3
EOF
echo '[{"name": "buildtype", "value": "release"}, {"name": "nvcc_arch", "value": ["sm_1", "sm_2"]}]' \
  >"$build/meson-info/intro-buildoptions.json"

say() { # say NAME TROUBLE: a case ends; no trouble: it is well
  count=$((count + 1))
  if [ -z "$2" ]; then
    printf 'ok %d - %s\n' "$count" "$1"
  else
    printf 'not ok %d - %s\n' "$count" "$1"
    printf '%s\n' "$2" | sed 's/^/# /'
  fi
}

run() { # run STATUS ARGUMENTS...: trouble if the exit status is another; output in $output
  local expected=$1 rc; shift
  output=$(timeout 1200 "$figures" "$@" 2>&1); rc=$?
  [ $rc = "$expected" ] || printf 'exit status %s, expected %s:\n%s\n' $rc "$expected" "$output"
}

check() { # check NAME STATUS EXPRESSION ARGUMENTS...: f: figures by name, m: machine, names: in order, out: what was printed
  local name=$1 status=$2 expression=$3 trouble; shift 3
  run "$status" "$@" >"$dir/trouble"
  trouble=$(<"$dir/trouble")
  [ -n "$trouble" ] || trouble=$(OUT=$output python3 - "$result.json" "$expression" 2>&1 <<'EOF'
import json, os, sys
result = json.load(open(sys.argv[1]))
names, f, m, out = [x["name"] for x in result["figures"]], {x["name"]: x for x in result["figures"]}, result["machine"], os.environ["OUT"]
text = open(sys.argv[1][:-5] + ".md").read()
for part in sys.argv[2].split("\n"):
    if not eval(part):
        print("not so:", part)
        print(*([f[n] for n in names if n in part] or [m, names]), sep="\n")
EOF
  )
  say "$name" "$trouble"
}

says() { # says NAME STATUS WORDS ARGUMENTS...
  local name=$1 status=$2 words=$3; shift 3
  run "$status" "$@" >"$dir/trouble"
  grep -qE -- "$words" <<<"$output" || printf 'does not say /%s/:\n%s\n' "$words" "$output" >>"$dir/trouble"
  say "$name" "$(<"$dir/trouble")"
}

sleeper() { # what a hanging program had started, if it still runs
  ps -o stat=,pid=,args= -p "$(cat "$dir/sleeper")" | grep -v ^Z
}

nothing_left() { # what was temporary is gone
  say "$1: no file is left behind" "$(find "$dir/memory" "$build" -name 'weir-figures-*')"
}

all=$("$figures" --list)

# ---- everything at once ----

direct= # not every file system takes it
dd if=/dev/zero of="$build/probe" bs=4096 count=1 oflag=direct 2>/dev/null || direct=no
rm -f "$build/probe"
check "a full set" 0 'set(names) == set(f) and len(names) > 20
m["device"] == "Imaginary G100" and m["commit"] == "abc123" and m["kernel"] and m["host_cores"] > 0 and m["date"]
f["commands_nodata"]["value"] == 1.2e9 and f["commands_nodata"]["unit"] == "1/s" and f["commands_nodata"]["limit"] is None
f["commands_nodata"]["target"] == [{"of": "value", "at_least": 1e9, "met": True}]
f["commands_nodata"]["runs"] == 5 and f["commands_nodata"]["spread"] == [1.2e9 - 10, 1.2e9 + 10]
f["commands_nodata"]["command"].endswith("/runtime/tools/weir-perf/weir-perf --backend=gadget --runs=5 --runtime=1 --json '"'virt:64M?on=device&data=off&waves=128'"' --bs=512 --queues=128 --depth=1024 --iodepth=98304 --no-latency --plain=off")
f["commands_nodata"]["build"] == {"buildtype": "release", "nvcc_arch": "sm_1,sm_2"} and f["commands_nodata"]["commit"] == "abc123"
f["read_512_hbm"]["limit"]["value"] == 8e8 and f["read_512_hbm"]["ratio"] == 0.75 and "16 blocks of 768 lanes" in f["read_512_hbm"]["limit"]["what"]
f["read_512_hbm"]["other_limit"]["value"] == 2e9 and len(f["read_512_hbm"]["more_commands"]) == 1
f["read_512_hbm"]["registers"] == {"perf_sync": 60, "perf_plain": 40} and f["read_512_hbm"]["local_bytes"] == {"perf_sync": 8}
f["read_4k_host"]["value"] == 2e7 * 4096 and f["read_4k_host"]["unit"] == "B/s" and f["read_4k_host"]["ratio"] == 1
f["read_4k_host"]["moved_by"] == {"controller": 0, "lanes": 7}
f["read_512_host"]["value"] == 2e7 and not f["read_512_host"]["target"][0]["met"]
f["read_4k_latency_us"]["value"] == 5 and f["read_4k_latency_us"]["p50_us"] == 5.5 and f["read_4k_latency_us"]["target"][0]["met"]
f["read_4k_latency_us"]["spread"][0] < 5 < f["read_4k_latency_us"]["spread"][1]
f["latency_nodata_us"]["value"] == 4 and f["latency_nodata_us"]["target"] == []
f["hit_random_8b"]["ratio"] == 0.9 and f["hit_random_8b"]["target"][0]["met"] and not f["hit_line_4k"]["target"][0]["met"]
f["miss_4k"]["ratio"] == 0.9 and f["miss_4k"]["limit"]["value"] == 100
f["regs_array"]["value"] == 20 and f["regs_array"]["target"][0]["met"] and f["regs_raw_service"]["value"] == 8
f["regs_raw"]["value"] == 20 and f["regs_raw"]["local_bytes_added"] == 8 and not f["regs_raw"]["target"][0]["met"]
"8 bytes of local memory more" in f["regs_raw"]["note"]
"--service=128" in f["regs_raw_service"]["command"]
abs(f["bfs_in_cache"]["value"] - 1.2) < 1e-9 and f["bfs_in_cache"]["spread"] == [0.5, 2] and "--cache 5M" in f["bfs_in_cache"]["command"]
len(f["bfs_in_cache"]["more_commands"]) == 2
f["overlap_20us"]["value"] == 1.9 and not f["overlap_20us"]["target"][0]["met"] and "0.95; a read takes 36.0 us" in f["overlap_20us"]["note"]
"lat_us=100" in f["overlap_100us"]["command"] and f["overlap_100us"]["unit"] == "times"
f["vectoradd_device"]["value"] == f["vectoradd_host"]["ratio"] == 1.05 and f["vectoradd_device"]["target"][0]["met"]
"by hand, 0.02 s" in f["vectoradd_device"]["limit"]["what"] and "--depth 1024" in f["vectoradd_device"]["command"]
f["file_4k_vs_pread_copy"]["peer_ratio"] == 12 and [t["met"] for t in f["file_4k_vs_pread_copy"]["target"]] == [True, True]
f["file_4k_vs_pread_copy"]["ratio"] == 6 and "; 16 threads, the best of 1, 4, 16, 64" in f["file_4k_vs_pread_copy"]["peer"]["what"]
"file:TMP/random" in f["file_4k_vs_pread_copy"]["command"] and len(f["file_4k_vs_pread_copy"]["more_commands"]) == 2
f["nvmf_4k_4_threads"]["ratio"] == 0.8 and f["nvmf_4k_4_threads"]["target"][0]["met"] and f["nvmf_4k_16_threads"]["peer_ratio"] == 0.8
"--threads 16 " in f["nvmf_4k_16_threads"]["command"] and "nvmf:tcp://127.0.0.1:PORT/nqn.x --bs=4096" in f["nvmf_4k_4_threads"]["more_commands"][0]
f["dataset_4k"]["value"] == 2e6 and f["dataset_4k"]["peer_ratio"] == 4
f["file_4k_vs_cufile"]["value"] is None and f["file_4k_vs_cufile"]["status"] == "cannot be had"
f["file_4k_vs_cufile"]["note"] == "peer: tried: all of TMP/random: no; peer: cannot be had here"
all("met" not in t for t in f["file_4k_vs_cufile"]["target"])
[f[n]["status"] for n in names].count("measured") >= len(names) - 2
all(f[n]["command"] for n in names if f[n]["value"] is not None)
"'"$direct"'" or f["file_disk_4k_vs_pread"]["peer_ratio"] == 0.375
all(line.split()[0] in names for line in out.splitlines()[1:-1]) and len(out.splitlines()) == len(names) + 2' "$build"
nothing_left "a full set"
say "a full set: what was served is served no more" "$(ps -o pid=,args= -p "$(cat "$dir/served")")"
say "figures come in the order of --list" "$(diff <(python3 -c "
import json
print(*[x['name'] for x in json.load(open('$result.json'))['figures']], sep='\n')") <(echo "$all"))"
say "a load that several figures share ran once" "$(grep -v direct=on "$dir/calls" | sort | uniq -d)"
turns=$build/backends/gadget/peers/peer-pread-copy.turns
say "a disk is read in turns" "$([ -n "$direct" ] || [ "$(wc -l <"$turns") $(grep -c direct=on "$dir/calls")" = "5 5" ] || echo "not five each")"
check "the table" 0 'text.startswith("# Figures: Imaginary G100\n") and "Commit abc123, built release for sm_1,sm_2." in text
"| commands_nodata | 1.20 G/s | – | – | ≥ 1.00 G/s | yes |\n" in text
"| read_4k_hbm | 600 M/s | 800 M/s | 0.750 | ≥ 150 M/s | yes |\n" in text
"| read_4k_host | 81.9 GB/s | 81.9 GB/s | 1.00 | ≥ 48.0 GB/s | yes |\n" in text
"| read_4k_latency_us | 5.00 µs | – | – | ≤ 6.00 µs | yes |\n" in text
"| hit_line_4k | 900 M/s | 1.00 G/s | 0.900 | ≥ 0.97 of the limit | no |\n" in text
"| regs_raw | 20 | – | – | ≤ 24 | no |\n" in text
"| file_4k_vs_pread_copy | 6.00 M/s | 1.00 M/s | 6.00; 12.0 × the peer | ≥ 5.00 M/s; ≥ 8 × the peer | yes; yes |\n" in text
"| file_4k_vs_cufile | – | – | – | ≥ 5 × the peer | cannot be had |\n" in text
text.count("\n| ") == len(names) + 1 and all(f[n]["command"] in text for n in names if f[n]["command"])
"median of 5 runs" in text and "spilled bytes: perf_sync 8" in text' --render "$result.json"

cp "$result.md" "$dir/before.md"
rm "$result.md"
run 0 --render "$result.json" >"$dir/trouble"
cmp "$result.md" "$dir/before.md" >>"$dir/trouble" 2>&1
say "--render writes the same again" "$(<"$dir/trouble")"

# ---- some of it ----

export WEIR_FIGURES_COMMIT=def456
FIGURES_HALF=1 check "one figure more: the others stay, each with its commit" 0 'f["read_4k_hbm"]["value"] == 3e8 and len(names) > 20
f["read_4k_hbm"]["commit"] == "def456" and f["commands_nodata"]["commit"] == "abc123" and f["commands_nodata"]["value"] == 1.2e9
"read_4k_hbm, file_4k_vs_cufile: commit def456" in text and f["file_4k_vs_cufile"]["peer_ratio"] == 30' "$build" read_4k_hbm file_4k_vs_cufile
FIGURES_SPILT=12 check "a graph that did not stay in the cache is told" 0 '"12 commands" in f["bfs_in_cache"]["note"]' "$build" bfs_in_cache
nothing_left "some figures"

# ---- trouble ----

FIGURES_TROUBLE=fails check "a program that fails costs its figure only" 1 'f["commands_nodata"]["value"] is None
f["commands_nodata"]["status"] == "failed" and f["read_4k_hbm"]["value"] == 6e8
f["commands_nodata"]["note"] == "weir-perf: the controller is gone (exit status 1)" and "failed: weir-perf: the controller is gone" in text
"| commands_nodata | – | – | – | ≥ 1.00 G/s | failed |" in text' "$build" commands_nodata read_4k_hbm
FIGURES_TROUBLE=dies check "a program that crashes" 1 '"signal 11" in f["commands_nodata"]["note"]' "$build" commands_nodata
FIGURES_TROUBLE=hangs WEIR_FIGURES_LIMIT=0.5 check "a program that hangs is ended" 1 '"not done after 0.5 s" in f["commands_nodata"]["note"]' \
  "$build" commands_nodata
say "and what it had started, too" "$(sleeper)"
FIGURES_TROUBLE=babbles check "no JSON" 1 '"printed no JSON" in f["read_4k_hbm"]["note"]' "$build" read_4k_hbm
FIGURES_TROUBLE=empty check "JSON without a figure" 1 '"not as expected" in f["read_4k_hbm"]["note"]' "$build" read_4k_hbm
WEIR_FIGURES_FILE_BYTES=1000000000000000 check "no room for the file" 0 'f["file_4k_vs_pread_copy"]["status"] == "cannot be had"
"MiB free" in f["file_4k_vs_pread_copy"]["note"]' "$build" file_4k_vs_pread_copy
mv "$build/backends/gadget/peers/peer-cufile" "$dir/"
check "a program that was not built" 1 '"peer-cufile is not in" in f["file_4k_vs_cufile"]["note"]' "$build" file_4k_vs_cufile

rm -f "$dir/sleeper"
FIGURES_TROUBLE=stays "$figures" "$build" file_4k_vs_pread_copy >"$dir/log" 2>&1 &
asked=$!
for ((i = 0; i < 3000; i++)); do
  [ -s "$dir/sleeper" ] && break
  sleep 0.1
done
say "a file is there while it is read" "$(find "$dir/memory" -name random | grep -q . || echo none: "$(<"$dir/log")")"
kill -TERM $asked
wait $asked
status=$?
say "interrupted: its exit status" "$([ $status = 143 ] || { echo "$status"; cat "$dir/log"; })"
say "interrupted: the program is ended" "$(sleeper)"
nothing_left "interrupted"

says "no folder" 2 'usage: ci/figures FOLDER'
says "a folder that is none" 2 'nowhere is no build folder' nowhere
says "a figure that is none" 2 'no figure speed; there are commands_nodata, ' "$build" speed
WEIR_FIGURES_SCALE=big says "a setting that is no number" 2 'WEIR_FIGURES_SCALE=big: it takes a number' "$build"
says "a file that is none" 2 'none.json: No such file' --render "$dir/none.json"
says "a file of something else" 2 'is no result of ci/figures' --render "$build/meson-info/intro-buildoptions.json"
WEIR_FIGURES_BACKEND=widget says "no such device" 1 'no widget device: this build has no such backend' "$build"
printf '1..%d\n' "$count"
