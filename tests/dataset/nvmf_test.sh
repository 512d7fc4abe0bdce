#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A dataset on two remote storages, NVMe/TCP over loopback: uploaded, and read once by one process and by ranks.
set -u
tool=$1 target=$2
folder=$(mktemp -d)
name=nqn.2026-01.org.example
"$target" --listen tcp://127.0.0.1:0 --subsystem $name:a=virt:8M --subsystem $name:b=virt:8M >"$folder/log" 2>&1 &
server=$!
trap 'kill $server; wait $server; rm -rf "$folder"' EXIT
until [ "$(grep -c serving "$folder/log")" = 2 ]; do
  kill -0 $server || { echo "1..0 # SKIP weir-target does not start here"; exit 0; }
done
uris=$(grep -o 'nvmf:tcp://[^ ;]*' "$folder/log")
failed=0
verdict() { # RC NUMBER NAME
  if [ "$1" = 0 ]; then echo "ok $2 - $3"; else echo "not ok $2 - $3"; failed=1; fi
}
echo 1..3
"$tool" make "$folder/files" --samples 400 --bytes 10-9000 --classes 4 && "$tool" upload "$folder/files" $uris
verdict $? 1 "upload to two targets"
"$tool" verify $uris | grep -q '^400 samples'
verdict $? 2 "every sample once"
if command -v mpirun >/dev/null && timeout 60 mpirun --allow-run-as-root --oversubscribe -n 1 true >/dev/null 2>&1; then
  timeout 120 mpirun --allow-run-as-root --oversubscribe -n 3 "$tool" verify $uris | grep -q '^400 samples, .* 3 ranks: all there'
  verdict $? 3 "three ranks, every sample once"
else
  echo "ok 3 - three ranks # SKIP no mpirun"
fi
exit $failed
