#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/volume-figures with little data: each design has a row for each setting and load, whose requests were verified and none
# failed; the tables of docs/volumes.md are those of docs/results/volumes.json; a wrong name is refused.
# usage: volume_figures_test.sh SOURCES BUILD
# Prints TAP.
set -u
root=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
verdict() { # RC NUMBER NAME
  if [ "$1" = 0 ]; then echo "ok $2 - $3"; else echo "not ok $2 - $3"; sed 's/^/# /' "$folder/err"; failed=1; fi
}
figures() { timeout 900 "$root/ci/volume-figures" --build "$build" --results "$folder" "$@" >"$folder/out" 2>"$folder/err"; }
for program in runtime/tools/weir-{target,volumed,volume,perf} tests/bench/volume-bench; do
  name=${program##*/}
  [ -x "$build/$program/$name" ] || [ -x "$build/$program" ] || { echo "1..0 # SKIP $name is not built"; exit 0; }
done
echo 1..5
figures --quick
verdict $? 1 "all figures are measured"
python3 - "$folder/volumes.json" 2>>"$folder/err" <<'END'
import json, sys
figures = {figure["name"]: figure for figure in json.load(open(sys.argv[1]))["figures"]}
settings = {"access_rated": 1, "access_free": 1, "clients": 2, "engines": 2, "replicas": 2, "latency": 1, "link": 1, "ablation": 1}
assert list(figures) == list(settings), list(figures)
for name, count in settings.items():
    figure, designs = figures[name], 5 if name == "ablation" else 3
    if name == "link" and figure["status"] == "cannot be had": # without root
        continue
    assert figure["status"] == "measured" and figure["commands"], figure
    found = {(row["clients"], row["engines"], row["replicas"], row["rw"], row["bs"], row["design"]) for row in figure["rows"]}
    assert len(found) == len(figure["rows"]) == count * 2 * designs, (name, found)
    for row in figure["rows"]:
        assert row["requests"] > 0 and row["errors"] == 0 and row["iops"] > 0, row
        assert row["verified_blocks"] > 0 and row["bad_blocks"] == 0, row
        assert ("p50_us" in row) == (name == "latency"), row
        assert ("ideal_iops" in row) == (name in ("access_rated", "engines", "replicas", "link")), row
END
verdict $? 2 "each design has each row: requests were verified, none failed"
[ "$(grep -c '^| 4 KiB random read |' "$folder/out")" -ge 1 ] && grep -q '^Set-up: ' "$folder/out" && grep -q '^ablation:' "$folder/out"
verdict $? 3 "tables of what was measured"
PYTHONDONTWRITEBYTECODE=1 python3 - "$root" 2>>"$folder/err" <<'END'
import json, pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "ci"))
import figures_page, volume_tables
text = volume_tables.render(json.loads((root / "docs/results/volumes.json").read_text()))
page = (root / "docs/volumes.md").read_text()
assert set(text) == set(volume_tables.TABLES), set(text)
assert figures_page.with_tables("ci/volume-figures", page, text) == page
assert all(f"<!-- made by ci/volume-figures: {name}: begin -->" in page for name in text)
END
verdict $? 4 "the page has the tables of the results"
figures --only nothing; [ $? = 2 ] && grep -q 'no figure nothing; the figures are access_rated' "$folder/err"
verdict $? 5 "a wrong name is refused"
exit $failed
