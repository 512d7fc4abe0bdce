#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/demo-volumes, small: a search by lanes is right while an engine is killed. usage: demo_volumes_test.sh BUILD-FOLDER
echo 1..1
if output=$("$(dirname "$0")/../../ci/demo-volumes" --build "$1" --scale 12 2>&1); then
  echo 'ok 1 - an engine is killed while lanes search a graph on volumes'
else
  echo 'not ok 1 - an engine is killed while lanes search a graph on volumes'
fi
sed 's/^/# /' <<<"$output"
