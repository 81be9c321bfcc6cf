#!/bin/bash
# Boots a Debian in a container, again whenever it reboots; for a mount namespace of its own, where what it writes is kept
# as long as this runs. $1: an empty directory, $2: the Debian, $3: what it sees as /mnt, $4: a network namespace, then the cgroups to put it into.
set -eu
directory=$1 debian=$2 folder=$3 network=$4
shift 4
for cgroup; do echo $$ >"$cgroup/cgroup.procs"; done
mount -t tmpfs -o mode=755 tmpfs "$directory"
mkdir "$directory"/{upper,work,root}
mount -t overlay -o "lowerdir=$debian,upperdir=$directory/upper,workdir=$directory/work" overlay "$directory/root"
status=133 # says that it reboots
while ((status == 133)); do
  status=0
  setpriv --pdeathsig KILL systemd-nspawn --quiet --machine="${directory##*/}" --directory="$directory/root" --register=no --keep-unit \
    --network-namespace-path="/run/netns/$network" --resolv-conf=off --timezone=off --hostname=hub \
    --bind-ro="$folder:/mnt" --console=read-only --boot || status=$?
done
exit "$status"
