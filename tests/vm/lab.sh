# SPDX-License-Identifier: BSD-3-Clause
# What the hosts' halves of the tests share. Sourced by run, which sets here, folder and build.

guest_seconds=1200 # a last resort: a test's virtual machine takes 4 to 60 on an idle machine
boot_seconds=300 # the machine has for its first word on the console, that of its first process; 3 to 20 are usual
kernel=${WEIR_VM_KERNEL-kernel} # which one: Debian's, or kernel-NAME of ci/vm-kernel
declare -A drives=() # of SSDs whose file is not simply read and written: options of qemu's -drive, by name

# The files of KERNEL's modules, each behind those it needs.
modules() {
  for module in vfio_iommu_type1 vfio-pci nvme; do
    modprobe -d "$folder/$1" -S "$(cat "$folder/$1/version")" --show-depends $module
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# A program, the libraries it needs, and at its own path what loads them.
add_program() {
  cp "$1" "$2/weir/"
  ldd "$1" | grep -oE '/[^ )]+' | while read -r library; do
    case $library in
      */ld-linux*)
        mkdir -p "$2$(dirname "$library")"
        cp -L "$library" "$2$library" ;;
      *) cp -L "$library" "$2/weir/lib/" ;;
    esac
  done
}

# A part of the guest's first file system: those of KERNEL, in the order of loading.
make_modules() {
  local root=$folder/modules
  rm -rf "$root"
  mkdir -p "$root/modules"
  modules "$1" | while read -r file; do
    cp "$file" "$root/modules/"
    basename "$file"
  done >"$root/modules/order"
  (cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/$1/modules.cpio"
}

# KERNEL's image as QEMU starts it fastest.
make_image() {
  local packed
  packed=$folder/$1/boot/vmlinuz-$(cat "$folder/$1/version")
  "$here/unpack_kernel" "$packed" "$folder/$1/image" || cp "$packed" "$folder/$1/image"
}

# fio, whose libraries are three times as large as all else that a guest is given.
make_fio() {
  local root=$folder/fio
  rm -rf "$root"
  mkdir -p "$root/weir/lib"
  add_program "$(command -v fio)" "$root"
  (cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/fio.cpio"
}

# busybox, the tests' guest halves and weir's programs, as the guest's first file system.
make_initramfs() {
  local root=$folder/root
  rm -rf "$root"
  mkdir -p "$root"/{bin,dev,proc,sys,tmp,tests,weir/lib}
  cp /bin/busybox "$root/bin/"
  cp "$here/init" "$root/init"
  cp "$here/guest.sh" "$here"/cases/*.guest "$root/tests/"
  for program in tests/vm/vm_{storage,shapes,steps,cycles,power,image,rings} tests/{queue,shared}_test tests/engine_log samples/bfs/weir-bfs \
    runtime/tools/weir-{perf/weir-perf,bind/weir-bind,check/weir-check,fabrics/weir-fabrics,target/weir-target,try/weir-try}; do
    add_program "$build/$program" "$root"
  done
  add_program "$(PATH=$PATH:/usr/sbin:/sbin command -v nvme)" "$root"
  (cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/initramfs"
}

# Why the test fails, and its end.
fail() {
  echo "# $*"
  exit 1
}

# An SSD's file of BYTES with pattern SEED all over: image NAME BYTES SEED
image() {
  rm -f "$work/$1"
  "$build/tests/vm/vm_image" fill "$work/$1" "$3" 0 "$2"
}

# Bytes [FIRST, FIRST + BYTES) of an SSD's file are pattern SEED: holds NAME SEED FIRST BYTES
holds() {
  "$build/tests/vm/vm_image" check "$work/$1" "$2" "$3" "$4" || fail "the file of SSD $1 does not hold what it should"
}

# They are not: what follows would find nothing wrong otherwise.
holds_not() {
  ! "$build/tests/vm/vm_image" check "$work/$1" "$2" "$3" "$4" 2>/dev/null || fail "the file of SSD $1 holds what it should not"
}

# A shared object and what it needs, where the guest's programs look for it: add_library FILE ROOT
add_library() {
  cp -L "$1" "$2/weir/lib/"
  ldd "$1" | grep -oE '/[^ )]+' | grep -v '/ld-linux' | while read -r library; do cp -nL "$library" "$2/weir/lib/"; done
}

# The first of the GPUs' backends that were built, or number $gpu_backend of them: its own module and stand-in driver, and programs of
# that build in the place of the others
gpu_stand_in() {
  local gpu=$folder/gpus root=$work/more backend program
  backend=$(cd "$gpu/backends" && ls -- */weir_pretended_*.so | sed -n "${gpu_backend-1}p")
  [ -n "$backend" ] || fail "no such backend of GPUs was built"
  backend=${backend%%/*}
  mkdir -p "$root/weir/lib"
  for program in tests/{queue,shared}_test runtime/tools/weir-{perf/weir-perf,try/weir-try} samples/{bfs/weir-bfs,ctc/weir-ctc}; do
    add_program "$gpu/$program" "$root"
  done
  add_library "$gpu/runtime/weir-backend-$backend.so" "$root"
  add_library "$gpu/backends/$backend/weir_pretended_$backend.so" "$root"
}

# Files for the guest's /data: data FILE...
data() {
  mkdir -p "$work/more/data"
  cp "$@" "$work/more/data/"
}

# The modules that FOLDER makes, for this test's kernel, into the guest's /data: build_modules FOLDER
build_modules() {
  cp -r "$1" "$work/source"
  make -C "$folder/$kernel/headers" M="$work/source" modules >"$work/make" 2>&1 || { cat "$work/make"; fail "$1 does not build"; }
  data "$work"/source/*.ko
}

# Modules of this test's kernel, with all they need, for the guest's load_more: kernel_modules NAME...
kernel_modules() {
  local name file
  mkdir -p "$work/more/data"
  for name in "$@"; do
    modprobe -d "$folder/$kernel" -S "$(cat "$folder/$kernel/version")" --show-depends "$name"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    cp "$file" "$work/more/data/"
    basename "$file"
  done >"$work/more/data/order"
  [ -s "$work/more/data/order" ] || fail "this kernel has no modules $*"
}

# The kernel that this test is for, or Debian's if that one lacks module NAME: kernel_with NAME
kernel_with() {
  modprobe -d "$folder/$kernel" -S "$(cat "$folder/$kernel/version")" --show-depends "$1" >/dev/null 2>&1 || kernel=kernel
}

# A rule for the SSD NAME, whose I/O qemu's blkdebug then looks through: faulty NAME [LINE...]
# Lines are of its configuration: [inject-error] and so on.
faulty() {
  local name=$1
  shift
  printf '%s\n' "$@" >"$work/$name.rules"
  drives[$name]="file.driver=blkdebug,file.config=$work/$name.rules,file.image.driver=file,file.image.filename=$work/$name"
}

# All that the SSD NAME is told to write goes to the file NAME.log, too: logged NAME
logged() {
  : >"$work/$1.log"
  drives[$1]="file.driver=blklogwrites,file.log-super-update-interval=1,file.file.driver=file,file.file.filename=$work/$1"
  drives[$1]+=",file.log.driver=file,file.log.filename=$work/$1.log"
}

# A disk of virtio, for which the guest loads virtio_pci and virtio_blk: virtio_disk NAME
virtio_disk() {
  devices+=(-drive "${drives[$1]-file=$work/$1},if=none,id=$1,format=raw" -device "virtio-blk-pci,drive=$1")
}

# A controller NAMED so, at PLACE, with the namespaces NAME[:BLOCK_BYTES]...: controller NAMED PLACE [NAME...]
# queue_pairs: how many it has for I/O.
controller() {
  local id=$1 place=$2 nsid=0 name block drive
  shift 2
  devices+=(-device "nvme,id=nvme$id,serial=weir-$id,$place,max_ioqpairs=${queue_pairs-16},msix_qsize=17")
  for name in "$@"; do
    nsid=$((nsid + 1))
    block=512
    [ "$name" = "${name%:*}" ] || block=${name#*:}
    name=${name%:*}
    drive=${drives[$name]-file=$work/$name}
    devices+=(-drive "$drive,if=none,id=d$id-$nsid,format=raw"
      -device "nvme-ns,drive=d$id-$nsid,bus=nvme$id,nsid=$nsid,logical_block_size=$block,physical_block_size=$block")
  done
}

# One at slot SLOT: ssd SLOT [NAME...], into the array devices
ssd() {
  controller "$1" "addr=$1${ssd_more-}" "${@:2}"
}

# One below the port PORT of switch: ssd_below PORT [NAME...]
ssd_below() {
  controller "$1" "bus=$1${ssd_more-}" "${@:2}"
}

# A switch below a root port at slot SLOT, with the downstream ports PORT...: switch SLOT PORT...
switch() {
  local slot=$1 number=$1 port
  shift
  devices+=(-device "pcie-root-port,id=root$slot,chassis=$slot,slot=$slot,addr=$slot" -device "x3130-upstream,id=up$slot,bus=root$slot")
  for port in "$@"; do
    number=$((number + 1))
    devices+=(-device "xio3130-downstream,id=$port,bus=up$slot,chassis=$number,slot=$number")
  done
}

iommu=intel-iommu,intremap=on,aw-bits=48
plain_doorbells= # not empty: SSDs offer no shadow doorbells
fio= # not empty: the guest has it
append=

# Whether the kernel has started no process and stands still: BEGIN is when the machine started. Its console is empty, or
# says that a processor has been stuck for minutes.
stands_still() {
  ! grep -qF 'guest: up' "$work/log" || return 1
  if [ -s "$work/log" ]; then grep -qE 'stuck for [1-9][0-9]{2,}s' "$work/log"; else [ $((SECONDS - $1)) -ge $boot_seconds ]; fi
}

# Whether qemu's STATUS is that of a crash: of a segmentation fault a guest's own status can be, too, and is told in its log.
crashed() {
  case $1 in
    132 | 134 | 136) true ;;
    139) ! grep -qF "guest: $name ends with" "$work/log" ;;
    *) false ;;
  esac
}

# qemu with the array devices, once, to its end. Return: its status; 125 if it was ended because it stood still before its
# first process, or qemu itself crashed before that.
start() {
  local status=0 process still= begin=$SECONDS
  # Sockets have short names: paths to them are limited.
  local sockets
  sockets=$(mktemp -d)
  : >"$work/log"
  timeout "$((guest_seconds + 5))" "$here/monitor" "$sockets/control" "$sockets/qmp" >"$work/asked" 2>&1 &
  [ -z "$plain_doorbells" ] || timeout "$guest_seconds" "$here/plain_doorbells" "$sockets/control" >"$work/plain" 2>&1 &
  timeout "$guest_seconds" qemu-system-x86_64 -accel tcg,thread=multi -machine q35 -cpu max -smp 2 -m 1G -nodefaults \
    -no-user-config -display none -no-reboot -serial "file:$work/log" -device isa-debug-exit,iobase=0xf4,iosize=4 \
    -chardev "socket,id=control,path=$sockets/control,server=on,wait=off" -serial chardev:control \
    -qmp "unix:$sockets/qmp,server=on,wait=off" \
    -kernel "$folder/$kernel/image" -initrd "$work/initramfs" \
    -append "console=ttyS0 panic=-1 oops=panic panic_on_warn=1 quiet loglevel=4 no_timer_check tsc=reliable nokaslr \
mitigations=off cryptomgr.notests intel_iommu=on weir.test=$name weir.seed=$seed $append" \
    -device "$iommu" "${devices[@]}" >"$work/qemu" 2>&1 &
  process=$!
  while kill -0 $process 2>/dev/null && ! grep -qF 'guest: up' "$work/log"; do
    ! stands_still $begin || { still=yes; kill $process; break; }
    sleep 0.2
  done
  wait $process || status=$?
  wait
  rm -rf "$sockets"
  [ -z "$still" ] || return 125
  ! crashed $status || grep -qF 'guest: up' "$work/log" || return 125
  return $status
}

# The machine with the array devices, to its end. Its log is $work/log; what the guest asked of the monitor is in
# $work/asked. Return: the guest's exit status.
# Once in some thousand starts the emulated machine stands still, or crashes, before the kernel has started a process. Nothing
# of weir has run then, so it is started again, and the test's line says so.
machine() {
  local status=0 again
  cat "$folder/initramfs" "$folder/$kernel/modules.cpio" ${fio:+"$folder/fio.cpio"} >"$work/initramfs"
  [ ! -d "$work/more" ] || (cd "$work/more"; find . | cpio -o -H newc --quiet) >>"$work/initramfs"
  start || status=$?
  for again in 1 2; do
    [ $status = 125 ] || break
    echo "started again: it stood still or crashed before its first process" | tee -a "$work/again"
    status=0
    start || status=$?
  done
  [ $status != 125 ] || fail "three machines stood still or crashed before their first process"
  [ $status != 124 ] || fail "the machine did not end within $guest_seconds s"
  ! crashed $status || fail "qemu crashed ($status)"
  [ $((status & 1)) = 1 ] && [ $status -ge 33 ] || fail "the guest did not end by itself (qemu: $status)"
  return $(((status - 33) / 2))
}

# DMA faults that the IOMMU told of.
faults() {
  grep -c 'DMAR: \[DMA' "$work/log" || true
}

# The usual: the guest ends well, and the IOMMU saw nothing wrong.
machine_ends_well() {
  machine || fail "the guest ended with $?"
  [ "$(faults)" = 0 ] || fail "the IOMMU reports $(faults) DMA faults"
}

# In the log: said TEXT
said() {
  grep -qF -- "$1" "$work/log" || fail "the guest did not say: $1"
}

# What the guest found out about faults, a JSON object per line, into the suite's results, which hold the last ones of each test.
results() {
  tr -d '\r' <"$work/log" | sed -n "s/^result: {/{\"case\": \"$name\", /p" >>"$folder/results"
}

# The kernel that test NAME wants, if that is not here.
lacks_kernel() {
  local wanted
  wanted=$(sed -n 's/^kernel=//p' "$here/cases/$1.host")
  [ -n "$wanted" ] && [ ! -f "$folder/$wanted/version" ] && echo "$wanted"
}

# Test NAME, its work in a folder of its own, which a failed one leaves.
run_test() {
  local name=$1 work=$folder/work/$1 begin=$SECONDS seed=$((RANDOM * 32768 + RANDOM + 1))
  rm -rf "$work"
  mkdir -p "$work"
  : >"$work/log"
  (set -eu; devices=(); . "$here/cases/$name.host") >"$work/said" 2>&1 # no condition of an if: -e would be ignored
  if [ $? = 0 ]; then
    echo "ok $name # $((SECONDS - begin)) s$([ ! -f "$work/again" ] || echo ", started again $(wc -l <"$work/again") times")"
    rm -rf "$work"
    return 0
  fi
  echo "not ok $name # seed $seed; $work"
  sed 's/^/# /' "$work/said" "$work/qemu" 2>/dev/null || true
  sed 's/^/# asked: /' "$work/asked" 2>/dev/null || true
  tail -n 30 "$work/log" | tr -d '\r' | sed 's/^/# log: /'
  return 1
}
