# SPDX-License-Identifier: BSD-3-Clause
# What the guests' halves of the tests share. Sourced by init.

# Print why, and end the test.
give_up() {
  echo "guest: $*"
  exit 1
}

# PCI addresses of the NVMe controllers, in order.
controllers() {
  for class in /sys/bus/pci/devices/*/class; do
    case $(cat "$class") in 0x0108*) basename "$(dirname "$class")" ;; esac
  done
}

# PCI address of the display, which weir-check takes for a GPU that nobody knows.
display() {
  for class in /sys/bus/pci/devices/*/class; do
    case $(cat "$class") in 0x0380*) basename "$(dirname "$class")" ;; esac
  done
}

# Controller NUMBER, from 1.
controller() {
  controllers | sed -n "${1}p"
}

driver_of() {
  basename "$(readlink "/sys/bus/pci/devices/$1/driver")"
}

# Give function ADDRESS to driver NAME.
bind() {
  [ ! -e "/sys/bus/pci/devices/$1/driver" ] || echo "$1" >"/sys/bus/pci/devices/$1/driver/unbind"
  echo "$2" >"/sys/bus/pci/devices/$1/driver_override"
  echo "$1" >/sys/bus/pci/drivers_probe
  [ "$(driver_of "$1")" = "$2" ] || give_up "$1 did not go to $2"
}

# COMMAND has to fail, and its output to hold TEXT.
fails_saying() {
  local text=$1
  shift
  if "$@" >/tmp/said 2>&1; then
    cat /tmp/said
    give_up "succeeded: $*"
  fi
  cat /tmp/said
  grep -qF -- "$text" /tmp/said || give_up "did not say \"$text\": $*"
}

# Have another process, $!, hold URI open.
hold() {
  : >/tmp/held # the shell behind & empties it when it comes to run, which may be after the first look
  /weir/vm_storage hold "$1" >/tmp/held &
  until grep -q holding /tmp/held; do
    kill -0 $! || give_up "could not be held open: $1"
    sleep 0.1
  done
}

# COMMAND has to succeed within two minutes: the kernel takes some time over what a killed program leaves, its memory the last.
soon() {
  for i in $(seq 240); do
    ! "$@" || return 0
    sleep 0.5
  done
  give_up "did not succeed: $*"
}

# The block device of the first namespace of function ADDRESS, which the kernel's driver has had since a moment ago.
disk_of() {
  for i in $(seq 240); do
    for folder in /sys/bus/pci/devices/$1/nvme/nvme*/nvme*n1; do
      if [ -b "/dev/$(basename "$folder")" ]; then
        echo "/dev/$(basename "$folder")"
        return
      fi
    done
    sleep 0.5
  done
  give_up "$1 has no block device" >&2
}

# vm_steps with these arguments; what it says is in /tmp/steps, too.
steps() {
  if ! /weir/vm_steps "$@" >/tmp/steps 2>&1; then
    cat /tmp/steps
    give_up "vm_steps"
  fi
  cat /tmp/steps
}

# Of the last STEP: step STEP status|ms|text
step() {
  local part
  case $2 in status) part=1 ;; ms) part=2 ;; text) part=3 ;; esac
  sed -n "s/^$1: status \([0-9a-fx]*\) in \([0-9]*\) ms: \(.*\)$/\\$part/p" /tmp/steps | tail -n 1
}

# How long the last reopen's closing took, in seconds.
closed() {
  local ms
  ms=$(sed -n 's/^closed in \([0-9]*\) ms$/\1/p' /tmp/steps | tail -n 1)
  [ -n "$ms" ] || give_up "nothing was closed"
  echo "$((ms / 1000)).$((ms % 1000 / 100)) s"
}

# STEP ended with a status whose words hold TEXT.
ended() {
  step "$1" text | grep -qF -- "$2" || give_up "$1 did not end with \"$2\" but with: $(step "$1" text)"
}

# What came of a fault, for the suite's results: result FAULT DETECTED_MS REPORTED RECOVERED LOST
result() {
  echo "result: {\"fault\": \"$1\", \"detected_ms\": $2, \"reported\": \"$3\", \"recovered\": \"$4\", \"lost\": \"$5\"}"
}

# What the host's half has put there with kernel_modules, but for what is loaded already.
load_more() {
  local module
  while read -r module; do
    [ -d "/sys/module/$(basename $module .ko | tr - _)" ] || insmod "/data/$module" || give_up "$module"
  done </data/order
}

# A kernel that watches for races reports those that a function of MODULE has a part in, and no others: watch_races MODULE
watch_races() {
  local name
  mount -t debugfs none /sys/kernel/debug 2>/dev/null || true
  [ -e /sys/kernel/debug/kcsan ] || return 0
  awk -v module="[$1]" '$4 == module && $2 ~ /^[tT]$/ && $3 !~ /[.]/ { print $3 }' /proc/kallsyms | while read -r name; do
    echo "!$1:$name" >/sys/kernel/debug/kcsan || true
  done
  echo whitelist >/sys/kernel/debug/kcsan
  echo on >/sys/kernel/debug/kcsan
  grep -c "$1" /sys/kernel/debug/kcsan >/tmp/watched || give_up "no function of $1 is watched"
}
