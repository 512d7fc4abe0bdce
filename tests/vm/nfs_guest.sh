# SPDX-License-Identifier: BSD-3-Clause
# What the guests' halves of the tests of files over NFS share: Linux's own server and client, of version 4.2. Sourced by them as
# /tests/nfs.sh.

# Line LINE for the kernel's table TABLE, which a server's mountd writes otherwise: nfs_table TABLE LINE
nfs_table() {
  printf '%b\n' "$2" >/proc/net/rpc/$1/channel || give_up "the NFS server does not take: $2"
}

# The NFS server of this machine exports FOLDER, whose file system can be exported, to this machine: begin_nfsd FOLDER
begin_nfsd() {
  local until=$(($(date +%s) + 86400))
  mount -t nfsd none /proc/fs/nfsd
  echo -3 >/proc/fs/nfsd/versions # which has to be registered with rpcbind
  echo 10 >/proc/fs/nfsd/nfsv4gracetime
  echo 'tcp 2049' >/proc/fs/nfsd/portlist
  echo 2 >/proc/fs/nfsd/threads
  nfs_table auth.unix.ip "nfsd 127.0.0.1 $until here"
  # 0x2402: any port of the client, no subtree check, named by a number, which is 0; its root is root here
  nfs_table nfsd.export "here $1 $until $((0x2402)) 65534 65534 0"
  nfs_table nfsd.fh "here 1 \\\\x00000000 $until $1"
}

# Mount that at FOLDER: mount_nfs FOLDER
mount_nfs() {
  mkdir -p $1
  mount -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,sec=sys,proto=tcp,port=2049 127.0.0.1:/ $1 || give_up "mount -t nfs4"
}

# The folder can be unmounted soon afterwards.
end_nfsd() {
  local table
  echo 0 >/proc/fs/nfsd/threads
  for table in nfsd.fh nfsd.export auth.unix.ip; do
    date +%s >/proc/net/rpc/$table/flush
  done
}
