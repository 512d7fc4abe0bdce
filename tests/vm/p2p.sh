# SPDX-License-Identifier: BSD-3-Clause
# What the hosts' halves of the tests of the kernel module weir_p2p share: sourced by them.

gpu_bytes=67108864

# Where KERNEL's modules are built against.
headers_of() {
  if [ -d "$folder/$1/headers" ]; then
    echo "$folder/$1/headers"
  else
    echo "/lib/modules/$(cat "$folder/$1/version")/build"
  fi
}

# The modules of FOLDER for this test's kernel, with warnings and sparse's as errors, into the guest's /data.
# Kept in the lab's folder, where one test at a time builds.
module() {
  local name built turn
  name=$(basename "$1")
  built=$folder/$kernel/built/$name
  mkdir -p "$built"
  exec {turn}>"$folder/$kernel/built/lock"
  flock "$turn"
  cp -ru "$1/." "$built/"
  make -C "$(headers_of "$kernel")" M="$built" C=1 "${@:2}" modules >"$built/log" 2>&1 ||
    { tail -n 20 "$built/log"; fail "$name does not build: $built/log"; }
  ! grep -E '(warning|error):' "$built/log" || fail "$name has warnings: $built/log"
  data "$built"/*.ko
  exec {turn}>&-
}

# Whether this test's kernel has peer-to-peer DMA of its own.
has_p2pdma() {
  grep -q '^CONFIG_PCI_P2PDMA=y' "$folder/$kernel/config" 2>/dev/null
}

# A switch with the ports NAME... below a root port at slot 4: ports NAME...
ports() {
  local number=8 port
  devices+=(-device pcie-root-port,id=root4,chassis=4,slot=4,addr=4 -device x3130-upstream,id=up4,bus=root4)
  for port in "$@"; do
    number=$((number + 1))
    devices+=(-device "xio3130-downstream,id=$port,bus=up4,chassis=$number,slot=$number")
  done
}

# A fake GPU at slot SLOT, whose memory, BAR 2, is the file NAME: gpu SLOT NAME. gpu_more: more options of the device.
gpu() {
  devices+=(-object "memory-backend-file,id=$2,size=$gpu_bytes,mem-path=$work/$2,share=on"
    -device "ivshmem-plain,id=gpu$1,memdev=$2,addr=$1${gpu_more-}")
}

# The modules and the program, for the guest.
p2p_files() {
  mkdir -p "$work/more/weir/lib" "$work/more/tests"
  add_program "$build/tests/vm/vm_p2p" "$work/more"
  add_program "$build/tests/vm/vm_file" "$work/more"
  mkdir -p "$work/more/weir/backends"
  cp "$build/tests/vm/weir-backend-fake.so" "$work/more/weir/backends/"
  cp "$here/p2p_guest.sh" "$work/more/tests/p2p.sh"
  [ -f "$folder/$kernel/modules.cpio" ] || make_modules "$kernel"
  module "$here/../../kmod-p2p"
  module "$here/fakegpu" WEIR_KMOD="$folder/$kernel/built/kmod-p2p" \
    KBUILD_EXTRA_SYMBOLS="$folder/$kernel/built/kmod-p2p/Module.symvers"
}

# Bytes [FIRST, FIRST + BYTES) of one file are those of another: same A B FIRST BYTES
same() {
  cmp -s -i "$3" -n "$4" "$work/$1" "$work/$2"
}

# The 32 bits at BYTE of a file, in decimal: word NAME BYTE
word() {
  od -An -tu4 -j "$2" -N 4 "$work/$1" | tr -d ' '
}

p2p_files
