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
  said=$(sed -n 's/^It prints `\([^`]*\)`.*/\1/p' "$source/docs/guide/${file%.*}.md")
  [ -z "$said" ] || [ "$output" = "$said" ]
  report $? "$file: it prints what its page says, if it does" "$output"$'\n'"instead of $said"
done
report "$(grep -l '^It prints `' "$source"/docs/guide/from-*.md | wc -l | grep -qx 2; echo $?)" "two pages say what their programs print" ""
# The block that was read from byte 4,096 on was written to byte 0.
output=$(cmp -n 4096 from-cufile.bin from-cufile.bin 0 4096 2>&1)
report $? "from-cufile.c: the first block is the second one then" "$output"
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
cat >calls.cpp <<'END'
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <weir/weir.hpp>

static int failures;

static void expect(bool right, const char *what)
{
	if (!right)
		std::printf("%s\n", what);
	failures += !right;
}

struct pair {
	u64 words[2];
};
struct three {
	u64 words[3];
};

/* Elements of one kind, which lie from byte 48 on, what a writer and an array have of them. */
template <typename T> static void elements(weir::cache &cache, const weir::storage &disk, T first, T second, const char *what)
{
	weir::writer<T> writer = cache.template writer<T>(disk, 48, 10);
	weir::array<T> array = cache.template array<T>(disk, 48, 10);

	for (u64 i = 0; i < 10; i++)
		writer[i] = i % 2 ? first : second;
	writer[4] = first;
	writer[9] = writer[0];
	for (u64 i = 0; i < 10; i++) {
		T wanted = i == 4 || (i % 2 && i != 9) ? first : second, found = array[i], again = writer.get(i);

		expect(!std::memcmp(&found, &wanted, sizeof(T)) && !std::memcmp(&again, &wanted, sizeof(T)), what);
	}
	expect(writer.size() == 10 && array.size() == 10, what);
}

template <typename T> static void changes(weir::cache &cache, const weir::storage &disk, const char *what)
{
	weir::writer<T> of = cache.template writer<T>(disk);
	T high = (T)1 << (sizeof(T) * 8 - 2);

	of[1] = high + 10;
	expect(of.add(1, 5) == high + 10 && of.min(1, high + 3) == high + 15 && of.max(1, high + 8) == high + 3, what);
	expect(of.exchange(1, 2) == high + 8 && of.cas(1, 2, high + 9) == 2 && of.cas(1, 2, 11) == high + 9, what);
	expect(of[1] == high + 9, what);
	expect(of.size() == (1 << 20) / sizeof(T), what);
}

static u64 commands(const weir::storage &of)
{
	struct weir_stats stats = {};

	stats.size = sizeof(stats);
	weir::check(weir_stats(of.get(), &stats));
	return stats.commands;
}

int main()
{
	weir::context context("cpu");
	weir::storage disk(context, "virt:1M");
	weir::cache cache(context, 1 << 20);
	u64 given[5] = { 1, 2, 3, 4, 5 }, got[5] = {}, before;

	elements<unsigned char>(cache, disk, 200, 3, "elements of 1 byte");
	elements<unsigned short>(cache, disk, 60000, 3, "elements of 2 bytes");
	elements<u32>(cache, disk, 0xfedcba98u, 3, "elements of 4 bytes");
	elements<double>(cache, disk, 1.25, -3, "elements of 8 bytes");
	elements<pair>(cache, disk, pair{ { 1, 2 } }, pair{ { 3, 4 } }, "elements of 16 bytes");
	elements<three>(cache, disk, three{ { 1, 2, 3 } }, three{ { 4, 5, 6 } }, "elements of 24 bytes");
	changes<u32>(cache, disk, "changes of 4 bytes");
	changes<u64>(cache, disk, "changes of 8 bytes");
	cache.flush();
	before = commands(disk);
	cache.flush(false);
	expect(commands(disk) == before, "a flush of nothing sends nothing");
	cache.flush(true);
	expect(commands(disk) == before + 1, "a durable flush sends a Flush");
	weir::memory<u64> memory(context, 5);
	memory.copy_to_device(given);
	memory.copy_from_device(got);
	expect(!std::memcmp(given, got, sizeof(got)), "memory keeps what it is given");
	int code = 0;
	try {
		(void)cache.array<u64>(disk, 4);
	} catch (const weir::error &error) {
		code = error.code();
		expect(std::strlen(error.what()) > 10, "an error has a sentence");
	}
	expect(code == -EINVAL, "an error has its number");
	weir::cache other(context, WEIR_OPTIONS(cache, .lines = 16, .line_bytes = 512));
	weir::cache moved(std::move(other));
	expect(!other.get() && moved.get(), "what is moved is gone here");
	cache = std::move(moved);
	cache.shut();
	expect(!cache.get() && moved.get(), "an object that is shut is gone, one that was swapped is not");
	return failures != 0;
}
END
output=$(g++ -O1 -Wall -Wextra -Werror calls.cpp -o calls $(pkg-config --cflags --libs weir) 2>&1 && timeout 300 ./calls)
report $? "weir.hpp: elements of each width, changes, flushes, memory, errors, moved objects" "$output"
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
