#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One text of a kernel file means what the file means: a C preprocessor makes the same of both.
# usage: flatten_test.sh FLATTEN CC
set -u
. "$(dirname "$0")/../../rig/report.sh"
flatten=$1 cc=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

same() { # same NAME OPTIONS...: the tokens of main.c, whatever way
  local name=$1; shift
  { "$flatten" -I"$dir/include" "$@" --depfile "$dir/d" --target o "$dir/main.c" "$dir/flat.c" &&
    "$cc" -E -P -I"$dir/include" "$@" "$dir/main.c" | tr -s ' \n' '\n' >"$dir/expected" &&
    "$cc" -E -P "$dir/flat.c" | tr -s ' \n' '\n' >"$dir/found" &&
    diff "$dir/expected" "$dir/found"; } >"$dir/log" 2>&1
  report $? "$name" "$(cat "$dir/log")"
}

mkdir -p "$dir/include/part"
cat >"$dir/include/part/one.h" <<'C'
#ifndef ONE_H
#define ONE_H
int one; /* a comment
that goes on, with #include "nowhere.h" in it */
#endif
C
cat >"$dir/include/part/two.h" <<'C'
#ifndef TWO_H
#define TWO_H
#include <part/one.h>
#ifdef DEEP
#include <part/three.h>
#endif
int two;
#endif
C
printf '#ifndef THREE_H\n#define THREE_H\n#include <part/one.h>\nint three;\n#endif\n' >"$dir/include/part/three.h"
echo 'int again;' >"$dir/beside.h"
cat >"$dir/main.c" <<'C'
#ifdef FIRST
#include <part/two.h>
#endif
#include <part/three.h>
#include "beside.h"
#ifdef CHOSEN
#include CHOSEN
#else
int unchosen;
#endif
#ifdef NEVER_DEFINED
#include <not/there.h>
#endif
# include <part/two.h>
int NAME = VALUE;
C
same "headers, once each"
same "a header that comes first on a condition" -DFIRST
same "a header in a header on a condition" -DDEEP -DVALUE=3
same "a header named by a macro" '-DCHOSEN="beside.h"' -DNAME=n
grep -q "^o:.*" "$dir/d" && for file in main.c beside.h include/part/one.h include/part/two.h include/part/three.h; do
  grep -q "/$file" "$dir/d" || echo "no $file"
done >"$dir/log"
[ ! -s "$dir/log" ]; report $? "the depfile has all of them" "$(cat "$dir/log")"
sed -i 's/NEVER_DEFINED/NAME/' "$dir/main.c"
"$flatten" -I"$dir/include" -DNAME=n --depfile "$dir/d" --target o "$dir/main.c" "$dir/flat.c" && "$cc" -E "$dir/flat.c" >/dev/null 2>"$dir/log"
[ $? != 0 ] && grep -q 'main.c:13:.*not/there.h is not part' "$dir/log"; report $? "one that is missing is an error where it stands" "$(cat "$dir/log")"
"$flatten" -I"$dir/include" --never part/three.h --depfile "$dir/d" --target o "$dir/main.c" "$dir/flat.c" &&
  ! grep -q 'int three' "$dir/flat.c"; report $? "one that is never wanted" "$(cat "$dir/log")"
printf '1..%d\n' "$count"
