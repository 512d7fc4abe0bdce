#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/dataset-figures with little data: the JSON of a figure is whole, other figures of the file stay, wrong names are refused.
set -u
root=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
verdict() { # RC NUMBER NAME
  if [ "$1" = 0 ]; then echo "ok $2 - $3"; else echo "not ok $2 - $3"; sed 's/^/# /' "$folder/err"; failed=1; fi
}
figures() { timeout 900 "$root/ci/dataset-figures" --build "$build" --folder "$folder" --quick "$@" >"$folder/out" 2>"$folder/err"; }
for program in weir-dataset weir-target; do
  [ -x "$build/runtime/tools/$program/$program" ] || { echo "1..0 # SKIP $program is not built"; exit 0; }
done
echo 1..5
figures --only order && figures --only directory && python3 - "$folder/results/datasets.json" <<'END'
import json, sys
results = json.load(open(sys.argv[1]))
machine, figures = results["machine"], {figure["name"]: figure for figure in results["figures"]}
assert machine["quick"] and machine["processors"] and machine["kernel"] and machine["file_system"] and machine["date"], machine
assert list(figures) == ["directory", "order"], list(figures)
for figure in figures.values():
    assert figure["status"] == "measured" and figure["commands"] and figure["date"] and "took_seconds" in figure, figure
    assert all("/tmp" not in command for command in figure["commands"]), figure["commands"]
assert [row["what"] for row in figures["order"]["rows"]] == ["shuffled-chunk", "chunk", "full"]
directory, *lookups = figures["directory"]["rows"]
assert directory["samples"] == 100000 and 16 * 100000 <= directory["directory_bytes"] <= directory["bound_bytes"], directory
assert [row["what"] for row in lookups] == ["lookup buckets", "lookup avl"] and all(row["one_ns"] > 0 for row in lookups), lookups
END
verdict $? 1 "two figures, whole, in one file"
grep -q '^| 100,000 | 1,6.* | yes |' "$folder/out" && grep -q '^Set-up: ' "$folder/out" && ! grep -q '^order:' "$folder/out"
verdict $? 2 "tables of what was measured"
figures --only memory && python3 - "$folder/results/datasets.json" <<'END'
import json, sys
rows = {figure["name"]: figure["rows"] for figure in json.load(open(sys.argv[1]))["figures"]}["memory"]
small, large = rows
assert all(row["peak_rss_bytes"] > row["cache_bytes"] for row in rows), rows
# twice the cache: the difference and no more, but for what the allocator rounds
assert large["peak_rss_bytes"] - small["peak_rss_bytes"] < 1.5 * (large["cache_bytes"] - small["cache_bytes"]), rows
END
verdict $? 3 "a larger cache takes as much memory more, and no more"
if command -v gnuplot >/dev/null; then
  python3 -c 'import sys, xml.etree.ElementTree as t; sys.exit(not t.parse(sys.argv[1]).getroot().tag.endswith("svg"))' "$folder/results/datasets-memory.svg"
  verdict $? 4 "a plot"
else
  echo "ok 4 - a plot # SKIP gnuplot is not installed"
fi
figures --only nothing; [ $? = 2 ] && grep -q 'no figure nothing; the figures are samples_512' "$folder/err" &&
  [ -z "$(ls "$folder" | grep -v -e results -e out -e err)" ]
verdict $? 5 "a wrong name is refused, and no sample is left behind"
exit $failed
