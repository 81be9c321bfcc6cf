"""
A slow line to this host: a TUN interface whose other end returns each IPv4 packet to 10.78.0.2 after 200 ms, with
source and destination exchanged. So a service of this host is also at 10.78.0.2, 400 ms away. Nothing answers at any
other address of 10.78.0.0/24 and fd78::/64. Writes `ready`.
"""
import fcntl
import os
import struct
import subprocess
import threading

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
tun = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack('16sH', b'slow', IFF_TUN | IFF_NO_PI))
for command in ('addr add 10.78.0.1/24 dev slow', 'addr add fd78::1/64 dev slow nodad', 'link set slow up'):
    subprocess.run(['/usr/sbin/ip', *command.split()], check=True)
print('ready', flush=True)
while True:
    packet = os.read(tun, 65535)
    source, destination = packet[12:16], packet[16:20]
    if packet[0] >> 4 == 4 and destination == bytes([10, 78, 0, 2]):
        # The checksums do not depend on the order of the addresses.
        mirrored = packet[:12] + destination + source + packet[20:]
        threading.Timer(0.2, os.write, (tun, mirrored)).start()
