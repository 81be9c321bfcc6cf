#!/bin/bash
# Runs avahi-daemon with its own message bus, in its own mount and process namespace. $1: a directory for both. $2: the host name.
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/dbus /run/avahi-daemon
chown avahi:avahi /run/avahi-daemon
printf '[server]\nhost-name=%s\nuse-ipv4=yes\nuse-ipv6=no\nenable-dbus=yes\n' "$2" > "$1/avahi.conf"
/usr/bin/dbus-daemon --system --nopidfile --fork --address="unix:path=$1/bus"
export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$1/bus"
exec /usr/sbin/avahi-daemon --no-drop-root --no-chroot -f "$1/avahi.conf"
