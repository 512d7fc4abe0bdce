# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# An array of real processes, to be sourced: engines in front of files, a daemon, clients that write and verify (volume_load.c).
# Wants: $target $volumed $volume $load, the programs; $work, a folder of its own. $engine_prefix[i]: words before engine i's command.
export XDG_CONFIG_HOME=$work WEIR_VOLUMED=$work/socket
nqn=nqn.2026-11.org.example:engine
engine_pid=() engine_address=() engine_file=() engine_prefix=() engine_arguments=()
declare -A client_pid
daemon_pid=
daemon_prefix=
daemon_arguments=

# What was started here ends here, by its process number; one that is suspended, too.
array_end() {
  local pid
  for pid in "${engine_pid[@]}" "${client_pid[@]}" $daemon_pid; do kill -KILL "$pid" 2>/dev/null || :; done
  wait 2>/dev/null || :
}

# Whether a child of this shell has not ended yet.
runs() { [ -n "${1-}" ] && [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1)" != Z ] && [ -e "/proc/$1" ]; }

# wait_for FILE WORDS PROCESS: until it says so
wait_for() {
  until grep -q "$2" "$1" 2>/dev/null; do
    runs "$3" || { sed 's/^/# /' "$1"; return 1; }
    sleep 0.05
  done
}

# engine NUMBER [HOST]: start it, at the address that it had before
engine() {
  local host=${2-127.0.0.1} log=$work/engine$1.log
  : "${engine_file[$1]:=$work/engine$1.img}"
  [ -e "${engine_file[$1]}" ] || truncate -s "${engine_bytes-64M}" "${engine_file[$1]}"
  : >"$log"
  # shellcheck disable=SC2086
  ${engine_prefix[$1]-} "$target" --engine --listen "tcp://${engine_address[$1]:-$host:0}" \
    --subsystem "$nqn$1=file:${engine_file[$1]}" >"$log" 2>&1 &
  engine_pid[$1]=$!
  wait_for "$log" '^weir-target: serving' "${engine_pid[$1]}" || return 1
  engine_address[$1]=$(sed -n 's,.*nvmf:tcp://\([^/]*\)/.*,\1,p' "$log" | head -n 1)
  engine_arguments[$1]="tcp://${engine_address[$1]}/$nqn$1,domain=$1"
}

# end_engine NUMBER [SIGNAL]
end_engine() {
  kill "-${2-KILL}" "${engine_pid[$1]}"
  wait "${engine_pid[$1]}" 2>/dev/null || :
  engine_pid[$1]=
}

# start_daemon [ENGINE...]: with these, or with all
start_daemon() {
  local i words=()
  [ $# != 0 ] || set -- "${!engine_arguments[@]}"
  for i; do words+=(--engine "${engine_arguments[$i]}"); done
  : >"$work/daemon.log"
  # shellcheck disable=SC2086
  $daemon_prefix "$volumed" "${words[@]}" --socket "$WEIR_VOLUMED" --lease-seconds "${lease_seconds-30}" ${daemon_arguments-} >"$work/daemon.log" 2>&1 &
  daemon_pid=$!
  wait_for "$work/daemon.log" '^weir-volumed: serving' $daemon_pid
}

end_daemon() { # end_daemon [SIGNAL]
  kill "-${1-KILL}" "$daemon_pid"
  wait "$daemon_pid" 2>/dev/null || :
  daemon_pid=
}

tool() { timeout 120 "$volume" "$@"; }

new_volume() { # new_volume NAME SIZE REPLICAS
  { tool create "$1" "$2" --replicas "$3" && tool share "$1"; } >"$work/created" 2>&1 || { cat "$work/created"; return 1; }
}

status_of() { # status_of WORD: a number, or true or false
  tool --json status 2>/dev/null | sed -n "s/.*\"$1\": *\\([a-z0-9]*\\).*/\\1/p" | head -n 1
}

# until_status WORD LEAST: as long as the daemon runs
until_status() {
  local value
  while runs "$daemon_pid"; do
    value=$(status_of "$1")
    [ -n "$value" ] && [ "$value" -ge "$2" ] && return 0
    sleep 0.1
  done
  return 1
}

# until_whole: all engines that run are in, and all blocks are where they belong, once each was asked again
until_whole() {
  local i up=0 from
  for i in "${!engine_pid[@]}"; do runs "${engine_pid[$i]}" && up=$((up + 1)); done
  from=$(status_of heartbeats)
  until_status heartbeats $((from + 2 * up + 1))
  while runs "$daemon_pid"; do
    tool --json status >"$work/status" 2>/dev/null && grep -q '"rebuilding": false' "$work/status" &&
      grep -q '"task": "none"' "$work/status" && grep -q "\"engines_in\": $up,*\$" "$work/status" && return 0
    sleep 0.1
  done
  return 1
}

# client NAME [KEY=VALUE...]: on volume NAME, with what it, or one before it, knows of it
client() {
  local name=$1; shift
  : >"$work/$name.log" # an earlier one has begun, too
  "$load" run "$name" "$work/$name.state" "$@" >"$work/$name.log" 2>&1 &
  client_pid[$name]=$!
  wait_for "$work/$name.log" ': begins$' "${client_pid[$name]}"
}

count_of() { # count_of NAME WORD: of client NAME's counts
  "$load" show "$work/$1.state" | sed -n "s/.*\\b$2 \\([0-9]*\\).*/\\1/p"
}

# progress WRITES NAME...: until each client has so many more acknowledged; fails once it has ended
progress() {
  local more=$1 name from; shift
  for name; do
    from=$(count_of "$name" acknowledged)
    until [ "$(count_of "$name" acknowledged)" -ge $((from + more)) ]; do
      runs "${client_pid[$name]}" || return 1
      sleep 0.1
    done
  done
}

# is_clean NAME...: no error and nothing wrong so far
is_clean() {
  local name
  for name; do "$load" show "$work/$name.state" | grep -q ' wrong 0 write-errors 0 read-errors 0 ' || return 1; done
}

# end_client NAME: it verifies all blocks; its exit status
end_client() {
  kill -TERM "${client_pid[$1]}" 2>/dev/null
  wait "${client_pid[$1]}"
  set -- "$1" $?
  client_pid[$1]=
  return "$2"
}
