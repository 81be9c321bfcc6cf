#!/bin/bash
# Builds the disk and the initrd of an emulated machine with a package installed, in its own mount namespace.
# $1: the folder for both (disk, initrd), $2: the Debian tree, $3: the package, $4: files that are copied over it, $5: the
# kernel's modules, $6: busybox
set -eu
to=$1 debian=$2 package=$3 files=$4 modules=$5 busybox=$6
mkdir "$to/tree" "$to/first"
mount -t tmpfs tmpfs "$to/tree"
mkdir "$to"/tree/{upper,work,root}
root=$to/tree/root
mount -t overlay -o "lowerdir=$debian,upperdir=$to/tree/upper,workdir=$to/tree/work" overlay "$root"
cp -- "$package" "$root/root/package.deb"
chroot "$root" dpkg --install /root/package.deb >/dev/null 2>&1
rm -- "$root/root/package.deb"
cp -R -- "$files/." "$root/"
chmod 600 "$root"/etc/latchkey/credentials/*
chroot "$root" systemctl enable console-shell.service no-clock.service >/dev/null 2>&1
mke2fs -q -t ext4 -O ^has_journal -d "$root" "$to/disk" 1200M

mkdir "$to"/first/{bin,dev,proc,disk}
cp -- "$busybox" "$to/first/bin/busybox"
: >"$to/first/load"
for name in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net virtio_blk; do
  find "$modules" -name "$name.ko" -exec cp -- {} "$to/first/" \;
  echo "insmod /$name.ko" >>"$to/first/load"
done
cat >"$to/first/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
. /load
until [ -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /disk
exec switch_root /disk /sbin/init
INIT
chmod 755 "$to/first/init"
cd "$to/first"
find . | "$busybox" cpio -o -H newc >../initrd 2>/dev/null
