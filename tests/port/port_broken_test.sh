#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The portability suite can fail: each mistake of port_broken.h is found, in the row it belongs to.
# usage: port_broken_test.sh PROGRAM
set -u
program=$1
count=0
unset WEIR_TEST_CONTEXT WEIR_TEST_WITHOUT # the mistakes are in the cpu's port
export CMOCKA_MESSAGE_OUTPUT=TAP

try() { # try BREAK CASE ROWS FAILED: into output, rc; true if the case failed in a row called FAILED; "": if in none
  output=$(WEIR_PORT_BREAK=$1 WEIR_TEST_CASES=$2 WEIR_PORT_ROWS=$3 timeout 1200 "$program" 2>&1); rc=$?
  if [ -n "$4" ]; then
    [ "$rc" = 1 ] && grep -qE "^# $4.* FAILED " <<<"$output"
  else
    [ "$rc" = 0 ] && grep -qE '^# .* (holds|skipped) ' <<<"$output" && ! grep -q ' FAILED ' <<<"$output"
  fi
}

check() { # check BREAK CASE ROWS FAILED: a mistake shows in one of some runs: only if two cores were at it at once
  local output rc good=0 runs=1
  count=$((count + 1))
  [ -z "$4" ] || runs=10
  while [ $good = 0 ] && [ $((runs--)) -gt 0 ]; do
    try "$@" && good=1
  done
  if [ $good = 1 ]; then
    printf 'ok %d - %s, %s\n' "$count" "$1" "$2"
  else
    printf 'not ok %d - %s, %s (status %s)\n' "$count" "$1" "$2" "$rc"
    printf '%s\n' "$output" | grep -v ' holds ' | sed 's/^/# /'
  fi
}

while read -r mistake case rows row; do
  check nothing "$case" "$rows" ''
  check "$mistake" "$case" "$rows" "${row//_/[ _]}"
done <<'LIST'
cas test_atomics cas_u64* cas_u64_acq_rel_dev
narrow test_data_accesses data_store_u8* data_store_u8
ballot test_collectives * collectives
sync test_collectives *wave_sync collectives:_any_masks
release port_test_messages *u16 message:_store_release,_load_acquire,_u16
mmio port_test_message *mmio* host:_mmio_store
LIST
printf '1..%d\n' "$count"
