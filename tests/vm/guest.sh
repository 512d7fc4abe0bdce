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
  text=$1
  shift
  if "$@" >/tmp/said 2>&1; then
    cat /tmp/said
    give_up "succeeded: $*"
  fi
  cat /tmp/said
  grep -qF -- "$text" /tmp/said || give_up "did not say \"$text\": $*"
}
