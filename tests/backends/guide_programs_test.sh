#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of docs/guide/from-*.md are built by the commands in their first lines, and run on the cpu. Prints TAP.
# A program whose compiler is not installed, or whose device is not there, is compiled only, or skipped, and the line says so.
# usage: guide_programs_test.sh BUILD-FOLDER
set -u
build=$(cd "$1" && pwd) source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-guide-XXXXXX") || { echo "Bail out! no work directory"; exit 1; }
trap 'rm -rf "$work"' EXIT
export WEIR_BACKEND=cpu
count=0

report() { # report NAME STATUS OUTPUT
  count=$((count + 1))
  if [ "$2" = 0 ]; then
    printf 'ok %d - %s\n' "$count" "$1"
  else
    printf 'not ok %d - %s\n' "$count" "$1"
    printf '%s\n' "$3" | sed 's/^/# /'
  fi
}

# As pkg-config would answer for this build, installed.
cat >"$work/pkg-config" <<END
#!/bin/sh
for option; do
  case \$option in
    --cflags) printf -- '-I$source/include ' ;;
    --libs) printf -- '-L$build/runtime -lweir -Wl,-rpath,$build/runtime ' ;;
  esac
done
END
chmod +x "$work/pkg-config"
PATH=$work:$PATH:/usr/local/cuda/bin
cd "$work" || exit 1
python3 - "$source"/docs/guide/from-*.md <<'END'
import re, sys
for page in sys.argv[1:]:
    for block in re.findall(r"^```(?:c|cpp)\n(/\* from-.*?)^```", open(page).read(), flags=re.S | re.M):
        open(re.match(r"/\* (\S+):", block).group(1), "w").write(block)
END
report "each page has its program" "$([ "$(ls from-* | wc -l)" = 4 ]; echo $?)" "$(ls)"
for file in from-*.c from-*.cpp; do
  command=$(sed -n '1s|^/\* [^:]*: \(.*\) \*/$|\1|p' "$file")
  output=$(timeout 600 sh -c "$command -Wall -Wextra -Werror" 2>&1)
  report "$file: built by its own command" $? "$command"$'\n'"$output"
  output=$(timeout 300 "./${file%.*}" 2>&1)
  report "$file: it runs, and finds its own result right" $? "$output"
done
if command -v nvcc >/dev/null; then
  output=$(timeout 900 nvcc -arch=sm_90 $([ -z "$(nvcc --help | grep Ofast-compile)" ] || echo --Ofast-compile=max) \
    $(pkg-config --cflags) -c from-cuda.cu -o from-cuda.o 2>&1)
  report "from-cuda.cu: compiled" $? "$output"
else
  count=$((count + 1))
  echo "ok $count - from-cuda.cu: compiled # SKIP nvcc is not installed"
fi
printf '1..%d\n' "$count"
