#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# weir-resize, weir-matmul and weir-checkpoint on volumes of two replicas: two engines and a daemon on loopback. What they read and write is
# counted, and is as much as on any other storage; a checkpoint is there after its writer was killed. Prints TAP.
# usage: volume_samples_test.sh WEIR-TARGET WEIR-VOLUMED WEIR-VOLUME SAMPLES
set -u
target=$1 volumed=$2 volume=$3 samples=$4
work=$(mktemp -d)
export WEIR_BACKEND=cpu XDG_RUNTIME_DIR=$work
# shellcheck source=tests/volume/array.sh
. "$(dirname "$0")/../volume/array.sh"
trap 'array_end; rm -rf "$work"' EXIT
count=0

say() { # say GOOD NAME OUTPUT
  count=$((count + 1))
  if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; printf '%s\n' "${3-}" | sed 's/^/# /'; fi
}

check() { # check NAME FIGURES SAMPLE ARGUMENTS...: verified, and the JSON has all FIGURES, "key: value" with ; between them
  local name=$1 figures=$2 sample=$3 output good=0 figure; shift 3
  output=$(timeout 300 "$samples/$sample/weir-$sample" "$@" --verify --json 2>&1) && grep -q '"verified": true' <<<"$output" || good=1
  while IFS= read -r -d ';' figure; do grep -qE "\"${figure%%:*}\":${figure#*:},*\$" <<<"$output" || good=1; done <<<"$figures;"
  say $good "$sample: $name ($figures)" "$output"
}

engine_bytes=256M
engine 1 && engine 2 && start_daemon || exit 1
new_volume images 4M 2 && new_volume small 4M 2 && new_volume matrices 4M 2 && new_volume checkpoints 4M 2 || exit 1

# 64 images of 128x32 to 64x16: 12,288 bytes each to 3,072. A tile of 16 KiB is 85 rows and a third.
resize='--from 128x32 --to 64x16 --images 64 --runs 1'
check 'as on memory' 'bytes_written: 196608;commands: 36' resize virt:4M virt:4M $resize
# A panel of 32 rows: A once, B for each of four panels, C once; a command each, since none is longer than 64 KiB.
matmul='--rows 128 --inner 128 --columns 256 --memory 112K --runs 1'
checkpoint='--layers 2 --width 64 --vocabulary 501 --positions 32 --runs 2'
check 'from volume to volume' 'bytes_written: 196608;commands: 36' resize vol:images vol:small $resize --make
check 'from a volume' 'bytes_written: 196608;commands: 36' resize vol:images virt:1M $resize
check 'to a volume' 'bytes_written: 196608;commands: 36' resize virt:4M vol:small $resize
check 'on a volume' 'commands: 24;bytes_read: 589824;bytes_written: 131072' matmul vol:matrices $matmul
check 'on a volume' 'step: 2;data_bytes: 536832;bytes_written: 552960;bytes_read: 540672;save_commands: 15;load_commands: 9' checkpoint vol:checkpoints $checkpoint
# Lanes that choose engines send a write to each of two; what an engine refuses is sent again.
check 'from volume to volume, lanes choose engines' 'commands: (4[89]|[5-9].)' resize 'vol:images?lanes=1' 'vol:small?lanes=1' $resize
check 'on a volume, lanes choose engines' 'commands: (2[89]|[3-9].)' matmul 'vol:matrices?lanes=1' $matmul
check 'on a volume, lanes choose engines' 'step: 4;save_commands: (1[6-9]|[2-9].)' checkpoint 'vol:checkpoints?lanes=1' $checkpoint

# A writer is killed while it saves, its fifth write unanswered: once the lease is over, the checkpoint before is there.
touch "$work/trace"
"$samples/checkpoint/weir-checkpoint" "vol:checkpoints?trace=$work/trace&timeout_ms=600000&fault=late:us=1000000000:op=write:after=4" $checkpoint >"$work/killed" 2>&1 &
client_pid[killed]=$!
until [ "$(grep -c 'begin .* write' "$work/trace" 2>/dev/null)" -ge 5 ] || ! runs "${client_pid[killed]}"; do sleep 0.02; done
kill -KILL "${client_pid[killed]}"
{ wait "${client_pid[killed]}"; } 2>/dev/null
say $(($? != 137)) 'checkpoint: a writer is killed while it saves' "$(cat "$work/killed")"
tool lease checkpoints --end >"$work/lease" 2>&1
check 'the one before is there' 'step: 4' checkpoint 'vol:checkpoints?ro=1' $checkpoint --load
check 'and the next saves are steps 5 and 6' 'step: 6' checkpoint vol:checkpoints $checkpoint
echo "1..$count"
