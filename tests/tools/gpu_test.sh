#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/gpu with programs that only say what they would have found: what it writes down of that, and what ci/ran tells of it.
# usage: gpu_test.sh KIND MODULE BESIDE    KIND: of ci/gpu's devices; MODULE: that whose step has a build of its own;
#                                          BESIDE: that whose step takes KIND's build
# Prints TAP.
set -u
kind=$1 module=$2 beside=$3
ci=$(realpath "$(dirname "$0")/../../ci")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
build=$dir/build
mkdir -p "$build"/{tests,runtime/tools/weir-info} "$dir"/{bin,results}
touch "$build/build.ninja"
unset WEIR_SYSROOT WEIR_GPU_OPTIONS WEIR_TEST_CONTEXT
export WEIR_FIGURES_RESULTS=$dir/results WEIR_FIGURES_COMMIT=abc1234567 GPU_TEST=$dir PATH=$dir/bin:$PATH
result=$dir/results/imaginary-g100-tests.json
count=0

program() { # program PATH: its text comes in
  cat >"$dir/$1"
  chmod +x "$dir/$1"
}

program bin/ninja <<'EOT'
#!/bin/sh
[ -z "${GPU_TROUBLE-}" ] || [ "$GPU_TROUBLE" != build ] || { echo 'ninja: nothing can be built'; exit 1; }
echo "ninja $*"
EOT
program bin/meson <<'EOT'
#!/bin/sh
echo "$*" >>"$GPU_TEST/configured"
[ "$1" = configure ] || cp -r "$GPU_TEST/build" "$2"
EOT
program build/runtime/tools/weir-info/weir-info <<EOT
#!/bin/sh
usable=true why=
[ "\${GPU_TROUBLE-}" != none ] || { usable=false; why=', "why": "it is not plugged in"'; }
printf '{"devices": [{"device": "$kind:0", "usable": %s%s, "name": "$kind:0 Imaginary G100 (4 multiprocessors)"},
  {"device": "$module:0", "usable": %s%s, "name": "$module:0 Imaginary G100 sm_90 (4 compute units)"}]}' \$usable "\$why" \$usable "\$why"
EOT
program build/tests/lanes_test <<'EOT'
#!/bin/sh
printf '1..4\nok 1 - a\nok 2 - b\nnot ok 3 # SKIP c\nok 4 - d\n'
EOT
program build/tests/host_test <<'EOT'
#!/bin/sh
printf '1..2\nok 1 - a\nnot ok 2 - b on %s\n' "$WEIR_TEST_CONTEXT"
exit 1
EOT
for name in port queue cache gather writeback async share policy devices; do
  program build/tests/${name}_test <<'EOT'
#!/bin/sh
printf '1..1\nok 1 - one\n'
EOT
done

say() { # say NAME TROUBLE: a case ends; no trouble: it is well
  count=$((count + 1))
  if [ -z "$2" ]; then
    printf 'ok %d - %s\n' "$count" "$1"
  else
    printf 'not ok %d - %s\n' "$count" "$1"
    printf '%s\n' "$2" | sed 's/^/# /'
  fi
}

check() { # check NAME STATUS EXPRESSION COMMAND...: m: the machine, t: rows by backend and step, out: what was printed, last: its end
  local name=$1 status=$2 expression=$3 output rc; shift 3
  output=$(timeout 600 "$@" 2>&1); rc=$?
  say "$name" "$([ $rc = "$status" ] || printf 'exit status %s, expected %s:\n%s\n' $rc "$status" "$output"
    OUT=$output python3 - "$result" "$expression" "$kind" "$module" 2>&1 <<'EOT'
import json, os, sys
path, expression, kind, module = sys.argv[1:]
result = json.load(open(path)) if os.path.exists(path) and os.path.getsize(path) > 9 else {"machine": None, "tests": []}
m, out = result["machine"], os.environ["OUT"]
t = {(row["backend"], row["step"]): row for row in result["tests"]}
last = out.splitlines()[-1] if out else ""
for part in expression.split("\n"):
    if not eval(part):
        print("not so:", part, m, t, out, sep="\n")
EOT
  )"
}

# ---- what steps found ----

check "two steps" 1 'm["device"] == "Imaginary G100" and m["commit"] == "abc1234567" and {"date", "driver", "host", "kernel"} <= set(m)
len(t) == len(result["tests"]) == 2
all(row["commit"] == "abc1234567" and row["date"] == m["date"] and row["seconds"] < 60 for row in t.values())
[t[kind, "lanes"][what] for what in ("passed", "failed", "skipped")] == [3, 0, 1]
[t[kind, "host"][what] for what in ("passed", "failed", "skipped")] == [1, 1, 0]
"FAILED host: not ok 2 - b on " + kind in out and "== lanes on " + kind in out
last == "4 passed, 1 failed, 1 skipped" and "tests.json" not in out' "$ci/gpu" "$build" host lanes
WEIR_FIGURES_COMMIT=def4567890 check "one of them again: the other stays, each with its commit" 0 'm["commit"] == "def4567890" and len(t) == 2
t[kind, "lanes"]["commit"] == "def4567890" and t[kind, "host"]["commit"] == "abc1234567"
last == "3 passed, 0 failed, 1 skipped"' "$ci/gpu" "$build" lanes
check "a module's step: a build of its own, under the same name" 1 'len(t) == 3 and t[module, module]["part"]
[t[module, module][what] for what in ("passed", "failed", "skipped")] == [8, 1, 1] and t[kind, "lanes"]["passed"] == 3
"FAILED host: not ok 2 - b on " + module in out and "ninja -C " + "'"$build"'" + " " not in out
"-Dbackends=cpu," + module in open("'"$dir"'/configured").read()' "$ci/gpu" "$build" "$module"
check "and beside another" 1 'len(t) == 3 and t[kind, "lanes"]["commit"] == "abc1234567"
last == "11 passed, 1 failed, 2 skipped" and out.count("== building in") == 2 and open("'"$dir"'/configured").read().count("setup") == 1' \
  "$ci/gpu" "$build" lanes "$module"
WEIR_FIGURES_COMMIT=def4567890 check "a step that finds nothing to run here: what was known of it stays" 0 'out == "" and len(t) == 3
t[kind, "lanes"]["passed"] == 3 and t[kind, "lanes"]["commit"] == "abc1234567"' "$ci/gpu-results" "$build" "$kind" <<<"$kind lanes 0 0 4 1"
check "one that takes the same build, configured for it, has rows of its own" 1 'len(t) == 16 and t[kind, "lanes"]["passed"] == 3
t["'"$beside"'", "samples"]["failed"] == 1 and "FAILED samples beside: cannot make the graph" in out
[t["'"$beside"'", "lanes"][what] for what in ("passed", "failed", "skipped")] == [3, 0, 1] and t["'"$beside"'", "open"]["failed"] == 1
t["'"$beside"'", "host"]["failed"] == 1 and out.count("== building in") == 1
"FAILED host: not ok 2 - b on '"$beside"':" in out and "does not say" in out
"configure '"$build"' -Dbackends=" + kind + ",'"$beside"'" in open("'"$dir"'/configured").read()' "$ci/gpu" "$build" "$beside"
say "nothing but the results is in their folder" "$(find "$dir/results" -type f ! -path "$result")"

# ---- trouble ----

cp "$result" "$dir/before.json"
same() { cmp "$result" "$dir/before.json"; }
GPU_TROUBLE=build check "no build, no results" 1 '"FAILED build: see above" in out and last == "0 passed, 1 failed"' "$ci/gpu" "$build" lanes
say "the file stays" "$(same)"
rm -rf "$build-$module"
GPU_TROUBLE=build check "a module's build that fails" 1 'last == "0 passed, 1 failed" and "FAILED " + module + ": cannot be built" in out' \
  "$ci/gpu" "$build" "$module"
cp "$dir/before.json" "$result"
GPU_TROUBLE=none check "no device: said, and no case the less" 0 'last == "3 passed, 0 failed, 1 skipped"
"ci/gpu-results: no " + kind + " device: it is not plugged in; the results are not written down" in out' "$ci/gpu" "$build" lanes
say "the file stays then, too" "$(same)"
echo '[1, 2]' >"$result"
check "a file of something else" 0 '"is no result of ci/gpu; remove it or name another folder" in out and last == "3 passed, 0 failed, 1 skipped"' \
  "$ci/gpu" "$build" lanes
say "it is left alone" "$([ "$(cat "$result")" = '[1, 2]' ] || cat "$result")"
rm "$result"
WEIR_FIGURES_RESULTS=/dev/null/results check "a folder that is none" 0 'm is None and "the results are not written down" in out' "$ci/gpu" "$build" lanes
check "no arguments" 2 '"ci/gpu-results FOLDER BACKEND" in out' "$ci/gpu-results"
check "a row that is none" 1 '"is no row; write BACKEND STEP PASSED" in out' "$ci/gpu-results" "$build" "$kind" <<<"$kind lanes many 0 0 1"

program build/tests/gather_test <<'EOT'
#!/bin/sh
echo $$ >"$GPU_TEST/sleeper"
exec sleep 600
EOT
setsid "$ci/gpu" "$build" lanes gather >"$dir/log" 2>&1 &
asked=$!
for ((i = 0; i < 3000; i++)); do
  [ -s "$dir/sleeper" ] && break
  sleep 0.1
done
kill -TERM -- -$asked
wait $asked
check "ended in the middle: what was done is written down" 0 'list(t) == [(kind, "lanes")]' true

# ---- what ci/ran makes of it ----

export WEIR_RAN_RESULTS=$dir/results WEIR_RAN_PAGE=$dir/ran.md
printf 'Before.\n<!-- made by ci/ran -->\n<!-- end -->\nAfter.\n' >"$dir/ran.md"
check "nothing that tells what was compiled" 1 '"run ci/matrix --record" in last and "Traceback" not in out' "$ci/ran"
python3 - "$dir/results" "$kind" "$module" <<'EOT'
import json, pathlib, sys
folder, kind, module = pathlib.Path(sys.argv[1]), *sys.argv[2:]
g100 = {"device": "Imaginary G100", "date": "2030-02-03 04:05 UTC", "commit": "0123456789"}
row = dict(passed=40, failed=0, skipped=0, seconds=3, commit="0123456789", date="2030-02-03 04:05 UTC")
tests = [dict(row, backend=kind, step="lanes"), dict(row, backend=kind, step="cache", passed=60),
         dict(row, backend=kind, step="figures", passed=1000),
         dict(row, backend=kind, step="host", passed=7, failed=2, skipped=3, commit="fedcba9876", date="2030-01-01 00:00 UTC"),
         dict(row, backend=module, step=module, passed=50, part="part of it")]
def write(name, what):
    (folder / name).write_text(json.dumps(what))
write("matrix.json", {"machine": {"tools": {"gcc": "1.2"}, "date": "2030-01-02", "commit": "00aa11bb22"}, "rows": []})
write("imaginary-g100.json", {"machine": g100, "figures": [{"name": "a", "value": 1, "command": f"x --backend={kind} y"}]})
write("imaginary-g100-tests.json", {"machine": g100, "tests": tests})
write("imaginary-g200-tests.json", {"machine": dict(g100, device="Imaginary G200"), "tests": [dict(row, backend=kind, step="lanes", commit=None)]})
EOT
check "the table" 0 'out == ""' "$ci/ran"
cell() { # cell BACKEND TEXT: what ran where
  python3 - "$dir/ran.md" "$@" <<'EOT'
import sys
row = next(line for line in open(sys.argv[1]) if line.startswith(f"| {sys.argv[2]} |")).split("|")
if row[4].strip() != sys.argv[3]:
    print(row[4])
EOT
}
say "tests by commit, then figures, machine by machine" "$(cell "$kind" 'Imaginary G100: 100 passed, 0 failed (2030-02-03, 0123456); 7 passed, **2 failed**, 3 skipped (2030-01-01, fedcba9); 1 figures (2030-02-03, 0123456); Imaginary G200: 40 passed, 0 failed (2030-02-03, unknown)')"
say "a part of a backend is said to be one" "$(cell "$module" 'Imaginary G100: part of it: 50 passed, 0 failed (2030-02-03, 0123456)')"
check "it is in the page" 0 'out == ""' "$ci/ran" --check
say "the rest of which stays" "$(sed -n '1p;$p' "$dir/ran.md" | diff - <(printf 'Before.\nAfter.\n'))"
rm "$dir/results/imaginary-g200-tests.json"
check "and no longer, once results changed" 1 '"run ci/ran" in last' "$ci/ran" --check
printf '1..%d\n' "$count"
