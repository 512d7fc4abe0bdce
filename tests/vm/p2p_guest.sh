# SPDX-License-Identifier: BSD-3-Clause
# What the guests' halves of the tests of the kernel module weir_p2p share: sourced by them.

p2p=/weir/vm_p2p

# PCI address of the fake GPU NUMBER, from 1.
gpu() {
  for device in /sys/bus/pci/devices/*; do
    [ "$(cat $device/vendor)" != 0x1af4 ] || [ "$(cat $device/device)" != 0x1110 ] || basename $device
  done | sed -n "${1}p"
}

# Its window's node.
node_of() {
  echo "/dev/weir_p2p/$1-2"
}

# The module, the fake GPU's driver, a window over the whole of its memory, and an SSD. "without": no such driver.
begin_p2p() {
  [ "${1-}" = without ] || insmod /data/fake_gpu.ko
  insmod /data/weir_p2p.ko
  watch_races weir_p2p
  gpu=$(gpu 1)
  ssd=$(controller 1)
  disk=$(disk_of $ssd)
  node=$(node_of $gpu)
  $p2p claim $gpu 2
  [ -c $node ] || give_up "no $node"
}

# Nobody has anything of it left, and all goes.
end_p2p() {
  $p2p whole $node
  rmmod weir_p2p
  [ ! -e /dev/weir_p2p ] || [ -z "$(ls /dev/weir_p2p)" ] || give_up "nodes are left"
}

# The kernel's own pages, which come with a driver of the GPU.
has_p2pdma() {
  [ -e /sys/bus/pci/devices/$gpu/p2pmem ]
}

# COMMAND has to succeed, and its output to hold TEXT: says TEXT COMMAND...
says() {
  local text=$1
  shift
  "$@" >/tmp/said 2>&1 || { cat /tmp/said; give_up "failed: $*"; }
  cat /tmp/said
  grep -qF -- "$text" /tmp/said || give_up "did not say \"$text\": $*"
}
