#!/bin/bash
# Boots a Debian in a container, and again whenever it reboots. Runs in its own mount namespace, which keeps its files
# as long as this runs. $1: an empty directory, $2: the Debian, $3: mounted in it as /mnt, $4: a network namespace,
# $5: its host name, then the cgroups to put it into.
set -eu
directory=$1 debian=$2 folder=$3 network=$4 hostname=$5
shift 5
for cgroup; do echo $$ >"$cgroup/cgroup.procs"; done
mount -t tmpfs -o mode=755 tmpfs "$directory"
mkdir "$directory"/{upper,work,root}
mount -t overlay -o "lowerdir=$debian,upperdir=$directory/upper,workdir=$directory/work" overlay "$directory/root"
status=133 # the status that requests a reboot
while ((status == 133)); do
  status=0
  setpriv --pdeathsig KILL systemd-nspawn --quiet --machine="${directory##*/}" --directory="$directory/root" --register=no --keep-unit \
    --network-namespace-path="/run/netns/$network" --resolv-conf=off --timezone=off --hostname="$hostname" \
    --bind-ro="$folder:/mnt" --console=read-only --boot || status=$?
done
exit "$status"
