#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The README's first program: shown as it is, built by the README's own commands against an installed weir, and right. Prints TAP.
# usage: histogram_test.sh MESON BUILD-FOLDER CC
set -u
. "$(dirname "$0")/../rig/report.sh"
meson=$1 build=$2 cc=$3
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-histogram-XXXXXX") || { echo "Bail out! no work directory"; exit 1; }
trap 'rm -rf "$work"' EXIT
export WEIR_BACKEND=cpu

check() { # check NAME STATUS WORDS COMMAND...: exit status, and output with WORDS
  local name=$1 status=$2 words=$3 output rc; shift 3
  output=$(timeout 500 "$@" 2>&1); rc=$?
  [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output"
  report $? "$name" "status $rc, expected $status and /$words/"$'\n'"$output"
}

# shown PAGE FILE: the page has it, but for its licence line, as one block
cat >"$work/shown" <<'END'
import sys
page, text = (open(name).read() for name in sys.argv[1:])
licence, rest = text.split("\n", 1)
sys.exit(0 if "SPDX" in licence and f"```c\n{rest}```\n" in page else f"{sys.argv[1]} does not show {sys.argv[2]} as it is")
END

check "the README shows histogram.k.c" 0 '' python3 "$work/shown" "$source/README.md" "$source/samples/histogram/histogram.k.c"
for file in histogram.h histogram.c; do
  check "the guide shows $file" 0 '' python3 "$work/shown" "$source/docs/guide/first-program.md" "$source/samples/histogram/$file"
done

# The commands of the README's page behind the installation, word by word, in a copy of the folder.
commands=$(sed -n 's/^    \(head -c .*values.bin\|cc .*histogram.c .*\|.\/histogram values.bin cpu\)$/\1/p' "$source/README.md")
check "the README makes the data, builds and runs" 0 '^3$' wc -l <<<"$commands"

if ! DESTDIR=$work/root "$meson" install -C "$build" --no-rebuild --quiet >"$work/log" 2>&1; then
  sed 's/^/# /' "$work/log"
  echo "Bail out! cannot be installed"
  exit 1
fi
pc=$(find "$work/root" -name weir.pc | head -n 1)
# As if it had been configured with that prefix: no other change to what was installed.
sed -i "s|^prefix=|prefix=$work/root|" "$pc"
export PKG_CONFIG_PATH=${pc%/weir.pc}
mkdir "$work/bin" && ln -s "$(command -v "${cc%% *}")" "$work/bin/cc" && PATH=$work/bin:$PATH
unset LD_LIBRARY_PATH WEIR_BACKENDS
cp "$source"/samples/histogram/histogram* "$work"
cd "$work" || exit 1
check "without the file: one sentence" 0 '' sh -c "$(sed -n 2p <<<"$commands")"
check "the file's name is in it" 1 '^histogram: .*nothing\.bin' ./histogram nothing.bin
check "it is one line" 0 '^1$' sh -c './histogram nothing.bin 2>&1 | wc -l'
check "no file by that name and no operand: one line, too" 0 '^1$' sh -c './histogram 2>&1 | grep -c values.bin'
check "the README's commands: as the host counts" 0 '^16777216 values, [0-9]+ of them in bin 0: as the host counts$' \
  sh -e -c "$commands"
check "it finds the library where it was installed" 0 "$work/root" sh -c 'ldd ./histogram | grep libweir'
printf 'abcdefg' >short.bin
check "a file that ends within a value" 0 '^1 values, 0 of them in bin 0: as the host counts$' ./histogram short.bin
: >empty.bin
check "an empty file: one sentence" 1 '^histogram: .*empty' ./histogram empty.bin
printf '1..%d\n' "$count"
