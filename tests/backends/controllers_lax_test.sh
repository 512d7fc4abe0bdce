#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Controls of controllers_test: on a stand-in that lacks one of its driver's checks the case of that check fails, and on one that has
# all of them it passes: controllers_lax_test.sh CONTROLLERS_TEST MODULE. The stand-in is preloaded by LD_PRELOAD.
set -u
number=0
device=$LD_PRELOAD
unset LD_PRELOAD # of the shell's own programs
echo 1..5

# Case CHECK alone; LAX: the check that is left out
runs() {
  (LD_PRELOAD=$device WEIR_PRETENDED_LAX=$2 WEIR_TEST_CASES=test_driver_$1 CMOCKA_MESSAGE_OUTPUT=TAP timeout 100 "${command[@]}"
    exit) 2>/dev/null
}

command=("$@")
for check in unaligned kind gone twice use; do
  number=$((number + 1))
  if runs $check none | grep -q "^ok .* test_driver_$check" && runs $check $check | grep -q "^not ok .* test_driver_$check"; then
    echo "ok $number - the lack of check $check is seen"
  else
    echo "not ok $number - the lack of check $check is seen"
  fi
done
