#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A dataset on two remote storages, NVMe/TCP over loopback: uploaded, and read once.
set -u
tool=$1 target=$2
folder=$(mktemp -d)
name=nqn.2026-01.org.example
"$target" --listen tcp://127.0.0.1:0 --subsystem $name:a=virt:8M --subsystem $name:b=virt:8M >"$folder/log" 2>&1 &
server=$!
trap 'kill $server; wait $server; rm -rf "$folder"' EXIT
until [ "$(grep -c "nvmf:tcp://[^ ]*:[ab]$" "$folder/log")" = 2 ]; do
  kill -0 $server || { echo "1..0 # SKIP weir-target does not start here"; exit 0; }
done
uris=$(grep -o 'nvmf:tcp://[^ ;]*' "$folder/log")
failed=0
verdict() { # RC NUMBER NAME
  if [ "$1" = 0 ]; then echo "ok $2 - $3"; else echo "not ok $2 - $3"; failed=1; fi
}
echo 1..2
"$tool" make "$folder/files" --samples 400 --bytes 10-9000 --classes 4 && "$tool" upload "$folder/files" $uris
verdict $? 1 "upload to two targets"
"$tool" verify $uris | grep -q '^400 samples'
verdict $? 2 "every sample once"
exit $failed
