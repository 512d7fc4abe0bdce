#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/demo-volumes, small: wrong usage is refused, and a search by lanes is right while an engine is killed.
# usage: demo_volumes_test.sh BUILD-FOLDER
demo=$(dirname "$0")/../../ci/demo-volumes
echo 1..2
output=$("$demo" --scales 12 2>&1)
if [ $? = 2 ] && grep -q '^An array of four engines' <<<"$output" && grep -q -- '--scale N' <<<"$output" && ! grep -q '^==' <<<"$output"; then
  echo 'ok 1 - an option that is none is refused with what there is'
else
  echo 'not ok 1 - an option that is none is refused with what there is'
fi
sed 's/^/# /' <<<"$output"
if output=$("$demo" --build "$1" --scale 12 2>&1); then
  echo 'ok 2 - an engine is killed while lanes search a graph on volumes'
else
  echo 'not ok 2 - an engine is killed while lanes search a graph on volumes'
fi
sed 's/^/# /' <<<"$output"
