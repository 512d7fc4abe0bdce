#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of docs/guide/from-*.md are built by the commands in their first lines, and run on the cpu. Prints TAP.
# The CUDA one is compiled by nvcc, and run with the stand-in device where the build has that: its host part, <<<>>> included, is nvcc's,
# its kernel the same source compiled for the cpu. What cannot be done here is skipped, and the line says so.
# usage: guide_programs_test.sh BUILD-FOLDER [STAND-IN CUDA DEVICE]
set -u
. "$(dirname "$0")/../rig/report.sh"
build=$(cd "$1" && pwd) device=${2:+$(realpath "$2")} source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-guide-XXXXXX") || { echo "Bail out! no work directory"; exit 1; }
trap 'rm -rf "$work"' EXIT
export WEIR_BACKEND=cpu

# As pkg-config would answer for this build, installed.
cat >"$work/pkg-config" <<END
#!/bin/sh
for option; do
  case \$option in
    --cflags) printf -- '-I$source/include ' ;;
    --libs) printf -- '-Wl,-rpath,$build/runtime -L$build/runtime -lweir ' ;;
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
report "$([ "$(ls from-* | wc -l)" = 4 ]; echo $?)" "each page has its program" "$(ls)"
for file in from-*.c from-*.cpp; do
  command=$(sed -n '1s|^/\* [^:]*: \(.*\) \*/$|\1|p' "$file")
  output=$(timeout 600 sh -c "$command -Wall -Wextra -Werror" 2>&1)
  report $? "$file: built by its own command" "$command"$'\n'"$output"
  output=$(timeout 300 "./${file%.*}" 2>&1)
  report $? "$file: it runs, and finds its own result right" "$output"
done
# What <weir/weir.hpp> is given reaches the C calls, by whichever of its ways.
cat >names.cpp <<'END'
#include <cstdio>
#include <string>

#include <weir/weir.hpp>

static int written(weir::storage &&to)
{
	char block[4096] = "";

	return weir_storage_write(to.get(), 0, block, sizeof(block));
}

int main()
{
	weir::context context("cpu", WEIR_OPTIONS(context, .wave_lanes = 4));
	struct weir_storage_options options = {};
	struct weir_context_info info = {};
	std::string name = "virt:1M";

	options.size = sizeof(options);
	options.read_only = 1;
	int found[4] = { written(weir::storage(context, "virt:1M")), written(weir::storage(context, name)),
			 written(weir::storage(context, "virt:1M", &options)), written(weir::storage(context, name, &options)) };

	info.size = sizeof(info);
	weir::check(weir_context_info(context.get(), &info));
	std::printf("%d %d %d %d, waves of %u\n", found[0], found[1], found[2], found[3], info.wave_lanes);
	return found[0] == 0 && found[1] == 0 && found[2] < 0 && found[3] < 0 && info.wave_lanes == 4 ? 0 : 1;
}
END
output=$(g++ -O1 -Wall -Wextra -Werror names.cpp -o names $(pkg-config --cflags --libs weir) 2>&1 && timeout 300 ./names)
report $? "options of a context and of a storage, by a literal and by a std::string" "$output"
if command -v nvcc >/dev/null; then
  fast=$([ -z "$(nvcc --help | grep Ofast-compile)" ] || echo --Ofast-compile=max)
  output=$(timeout 900 nvcc -arch=sm_90 $fast $(pkg-config --cflags) -c from-cuda.cu -o from-cuda.o 2>&1)
  report $? "from-cuda.cu: compiled" "$output"
  command=$(sed -n '1s|^/\* [^:]*: \(.*\) \*/$|\1|p' from-cuda.cu)
  output=$(command=${command/-arch=native/-arch=sm_90 $fast}; timeout 900 sh -c "${command/from-cuda.cu/from-cuda.o}" 2>&1)
  report $? "from-cuda.cu: linked by its own command" "$command"$'\n'"$output"
else
  skip "from-cuda.cu: compiled and linked" "nvcc is not installed"
fi

# Everything above main(), as the cpu's compiler takes it. Lanes run one after the other there, so that adding is atomic.
cpu_kernel() {
  echo 'static double atomicAdd(double *to, double value) { double old = *to; *to += value; return old; }'
  sed '/^int main/,$d; s/^__global__/static/' from-cuda.cu
  echo 'static void entry(void *args) { sum((sum_args *)args); }'
  echo '__attribute__((constructor)) static void enter() { weir_cpu_register_kernel("_Z3sumP8sum_args", entry, sizeof(sum_args)); }'
}

stand_in_run() { # 65,536 floats whose sum is exact
  local root
  root=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  python3 -c 'import array; array.array("f", (i % 7 for i in range(65536))).tofile(open("values.bin", "wb"))' &&
    cpu_kernel >kernel.cpp && g++ -O2 -Wall -I"$root/include" $(pkg-config --cflags) -c kernel.cpp -o kernel.o &&
    g++ from-cuda.o kernel.o -o from-cuda -L"$root/lib64" -lcudart $(pkg-config --libs) || return 1
  WEIR_BACKEND=cuda WEIR_BACKENDS=$build/runtime LD_LIBRARY_PATH=$root/lib64 LD_PRELOAD=$device ./from-cuda file:values.bin >said || return 1
  cat said
  [ "$(cat said)" = "$(python3 -c 'print("sum %g" % sum(i % 7 for i in range(65536)))')" ]
}
if [ -n "$device" ] && [ -f from-cuda.o ]; then
  output=$(stand_in_run 2>&1)
  report $? "from-cuda.cu: it runs with the stand-in device, and its sum is right" "$output"
else
  skip "from-cuda.cu: it runs with the stand-in device" "this build has none"
fi

# The first program on a GPU, by its page's commands: where its kernel was not compiled for the device, one sentence says so.
first() { # first OBJECTS...: built with them, on the stand-in device
  cc -O2 histogram.c histogram.k.c "$@" -o histogram $(pkg-config --cflags --libs) &&
    WEIR_BACKEND= WEIR_BACKENDS=$build/runtime LD_LIBRARY_PATH=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")/lib64 \
      LD_PRELOAD=$device ./histogram values.bin cuda
}
if [ -n "$device" ] && [ -f from-cuda.o ]; then
  cp "$source"/samples/histogram/histogram* .
  output=$(first 2>&1); [ $? = 1 ] && grep -q 'no kernel "histogram" for the cuda backend is linked into this program: compile its file' <<<"$output"
  report $? "the first program without its kernel for the device: one sentence" "$output"
  output=$("$source/backends/cuda/compile" --flag=-arch=sm_90 $(pkg-config --cflags) histogram.k.c histogram.cuda.o 2>&1 &&
    first histogram.cuda.o 2>&1); [ $? = 0 ] && grep -q '65536 values, .*: as the host counts' <<<"$output"
  report $? "the first program with it, by the stand-in device" "$output"
fi
printf '1..%d\n' "$count"
