#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Command-line tests of weir-graph: exit statuses, sentences, and that failures leave no file behind.
# usage: graph_cli_test.sh [path/to/weir-graph]    (default: $WEIR_GRAPH, or weir-graph from PATH)
# Prints TAP.
set -u

tool=${1:-${WEIR_GRAPH:-weir-graph}}
tool=$(command -v "$tool") || { echo "Bail out! there is no $tool"; exit 1; }
tool=$(realpath "$tool")
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-graph-cli-XXXXXX") || { echo "Bail out! no work directory"; exit 1; }
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

number=0
failures=0
why=

# Ends the current test with what was found wrong since the last one ($why).
finish() {
    number=$((number + 1))
    if [ -z "$why" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        printf '%s' "$why" | sed 's/^/# /'
        failures=$((failures + 1))
    fi
    why=
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

wrong() { why+="$*"$'\n'; }

# run STATUS ARGS...: the tool must exit with STATUS; its output is left in $out and $err.
run() {
    local expected=$1 status
    shift
    "$tool" "$@" >.out 2>.err
    status=$?
    out=$(<.out) err=$(<.err)
    [ "$status" = "$expected" ] || wrong "weir-graph $*: status $status instead of $expected: $err"
}

says() { [[ $err == *"$1"* ]] || wrong "expected on stderr: $1"$'\n'"found: $err"; }
prints() { [[ $out == *"$1"* ]] || wrong "expected on stdout: $1"$'\n'"found: $out"; }
one_sentence() { [ "$(printf '%s\n' "$err" | wc -l)" = 1 ] || wrong "more than one line on stderr: $err"; }
same() { cmp -s "$1" "$2" || wrong "$1 and $2 differ"; }

# files NAMES...: the visible files and any temporary ones in the work directory are exactly these.
files() {
    local found expected
    found=$(find . -type f ! -name .out ! -name .err -printf '%P\n' | sort | tr '\n' ' ')
    expected=$(printf '%s\n' "$@" | sed '/^$/d' | sort | tr '\n' ' ')
    [ "$found" = "$expected" ] || wrong "files: $found"$'\n'"instead of: $expected"
}

# refuses STATUS SENTENCE ARGS...: fails with one line that holds SENTENCE and changes no file.
refuses() {
    local status=$1 sentence=$2 before
    shift 2
    before=$(find . -type f ! -name .out ! -name .err -exec cksum {} + | sort)
    run "$status" "$@"
    says "$sentence"
    one_sentence
    [ "$before" = "$(find . -type f ! -name .out ! -name .err -exec cksum {} + | sort)" ] || wrong "files changed: $*"
}

clear_work() { find . -mindepth 1 -delete; }

# words NUMBERS...: little-endian u64 words
words() {
    local word byte
    for word; do
        for byte in 0 8 16 24 32 40 48 56; do
            printf "\\x$(printf %02x $(((word >> byte) & 255)))"
        done
    done
}

tiny_set() {
    words 4 8 0 2 2 3 >t.bel.col
    words 3 8 1 2 0 >t.bel.dst
}

echo "1..25"

# ---- help and usage ----

run 0 --help
prints "generate"
for command in generate convert info stripe; do
    run 0 "$command" --help
    prints "usage: weir-graph $command"
    prints "Exit status:"
    [ -z "$err" ] || wrong "$command --help wrote to stderr: $err"
done
finish "each command has its help"

refuses 2 "a command is missing"
refuses 2 "there is no command frobnicate" frobnicate
refuses 2 "the kind of graph is missing" generate
refuses 2 "ring is no kind of graph" generate ring --scale 4 -o a.bel
refuses 2 "--scale is missing" generate kron -o a.bel
refuses 2 "-o is missing" generate kron --scale 4
refuses 2 "--wings is no option" generate kron --wings
refuses 2 "-z is no option" generate kron -z
refuses 2 "--scale needs a value" generate kron --scale
refuses 2 '--scale does not take "4x"; it is a whole number from 1 to 32' generate kron --scale 4x -o a.bel
refuses 2 "extra is one argument too many" generate kron extra --scale 4 -o a.bel
refuses 2 '--memory does not take "7Q"' generate kron --scale 4 --memory 7Q -o a.bel
refuses 2 '--memory does not take "4K"' generate kron --scale 4 --memory 4K -o a.bel
refuses 2 '--degree does not take "0"' generate kron --scale 4 --degree 0 -o a.bel
refuses 2 "give two names" convert a.bel
refuses 2 "give the name of one graph file" info
refuses 2 "the set is missing" stripe --over a b
refuses 2 "--vertices is for .el and .wel" convert a.sg b.bel --vertices 5
files
finish "wrong usage: status 2, one sentence, no file"

for scale in 0 33 4294967297; do
    refuses 2 "it is a whole number from 1 to 32" generate kron --scale $scale -o a.bel
done
refuses 2 "the degree 2000000 is out of range" generate kron --scale 4 --degree 2000000 -o a.bel
refuses 2 "names no known graph format: use .bel" generate kron --scale 4 -o a.txt
refuses 2 "names no known graph format: use .bel" convert a.txt a.bel
refuses 2 "cannot hold weights" generate kron --scale 4 --weights -o a.el
refuses 2 "the scale is at most 31" generate kron --scale 32 -o a.sg
files
finish "values out of range are refused"

# ---- generating ----

run 0 generate kron --scale 10 --quiet -o a.bel
[ -z "$out$err" ] || wrong "--quiet was not quiet: $out$err"
run 0 generate kron --scale 10 --threads 3 --memory 1M -o b.bel
says "generating and sorting: 16384 edges"
says "merging and writing:"
[[ $err != *$'\r'* ]] || wrong "a bar was drawn without a terminal"
same a.bel.dst b.bel.dst
same a.bel.col b.bel.col
files a.bel.col a.bel.dst b.bel.col b.bel.dst
finish "generate: same bytes, quiet when asked, a line per phase otherwise"

run 0 generate kron --scale 10 --seed 1 --quiet -o s.bel
same s.bel.dst a.bel.dst # which is the usual seed
run 0 generate kron --scale 10 --degree 16 --quiet -o s.bel
same s.bel.dst a.bel.dst # and the usual degree
for option in "--seed 18446744073709551615" "--seed 4294967297" "--degree 17"; do
    # shellcheck disable=SC2086
    run 0 generate kron --scale 10 $option --quiet -o s.bel
    ! cmp -s s.bel.dst a.bel.dst || wrong "$option made the usual graph"
done
run 0 generate urand --scale 10 --degree 3 --quiet -o s.bel # 3072 edges are drawn, each is stored both ways
[ "$(stat -c %s s.bel.dst)" -le $((16 + 8 * 6144)) ] && [ "$(stat -c %s s.bel.dst)" -gt $((16 + 8 * 5632)) ] || wrong "degree 3: $(stat -c %s s.bel.dst) bytes"
run 0 generate urand --scale 10 --degree 3 --weights --quiet --output s.bel
[ -e s.bel.val ] || wrong "no weights"
rm -f s.bel.*
finish "generate: seed, degree and weights as they were asked for"

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    # The bar redraws ten times a second, so the job must last a while.
    script -qec "$tool generate kron --scale 19 --threads 1 -o c.bel" /dev/null </dev/null >.out 2>&1 || wrong "failed on a terminal"
    grep -q $'\r\033\[K.*\[#*\.*\] ' .out || wrong "no bar on a terminal: $(cat -v .out)"
    grep -q 'merging and writing: [0-9]* edges in' .out || wrong "no summary on a terminal"
    finish "a bar on a terminal"
else
    skip "a bar on a terminal" "script(1) is missing"
fi
clear_work

mkdir directory.bel.dst directory.sg
refuses 1 "directory.sg is a directory: give the name of a file" generate kron --scale 4 -o directory.sg
refuses 1 "directory.bel.dst is a directory" generate kron --scale 4 -o directory.bel
refuses 1 "missing: No such file or directory; make it first" generate kron --scale 4 -o missing/a.bel
refuses 1 "not enough disk space in .: up to 128.0 PiB are needed (64.0 PiB for the output, 64.0 PiB for temporary data)" generate kron --scale 32 --degree 1048576 --memory 64G -o a.bel
refuses 1 "give --memory" generate kron --scale 30 --degree 1 --memory 1M -o a.bel
if [ "$(id -u)" != 0 ]; then
    mkdir locked && chmod 555 locked
    refuses 1 "Permission denied" generate kron --scale 4 -o locked/a.bel
    rmdir locked
fi
files
finish "generate: places that cannot be written, too little disk, too little memory"
clear_work

(ulimit -f 64; exec "$tool" generate kron --scale 12 --quiet -o a.bel) >.out 2>.err
[ $? = 1 ] || wrong "status of a write that failed"
err=$(<.err)
says "File too large; raise the file size limit"
one_sentence
files
words 1 2 3 >a.bel.dst
(ulimit -f 64; exec "$tool" generate urand --scale 12 --quiet -o a.bel) >.out 2>.err && wrong "a failed write passed"
files a.bel.dst
words 1 2 3 >b
same a.bel.dst b
finish "a failed write leaves nothing new and what was there before"
clear_work

# In the background a shell makes its children ignore SIGINT, hence timeout(1) for the first two.
for signal in INT HUP; do
    timeout --preserve-status -s $signal 0.4 "$tool" generate kron --scale 23 --quiet -o a.bel >.out 2>.err
    status=$?
    case $signal in INT) expected=130 ;; HUP) expected=129 ;; esac
    [ $status = $expected ] || wrong "SIG$signal: status $status instead of $expected"
    files
done
"$tool" generate kron --scale 23 --quiet -o a.bel &
pid=$!
until [ -n "$(find . -name 'a.bel.dst.partial-*')" ]; do
    kill -0 $pid 2>/dev/null || { wrong "no temporary file appeared"; break; }
    sleep 0.05
done
kill -TERM $pid
wait $pid
[ $? = 143 ] || wrong "SIGTERM: another status than 143"
files
finish "signals leave nothing behind"
clear_work

# ---- converting ----

run 0 generate kron --scale 9 --weights --quiet -o w.bel
files w.bel.col w.bel.dst w.bel.val
for format in wsg wel mtx; do
    run 0 convert w.bel "x.$format" --quiet
    option=; [ $format = wel ] && option="--vertices 512"
    run 0 convert "x.$format" y.bel --quiet $option
    same w.bel.col y.bel.col
    same w.bel.dst y.bel.dst
    same w.bel.val y.bel.val
done
head -n 1 x.mtx | grep -qx '%%MatrixMarket matrix coordinate integer symmetric' || wrong "x.mtx is not symmetric"
finish "weights survive every format that holds them"

run 0 convert w.bel x.sg --quiet
says "note: the weights of w.bel are dropped"
[ "$(grep -c dropped .err)" = 1 ] || wrong "said more than once"
run 0 convert w.bel x.wsg
[[ $err != *dropped* ]] || wrong "nothing was dropped, but it says so: $err"
finish "dropped weights are said once, even when quiet"
clear_work

printf '0 1\n2 0\n' >a.el
run 0 convert a.el a.bel --vertices 9 --quiet
run 0 info a.bel --quiet
prints "vertices    9"
run 0 convert a.bel b.el --quiet
says "read it with --vertices 9 to keep them"
run 0 convert b.el b.bel --vertices 9 --quiet
same a.bel.col b.bel.col
run 0 convert a.el s.el --symmetrize --quiet
[ "$(tr '\n' , <s.el)" = "0 1,0 2,1 0,2 0," ] || wrong "symmetrized: $(cat s.el)"
finish "--vertices and --symmetrize"
clear_work

tiny_set
run 0 convert t.bel v.bel --quiet
[ -z "$out$err" ] || wrong "convert --quiet: $out$err"
words 4 8 0 2 2 3 >expected
same v.bel.col expected
words 3 99 0 1 1 1 1 3 >t.bel.col
run 0 convert t.bel u.bel --quiet
says "holds the edge count where the number of offsets belongs"
says "5 vertices follow from the file's size"
says "convert the set to one of another name to mend the header"
run 0 info u.bel --check --quiet
prints "vertices    5"
[[ $err != *"edge count"* ]] || wrong "the header was not mended"
finish "a column header with the edge count is used, said and mended"
clear_work

refuses 1 "cannot open none.bel.col: No such file or directory; check the name" convert none.bel a.sg
refuses 1 "cannot open none.sg: No such file or directory" info none.sg
mkdir d.sg
refuses 1 "d.sg is a directory, not a graph" convert d.sg a.bel
refuses 1 "d.sg is a directory, not a graph" info d.sg
mkfifo pipe.el
refuses 1 "pipe.el is not a regular file" info pipe.el --check
tiny_set
refuses 1 "directory missing: No such file or directory; make it first" convert t.bel missing/a.el
refuses 1 "t.bel has no weights and a.wel needs them: write .el instead" convert t.bel a.wel
words 4 8 0 2 >t.bel.col
refuses 1 "t.bel.col does not have the size its header says: 4 offsets of 8 bytes need 32 bytes after the header, and there are 16" convert t.bel a.sg
tiny_set
words 3 8 1 9 0 >t.bel.dst
refuses 1 "edge 1 (at byte 24) leads from vertex 0 to vertex 9, but there are only 3 vertices" convert t.bel a.sg --quiet
refuses 1 "leads from vertex 0 to vertex 9" convert t.bel a.el --symmetrize --quiet
printf '0 1\n1 2\nhello\n' >bad.el
refuses 1 'bad.el, line 3 ("hello"): expected u v' convert bad.el a.bel --quiet
printf '%%%%MatrixMarket matrix coordinate pattern general\n2 2 1\n3 1\n' >bad.mtx
refuses 1 'line 3 ("3 1"): entry (3, 1) lies outside the matrix of 2 rows and 2 columns' convert bad.mtx a.bel --quiet
finish "damaged inputs: status 1, one sentence, no file"
clear_work

run 0 generate urand --scale 11 --quiet -o g.bel
run 0 convert g.bel g.el --quiet
: >before
(ulimit -f 32; exec "$tool" convert g.el h.bel --quiet) >.out 2>.err && wrong "a failed temporary file passed"
err=$(<.err)
says "the temporary file in ."
one_sentence
(ulimit -f 32; exec "$tool" convert g.bel h.sg --quiet) >.out 2>.err && wrong "a failed output passed"
files g.bel.col g.bel.dst g.el before
finish "convert: a failed write leaves nothing behind"
clear_work

# ---- info ----

run 0 generate kron --scale 8 --quiet -o g.bel
run 0 info g.bel
prints "format      .bel"
prints "vertices    256"
prints "directed    unknown (--check finds out)"
prints "monotone    not checked (--check)"
prints "type words  .col 8, .dst 8"
run 0 info g.bel --check --quiet
prints "directed    no, each edge is stored both ways"
prints "self loops  0"
prints "repeated    0"
prints "lists       ascending"
prints "in range    yes"
[ -z "$err" ] || wrong "info --quiet: $err"
run 0 convert g.bel g.el --quiet
run 0 info g.el
prints "edges       unknown (--check counts)"
run 0 info g.el --check --quiet
prints "directed    no"
finish "info for people"

run 0 info g.bel --check --json --quiet
if command -v python3 >/dev/null; then
    python3 - .out <<'PYTHON' || wrong "the JSON is not as expected: $out"
import json, sys
info = json.load(open(sys.argv[1]))
assert info["format"] == "bel" and info["vertices"] == 256 and info["directed"] is False
assert info["degree"]["min"] == 0 and info["degree"]["max"] > info["degree"]["average"] > 10
assert info["bytes"] == 16 + 257 * 8 + 16 + info["edges"] * 8
assert info["offsets_monotone"] is True and info["neighbours_in_range"] is True and info["problem"] is None
assert info["bel"]["col_header_is_edge_count"] is False and info["bel"]["val_type"] is None
PYTHON
else
    prints '"vertices": 256'
    prints '"neighbours_in_range": true'
fi
printf '0 1\n0 1\n1 1\n3 0\n' >e.el
printf '0 1 7\n0 1 7\n1 1 9\n3 0 8\n' >e.wel
run 0 convert e.el e.bel --quiet
run 0 convert e.wel w.bel --quiet
if command -v python3 >/dev/null; then
    for name in e.el e.wel e.bel w.bel; do
        run 0 info $name --check --json --quiet
        python3 - .out $name <<'PYTHON' || wrong "the JSON of $name is not as expected: $out"
import json, os, sys
name, text, weighted = sys.argv[2], not sys.argv[2].endswith(".bel"), sys.argv[2] in ("e.wel", "w.bel")
ends = [""] if text else [".col", ".dst"] + [".val"] * weighted
assert json.load(open(sys.argv[1])) == {
    "file": name, "format": name[2:], "vertices": 4, "edges": 4, "directed": True, "weights": weighted,
    "degree": {"min": 0, "average": 1.0, "max": 2}, "bytes": sum(os.path.getsize(name + end) for end in ends), "checked": True,
    "offsets_monotone": None if text else True, "neighbours_in_range": True, "lists_ascending": None if text else True,
    "self_loops": 1, "repeated_edges": 1, "problem": None,
    "bel": None if text else {"col_type": 8, "dst_type": 8, "val_type": 4 if weighted else None, "col_header_is_edge_count": False}}
PYTHON
    done
fi
run 0 info w.bel --check --quiet
for line in "vertices    4" "edges       4 stored" "directed    yes" "weights     yes" "degree      min 0, average 1.00, max 2" "self loops  1" \
    "lists       ascending" "repeated    1" "type words  .col 8, .dst 8, .val 4"; do
    [[ $'\n'$out$'\n' == *$'\n'"$line"$'\n'* ]] || wrong "no line \"$line\" in: $out"
done
rm -f e.* w.*
run 0 info g.bel --json --quiet
prints '"offsets_monotone": null'
prints '"directed": null'
finish "info for programs"

tiny_set
words 3 8 1 9 0 >t.bel.dst
run 0 info t.bel --quiet
run 1 info t.bel --check --quiet
prints "in range    NO"
says "leads from vertex 0 to vertex 9"
run 1 info t.bel --check --quiet --json
prints '"neighbours_in_range": false'
prints 'leads from vertex 0 to vertex 9'
tiny_set
words 4 8 0 3 2 3 >t.bel.col
run 1 info t.bel --check --quiet
prints "monotone    NO"
says "below the 3 before it"
tiny_set
words 3 8 1 0 1 >t.bel.dst
run 0 info t.bel --check --quiet --json
prints '"repeated_edges": null' # in lists that do not ascend nobody has counted
finish "info --check finds damage"

if [ -w /dev/full ]; then
    "$tool" info g.bel >/dev/full 2>.err
    [ $? = 1 ] || wrong "output that could not be written passed"
    err=$(<.err)
    says "cannot write to standard output"
    finish "output that cannot be written is a failure"
else
    skip "output that cannot be written is a failure" "there is no /dev/full"
fi
clear_work

# Offsets beyond 4 GiB: the last one alone is not zero, for all edges are the last vertex's.
python3 - <<'PYTHON'
import struct
vertices = (5 << 30) // 8
with open("wide.bel.col", "wb") as file:
    file.write(struct.pack("<QQ", vertices + 1, 8))
    file.seek(16 + 8 * vertices)
    file.write(struct.pack("<Q", 2))
with open("wide.bel.dst", "wb") as file:
    file.write(struct.pack("<QQQQ", 2, 8, 7, vertices - 1))
PYTHON
run 0 info wide.bel --json
prints '"vertices": 671088640'
prints '"edges": 2'
dd if=/dev/zero of=wide.bel.col bs=1 seek=$((16 + (5 << 30))) count=8 conv=notrunc status=none
run 1 info wide.bel
says "its offsets run from 0 to 0, and with 2 edges"
finish "offsets beyond 4 GiB"
clear_work

# ---- striping ----

run 0 generate urand --scale 9 --degree 5 --quiet -o g.bel
run 0 stripe g.bel --over f0 f1 f2 --unit 4096 --quiet
[ -z "$out$err" ] || wrong "--quiet was not quiet: $out$err"
bytes=$(stat -c %s g.bel.dst)
units=$(((bytes + 4095) / 4096))
for ((unit = 0; unit < units; unit++)); do
    dd if="f$((unit % 3))" bs=4096 skip=$((unit / 3)) count=1 status=none
done >joined
cmp -s -n "$bytes" joined g.bel.dst || wrong "the units do not make the file again"
[ "$(stat -c %s joined)" = $((units * 4096)) ] || wrong "the last unit is not whole"
[ -z "$(tail -c +$((bytes + 1)) joined | tr -d '\0')" ] || wrong "the padding is not zero"
total=$(($(stat -c %s f0) + $(stat -c %s f1) + $(stat -c %s f2)))
[ $total = $((units * 4096)) ] || wrong "the files hold more than the units"
run 0 stripe --over h0 h1 --unit 64K g.bel
says "striping: "
[ "$(stat -c %s h0) $(stat -c %s h1)" = "65536 0" ] || wrong "one unit goes to the first file only"
# Behind -- all are names, whatever they begin with: of the files to write, or of the set.
run 0 stripe g.bel --quiet --unit 4096 --over -- -f0 -f1 -f2
for i in 0 1 2; do same ./-f$i f$i; done
run 0 stripe --over e0 e1 e2 --unit 4096 -- g.bel
for i in 0 1 2; do same e$i f$i; done
refuses 2 "-x.bel is one argument too many" stripe g.bel --over e0 e1 --quiet -- -x.bel
finish "stripe: every unit where it belongs"
clear_work

tiny_set
refuses 2 "cannot stripe over 1 files: name 2 to 64" stripe t.bel --over f0
refuses 2 "a unit of 700 bytes is not possible" stripe t.bel --over f0 f1 --unit 700
refuses 2 "f0 is named twice" stripe t.bel --over f0 f1 f0
refuses 2 "x.bel is one argument too many" stripe t.bel x.bel --over f0 f1
refuses 1 "cannot open none.bel.col" stripe none.bel --over f0 f1
refuses 1 "No such file or directory; make it first" stripe t.bel --over f0 missing/f1
mkdir d
refuses 1 "d is a directory" stripe t.bel --over f0 d
files t.bel.col t.bel.dst
finish "stripe refuses, and leaves no file"
clear_work

# ---- what is read is not what is written ----

tiny_set
printf '0 1\n1 2\n' >a.el
ln -s a.el link.el
ln a.el hard.el
ln t.bel.dst other.bel.dst
ln -s . here
for names in "a.el a.el" "a.el ./a.el" "a.el link.el" "link.el a.el" "a.el hard.el" "a.el here/a.el" "t.bel t.bel" "t.bel t.bel.col" \
    "t.bel here/t.bel" "t.bel other.bel"; do
    # shellcheck disable=SC2086
    refuses 1 "they are the same file: give the output another name" convert $names --quiet
done
refuses 1 "they are the same file" stripe t.bel --over f0 t.bel.dst
refuses 1 "they are the same file" stripe t.bel --over f0 other.bel.dst
refuses 1 "a.el and link.el are the same file" stripe t.bel --over a.el link.el
for names in "f0 ./f0" "f0 here/f0" "./f0 f1 here/f0"; do
    # shellcheck disable=SC2086
    refuses 1 "are the same file: each unit needs a file of its own" stripe t.bel --over $names
    [ ! -e f0 ] || wrong "f0 was written"
done
[ -L link.el ] || wrong "a refused link is gone"
run 0 convert t.bel u.bel --quiet
same u.bel.dst t.bel.dst
rm -f link.el here
finish "an output that is the input is refused before anything is written"
clear_work

# ---- claims ----

banner='%%MatrixMarket matrix coordinate pattern general'
printf '%s\n4294967296 4294967296 3\n1 2\n2 3\n3 1\n' "$banner" >claims.mtx
refuses 1 "claims.mtx has 4294967296 vertices for 3 edges at most" convert claims.mtx a.bel --quiet
refuses 1 "claims.mtx has 4294967296 vertices for 3 edges at most" convert claims.mtx a.bel --symmetrize --quiet
printf '%s\n2147483648 2147483648 3\n1 2\n2 3\n3 1\n' "$banner" >claims.mtx
refuses 1 "number the vertices without gaps, or give --force" convert claims.mtx a.sg --quiet
printf '%s\n3 3 4294967296\n1 2\n' "$banner" >entries.mtx
refuses 1 "4294967296 entries do not fit into a file of" convert entries.mtx a.bel --quiet
refuses 1 "4294967296 entries do not fit into a file of" info entries.mtx --quiet
printf '0 4294967295\n' >claims.el
refuses 1 "claims.el has 4294967296 vertices for 1 edges at most" convert claims.el a.bel --quiet
printf '%s\n1048577 3 3\n1 2\n2 3\n3 1\n' "$banner" >some.mtx
refuses 1 "some.mtx has 1048577 vertices" convert some.mtx a.bel --quiet
run 0 convert some.mtx a.bel --force --quiet
run 0 info a.bel --quiet
prints "vertices    1048577"
run 0 convert some.mtx some.el --quiet # no rows
printf '0 1048576\n' >some.el
run 0 convert some.el b.bel --vertices 2000000 --quiet
printf '%s\n1048576 3 3\n1 2\n2 3\n3 1\n' "$banner" >some.mtx
run 0 convert some.mtx a.bel --quiet
finish "a small file that claims many vertices or entries is refused before work"
clear_work

# ---- temporary space ----

printf '0 1\n1 2\n' >a.el
TMPDIR=/nowhere run 1 info a.el --check --quiet
says "cannot create a temporary file: there is no directory /nowhere"
run 0 info a.el --check --quiet
files a.el
finish "info sorts text in TMPDIR"

[ $failures = 0 ]
