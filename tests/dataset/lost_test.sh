#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Storages and ranks that are lost while several ranks mount a dataset or read an epoch of it: every rank ends with the same sentence,
# or mpirun ends the job; nobody waits for ever, and the next job finds all as it was. Moments are counted in commands to a storage.
set -u
tool=$1 target=$2 mpirun=$3
folder=$(mktemp -d)
server=
# No process of this test stays: its target, and its job.
clean() {
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
  rm -rf "$folder"
}
trap clean EXIT
number=0
failed=0
verdict() { # RC NAME
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; sed 's/^/# /' "$folder/said"; failed=1; fi
}
options=
if "$mpirun" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then options='--allow-run-as-root --oversubscribe'; fi
# What each rank says goes to a file of its own: mpirun may drop what ranks say after the first one that fails.
cat >"$folder/apart" <<'END'
#!/bin/sh
folder=$1
shift
exec "$@" 2>"$folder/rank.${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}"
END
chmod +x "$folder/apart"
ranks() { # COUNT COMMAND...
  local count=$1 status
  shift
  rm -f "$folder"/rank.*
  timeout 900 "$mpirun" $options -n "$count" "$folder/apart" "$folder" "$@" >"$folder/out" 2>&1
  status=$?
  cat "$folder/out" "$folder"/rank.* >"$folder/said"
  return $status
}
# The job failed, before its time was over, with the same sentence COUNT times, which begins with the RANK and has PATTERN.
all_said() { # STATUS COUNT RANK PATTERN
  [ "$1" != 0 ] && [ "$1" != 124 ] && [ "$(grep -l "^weir-dataset: rank $3: .*$4" "$folder"/rank.* | wc -l)" = "$2" ] &&
    [ "$(grep -h '^weir-dataset: ' "$folder"/rank.* | sort -u | wc -l)" = 1 ]
}
starts() { ranks 1 true || ranks 1 true || ranks 1 true; }
if ! starts; then echo "1..0 # SKIP mpirun does not start a process here"; exit 0; fi
echo 1..12
a=file:$folder/a.tar b=file:$folder/b.tar
"$tool" make "$folder/a.tar" --as tar --samples 700 --bytes 100-5000 --seed 1 &&
  "$tool" make "$folder/b.tar" --as tar --samples 300 --bytes 100-5000 --seed 2 && "$tool" index "$a" "$b" >/dev/null || exit 1
small='--batch 32 --cache 1M --chunk 64K'

ranks 3 "$tool" verify "$a" "$b?fault=gone:op=read"
all_said $? 3 1 'b.tar.*no longer answers'
verdict $? "a storage is gone when it is mounted: its rank's sentence on all ranks"
ranks 3 "$tool" verify "$a?fault=gone:op=read" "$b?fault=gone:op=read"
all_said $? 3 0 'a.tar.*no longer answers'
verdict $? "two storages are gone when they are mounted: the first one's sentence on all ranks"
ranks 3 "$tool" verify "$a" "$b?fault=gone:op=read:after=20" $small
all_said $? 3 '[0-2]' "sample [0-9]*, .* of storage 1.*no longer answers"
verdict $? "a storage goes in an epoch: rank, sample and storage on all ranks"
ranks 3 "$tool" verify "$a?fault=gone:op=read:after=20" "$b?fault=gone:op=read:after=20" $small
all_said $? 3 '[0-2]' "sample [0-9]*, .* of storage [01].*no longer answers"
verdict $? "two storages go in an epoch: one sentence on all ranks"
ranks 3 "$tool" verify "$a" "$b?fault=status:code=0x281:op=read:lba=50-50" --order full --batch 32 --cache 256K --chunk 64K
all_said $? 3 '[0-2]' "of storage 1.*unrecovered read error"
verdict $? "a block of one rank's samples cannot be read: the other ranks hear of it"
cat >"$folder/one_less" <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}" = 2 ] && exec "$1" verify "$2" "$3.none"
exec "$1" verify "$2" "$3"
END
chmod +x "$folder/one_less"
ranks 3 "$folder/one_less" "$tool" "$a" "$b"
all_said $? 3 2 'b.tar.none.*does not exist'
verdict $? "one rank cannot open a storage: nobody mounts"
ranks 3 "$tool" verify "$a" "$b"
[ $? = 0 ] && grep -q '^1000 samples, .* 3 ranks: all there' "$folder/said"
verdict $? "after all that every sample is there"

# A target that is killed: its storage notes each command in a file before it carries it out, and from a certain read on answers none:
# whoever reads waits until then, however late that is.
truncate -s 4M "$folder/disk"
nqn=nqn.2026-01.org.example:lost
serve() { # KEYS
  : >"$folder/trace" >"$folder/log" # here, since the target opens it only after this goes on
  "$target" --listen tcp://127.0.0.1:0 --subsystem "$nqn=file:$folder/disk$1" >"$folder/log" 2>&1 &
  server=$!
  until uri=$(grep -o "nvmf:tcp://[^ ;]*$nqn" "$folder/log"); do kill -0 $server || { cat "$folder/log"; exit 1; }; done
}
end_target() { # SIGNAL
  kill -"$1" $server
  wait $server 2>/dev/null
  server=
}
# Until the storage has been asked COUNT times to read, or the JOB has ended.
until_read() { # COUNT JOB
  until [ "$(grep -c '^begin [0-9]* read' "$folder/trace")" -ge "$1" ] || ! kill -0 "$2" 2>/dev/null; do sleep 0.05; done
}
serve_reads() { # COUNT: with so many begun it answers no more
  serve "?fault=late:us=1000000000:op=read:after=$(($1 - 1))&trace=$folder/trace"
}
patiently='timeout_ms=600000&connect_ms=60000' # no host gives a read up, nor a target that the machine holds
"$tool" make "$folder/files" --samples 400 --bytes 10-9000 --classes 4
serve ''
"$tool" upload "$folder/files" "$uri?$patiently" || exit 1
end_target TERM
serve_reads 3
ranks 3 "$tool" verify "$uri?ctrl_loss_s=1&$patiently" &
job=$!
until_read 3 $job
end_target KILL
wait $job
all_said $? 3 0 "nvmf:tcp://.*$nqn"
verdict $? "a target is killed while it is mounted: rank and storage on all ranks"
serve_reads 100
ranks 3 "$tool" verify "$uri?ctrl_loss_s=1&$patiently" --order full --batch 8 --cache 256K --chunk 64K &
job=$!
until_read 100 $job
end_target KILL
wait $job
all_said $? 3 '[0-2]' "sample [0-9]*, of .* of storage 0, or its chunk, could not be read"
verdict $? "a target is killed in an epoch: rank, sample and storage on all ranks"

# A rank that is killed. Each notes its process; the job has to end, and all of its processes.
cat >"$folder/noted" <<'END'
#!/bin/sh
echo $$ >"$1/process.${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}"
shift
exec "$@"
END
chmod +x "$folder/noted"
kill_rank() { # READS ARGUMENT... for verify
  local reads=$1 job status
  shift
  rm -f "$folder"/process.*
  ranks 3 "$folder/noted" "$folder" "$tool" verify "$@" &
  job=$!
  until_read "$reads" $job
  kill -KILL "$(cat "$folder/process.1")" || { wait $job; return 1; }
  wait $job
  status=$?
  [ $status != 0 ] && [ $status != 124 ] || return 1
  for process in $(cat "$folder"/process.*); do
    while kill -0 "$process" 2>/dev/null; do sleep 0.05; done
  done
}
serve_reads 3
kill_rank 3 "$uri?$patiently"
verdict $? "a rank is killed while it mounts: the job ends"
end_target TERM
serve_reads 100
kill_rank 100 "$uri?$patiently" --order full --batch 8 --cache 256K --chunk 64K
verdict $? "a rank is killed in an epoch: the job ends"
end_target TERM
serve ''
ranks 3 "$tool" verify "$uri?$patiently"
[ $? = 0 ] && grep -q '^400 samples, .* 3 ranks: all there' "$folder/said"
verdict $? "the next job mounts, and every sample is there"
end_target TERM
exit $failed
