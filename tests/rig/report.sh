# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Cases of a shell test as TAP, to be sourced. The test ends with a line "1..$count".
count=0

report() { # report STATUS NAME [WHAT]: a case, good with status 0; of one that is not, WHAT was seen
  count=$((count + 1))
  if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; printf '%s\n' "${3-}" | sed 's/^/# /'; fi
}

skip() { # skip NAME WHY
  count=$((count + 1))
  echo "ok $count - $1 # SKIP $2"
}
