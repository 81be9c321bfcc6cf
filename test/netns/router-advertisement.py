"""Sends one IPv6 Router Advertisement (RFC 4861, 4.2): arguments: the interface, and the /64 prefixes to advertise."""

import socket
import struct
import sys

interface, *prefixes = sys.argv[1:]
# Type, code, checksum (the kernel's), hop limit, flags, router lifetime in s, reachable time, retransmission timer.
packet = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
for prefix in prefixes:
    # Type, length, prefix length, on-link and autonomous, valid and preferred lifetime in s, reserved.
    packet += struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 3600, 0)
    packet += socket.inet_pton(socket.AF_INET6, prefix)
with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sender:
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    sender.sendto(packet, ("ff02::1", 0, 0, socket.if_nametoindex(interface)))
