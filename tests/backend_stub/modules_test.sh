#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Modules that cannot be used say why, each in one sentence, and the others go on.
# usage: modules_test.sh WEIR-INFO STUB OLD ABSENT EAGER    all but the first: modules, built for this
set -u
info=$1 stub=$2 old=$3 absent=$4 eager=$5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
count=0

check() { # check NAME STATUS WORDS COMMAND...: exit status, and a line of output with WORDS
  local name=$1 status=$2 words=$3 output rc; shift 3
  count=$((count + 1))
  output=$(timeout 600 "$@" 2>&1); rc=$?
  if [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output"; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s (status %s, expected %s and /%s/)\n' "$count" "$name" "$rc" "$status" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

cp "$stub" "$dir/weir-backend-stub.so"
cp "$old" "$dir/weir-backend-old.so"
cp "$absent" "$dir/weir-backend-absent.so" # without the library that was beside it
echo text >"$dir/weir-backend-text.so"
export WEIR_BACKENDS=$dir
unset LD_LIBRARY_PATH # meson names the folder of the library that shall be missing
check "a module is found" 0 '^stub:1 +stub \(runs nothing\)' "$info"
check "one of another version" 1 '^old .*weir-backend-old.so is of another version of weir; install this one' "$info" old
check "one whose library is missing" 1 '^absent .*libweir_absent.so: cannot open shared object file.*; install what is missing' \
  "$info" absent
check "one that is no module" 1 '^text .*weir-backend-text.so: ' "$info" text
check "a name that is no backend, and those there are" 1 'no backend "nosuch".*"stub"' "$info" nosuch
check "the cpu beside them" 0 '^cpu +cpu \(' "$info" cpu
cp "$eager" "$dir/weir-backend-stub.so"
check "auto takes one that may be taken unasked" 0 '^auto +stub \(runs nothing\)' "$info" auto
rm "$dir"/weir-backend-*.so
check "an empty folder" 0 '^cpu +cpu \(' "$info" cpu
printf '1..%d\n' "$count"
