#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The check that a lab kernel's configuration is what its options ask for, and what ci/vm-kernel says to names that are none.
set -u
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

# expect NAME STATUS OUTPUT COMMAND...: all that it prints; with ... at its end OUTPUT is how that begins
expect() {
  local name=$1 status=$2 output=$3 got rc
  shift 3
  got=$(timeout 200 "$@" 2>&1)
  rc=$?
  count=$((count + 1))
  if [ $rc = "$status" ] && { [ "$got" = "$output" ] || { [ "$output" != "${output%...}" ] && [[ $got == "${output%...}"* ]]; }; }; then
    echo "ok $count - $name"
  else
    echo "not ok $count - $name"
    printf '%s\n' "status $rc: $got" | sed 's/^/# /'
  fi
}

cat >"$work/made" <<'END'
# Automatically generated file; DO NOT EDIT.
CONFIG_PCI=y
CONFIG_VFIO=m
CONFIG_NR_CPUS=8
CONFIG_LOCALVERSION="-weir-one"
# CONFIG_SLUB_TINY is not set
CONFIG_KASAN=y
CONFIG_KASAN_INLINE=y
END
asked() { # FILE LINE...
  local file=$work/$1
  shift
  printf '%s\n' "$@" >"$file"
}
check() { expect "${@:1:3}" tests/vm/kernel/check "$work/made" "${@:4}"; } # NAME STATUS OUTPUT FILE...
says() { # FILE OPTION=VALUE GOT
  echo "$work/$1 asks for $2, the configuration made has $3"
}
lacks='it off: this kernel has no such option, or what it depends on is off'

asked good '# a comment' '' CONFIG_PCI=y CONFIG_VFIO=m CONFIG_NR_CPUS=8 'CONFIG_LOCALVERSION="-weir-one"' CONFIG_SLUB_TINY=n \
  '# CONFIG_IOMMUFD is not set' CONFIG_SLOB=n
check "all of it is there" 0 '' "$work/good"
asked absent CONFIG_PCI=y CONFIG_PCI_P2PDMA=y
check "an option that is not there" 1 "$(says absent CONFIG_PCI_P2PDMA=y "$lacks")" "$work/absent"
asked built CONFIG_VFIO=y
check "a module where it was to be built in" 1 "$(says built CONFIG_VFIO=y CONFIG_VFIO=m)" "$work/built"
asked off CONFIG_KASAN=n '# CONFIG_KASAN_INLINE is not set'
check "on where it was to be off, both ways to say so" 1 "$(says off CONFIG_KASAN=n CONFIG_KASAN=y
  says off CONFIG_KASAN_INLINE=n CONFIG_KASAN_INLINE=y)" "$work/off"
asked on CONFIG_SLUB_TINY=y
check "off where it was to be on" 1 "$(says on CONFIG_SLUB_TINY=y CONFIG_SLUB_TINY=n)" "$work/on"
asked text 'CONFIG_LOCALVERSION="-weir-two"' CONFIG_NR_CPUS=80
check "another text, another number" 1 "$(says text 'CONFIG_LOCALVERSION="-weir-two"' 'CONFIG_LOCALVERSION="-weir-one"'
  says text CONFIG_NR_CPUS=80 CONFIG_NR_CPUS=8)" "$work/text"
check "the last file counts" 0 '' "$work/on" "$work/good"
check "and is the one that is named" 1 "$(says on CONFIG_SLUB_TINY=y CONFIG_SLUB_TINY=n)" "$work/good" "$work/on"
expect "no configuration" 2 "there is no configuration $work/nothing" tests/vm/kernel/check "$work/nothing" "$work/good"
expect "no such kernel" 1 'ci/vm-kernel: there are no options nonsense; there are: auth debug iommufd kcsan p2pdma' ci/vm-kernel nonsense
expect "what all have is no kernel" 1 'ci/vm-kernel: there are no options base; ...' ci/vm-kernel iommufd base
expect "a kernel that is not built" 2 'ci/vm: there is no build/vm/kernel-nonsense; ci/vm-kernel nonsense builds it' ci/vm --kernel nonsense read
expect "an option that is none" 2 'ci/vm: what is --nonsense? ...' ci/vm --nonsense
expect "--record is for all" 2 'ci/vm: --record is for all tests, not for some of them' ci/vm --record read
for file in tests/vm/kernel/*.config; do
  name=$(basename "$file" .config)
  [ "$name" = base ] || expect "$name says of which source it is" 0 '# source: linux-source-...' grep -m 1 '^# source: ' "$file"
done
echo "1..$count"
