#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program outside of the tree is built with what is installed, found by pkg-config alone, and runs. Prints TAP.
# usage: outside_test.sh MESON BUILD-FOLDER CC [MODULE...]    MODULE: backends of the build, besides the cpu
set -u
meson=$1 build=$2 cc=$3; shift 3
modules=" $* "
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-outside-XXXXXX") || { echo "Bail out! no work directory"; exit 1; }
trap 'rm -rf "$work"' EXIT
count=0

check() { # check NAME STATUS WORDS COMMAND...: exit status, and output with WORDS
  local name=$1 status=$2 words=$3 output rc; shift 3
  count=$((count + 1))
  output=$(timeout 2000 "$@" 2>&1); rc=$?
  if [ "$rc" = "$status" ] && grep -qE -- "$words" <<<"$output"; then
    printf 'ok %d - %s\n' "$count" "$name"
  else
    printf 'not ok %d - %s (status %s, expected %s and /%s/)\n' "$count" "$name" "$rc" "$status" "$words"
    printf '%s\n' "$output" | sed 's/^/# /'
  fi
}

if ! DESTDIR=$work/root "$meson" install -C "$build" --no-rebuild --quiet >"$work/log" 2>&1; then
  sed 's/^/# /' "$work/log"
  echo "Bail out! cannot be installed"
  exit 1
fi
pc=$(find "$work/root" -name weir.pc | head -n 1)
prefix=$work/root$(sed -n 's/^prefix=//p' "$pc")
export PKG_CONFIG_PATH=${pc%/weir.pc}
told() { pkg-config --define-variable=prefix="$prefix" "$@" weir; }
read -ra cflags < <(told --cflags)
read -ra libs < <(told --libs)
kernels=$(told --variable=kernels) lib=$(told --variable=libdir)
cp "$here"/outside/count* "$work"
cd "$work" || exit 1
export LD_LIBRARY_PATH=$lib # where a package would have told the loader
unset WEIR_BACKENDS
objects=()

make_object() { # make_object BACKEND COMMAND...: one that carries the kernel for it
  check "$1: an object of a kernel file" 0 '' "${@:2}"
  check "$1: it carries the kernel" 0 'weir_image_register' nm "count.$1.o"
  objects+=("count.$1.o")
}

compiler() { command -v "$@" | head -n 1; }
nvcc=$(PATH=$PATH:/usr/local/cuda/bin compiler nvcc)
clang=$(PATH=/opt/rocm/llvm/bin:$PATH compiler clang-19 clang-18 clang-17 clang-16 clang-15 clang)
case $modules in *' opencl '*) make_object opencl "$kernels/opencl/embed" "$cc" count.k.c count.opencl.o count.opencl.d "${cflags[@]}" ;; esac
case $modules in *' cuda '*) make_object cuda "$kernels/cuda/compile" --nvcc "$nvcc" --cc "$cc" --flag=-arch=sm_90 \
  count.k.c count.cuda.o "${cflags[@]}" ;; esac
case $modules in *' hip '*) [ -z "$clang" ] || make_object hip "$kernels/hip/compile" --target "gfx90a=$clang" --cc "$cc" \
  count.k.c count.hip.o "${cflags[@]}" ;; esac
check "the program is built" 0 '' "$cc" -O1 "${cflags[@]}" count.c count.k.c "${objects[@]}" -o count "${libs[@]}"
check "it runs on the cpu" 0 '^4656$' ./count cpu
case $modules in *' opencl '*)
  check "it runs by OpenCL" 0 '^4656$' env XDG_CACHE_HOME="$work" POCL_MAX_PTHREAD_COUNT=2 ./count opencl ;;
esac
for module in $modules; do
  check "$module: the module is found where it was installed" 0 '' test -f "$lib/weir/weir-backend-$module.so"
  [ "$module" = opencl ] || check "$module: what it says without a device, or the sum" "$([ -e /dev/nvidiactl ] || [ -e /dev/kfd ] && echo 0 || echo 1)" \
    'no (CUDA|HIP) device|libcuda.so.1|^4656$' ./count "$module"
done
printf '1..%d\n' "$count"
