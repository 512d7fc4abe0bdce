# SPDX-License-Identifier: BSD-3-Clause
# What the guests' halves of the tests of storages over a network share: Linux's own host. Sourced by them as /tests/fabrics.sh.

nqn=nqn.2026-11.org.example:disk1
hostnqn=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555

# weir-target with these arguments, until end_target; $server is its process.
begin_target() {
  : >/tmp/target
  /weir/weir-target "$@" >/tmp/target 2>&1 &
  server=$!
  until grep -q '^weir-target: serving' /tmp/target; do
    kill -0 $server 2>/dev/null || { cat /tmp/target; give_up "weir-target did not start"; }
    sleep 0.1
  done
}

end_target() {
  kill -TERM $server
  wait $server || give_up "weir-target ended with $?"
  grep '^weir-target: ended' /tmp/target || { cat /tmp/target; give_up "weir-target did not say that it ended"; }
}

# Linux connects to subsystem $nqn: connect [OPTION...]
connect() {
  /weir/nvme connect --transport=tcp --traddr=127.0.0.1 --trsvcid=4420 --nqn=$nqn --hostnqn=$hostnqn \
    --hostid=11111111-2222-3333-4444-555555555555 --nr-io-queues=2 --keep-alive-tmo=60 --reconnect-delay=1 --ctrl-loss-tmo=120 "$@" \
    >/tmp/connect 2>&1 || { cat /tmp/connect; cat /tmp/target; give_up "nvme connect"; }
}

disconnect() {
  /weir/nvme disconnect --nqn=$nqn
}

# The controller of $nqn: nvme1.
fabrics_controller() {
  local folder
  for folder in /sys/class/nvme/nvme*; do
    if [ "$(cat "$folder/subsysnqn" 2>/dev/null)" = $nqn ]; then
      basename "$folder"
      return
    fi
  done
  return 1
}

is_live() {
  [ "$(cat "/sys/class/nvme/$(fabrics_controller)/state" 2>/dev/null)" = live ]
}

# The block device of namespace NUMBER of $nqn. Its name has another number where the kernel looks for several at a time (6.12).
fabrics_disk() {
  local i folder
  for i in $(seq 240); do
    for folder in /sys/class/nvme-subsystem/*; do
      [ "$(cat "$folder/subsysnqn" 2>/dev/null)" = $nqn ] || continue
      for node in "$folder"/nvme*n[0-9]* "$folder"/nvme*/nvme*n[0-9]*; do
        case $(basename "$node") in *c*) continue ;; esac
        [ "$(cat "$node/nsid" 2>/dev/null)" = $1 ] || continue
        if [ -b "/dev/$(basename "$node")" ]; then
          echo "/dev/$(basename "$node")"
          return
        fi
      done
    done
    sleep 0.5
  done
  give_up "namespace $1 of $nqn has no block device" >&2
}

# Linux's own target serves DISK as namespace 1 of $nqn at port PORT: begin_nvmet DISK PORT
begin_nvmet() {
  local nvmet=/sys/kernel/config/nvmet
  mount -t configfs none /sys/kernel/config
  mkdir -p $nvmet/subsystems/$nqn/namespaces/1 $nvmet/ports/1
  echo 1 >$nvmet/subsystems/$nqn/attr_allow_any_host
  echo "$1" >$nvmet/subsystems/$nqn/namespaces/1/device_path
  echo 1 >$nvmet/subsystems/$nqn/namespaces/1/enable
  echo tcp >$nvmet/ports/1/addr_trtype
  echo ipv4 >$nvmet/ports/1/addr_adrfam
  echo 127.0.0.1 >$nvmet/ports/1/addr_traddr
  echo "$2" >$nvmet/ports/1/addr_trsvcid
  ln -s $nvmet/subsystems/$nqn $nvmet/ports/1/subsystems/$nqn
}

# The machine's time that was not idle, in hundredths of seconds.
busy() {
  awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat
}

# The middle one of a file's numbers.
median() {
  sort -n "$1" | sed -n "$((($(wc -l <"$1") + 1) / 2))p"
}

# fio reads 4 KiB at random from DISK for SECONDS, DEPTH at a time, into /tmp/fio: fio_reads DISK DEPTH SECONDS
fio_reads() {
  /weir/fio --name=fio --filename=$1 --size=16m --readonly --direct=1 --rw=randread --bs=4k --iodepth=$2 --ioengine=io_uring \
    --norandommap --time_based --runtime=$3 --output-format=terse --terse-version=3 >/tmp/fio || give_up "fio"
}
