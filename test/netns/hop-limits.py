"""Prints "FAMILY HOP_LIMIT" of each mDNS packet that eth0 receives from another host: hop-limits.py"""

import selectors
import socket
import struct

GROUP = {socket.AF_INET: "224.0.0.251", socket.AF_INET6: "ff02::fb"}
# From linux/in.h: Python has no name for it.
IP_RECVTTL = 12
INDEX = socket.if_nametoindex("eth0")


def listen(family):
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    group = socket.inet_pton(family, GROUP[family])
    if family == socket.AF_INET:
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + struct.pack("=4si", bytes(4), INDEX))
        receiver.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    else:
        receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group + struct.pack("=I", INDEX))
        receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    receiver.bind(("", 5353))
    return receiver


selector = selectors.DefaultSelector()
for family in GROUP:
    selector.register(listen(family), selectors.EVENT_READ)
print("listening", flush=True)
while True:
    for key, _ in selector.select():
        _, ancillary, _, _ = key.fileobj.recvmsg(9000, 64)
        for _, _, limit in ancillary:
            print(key.fileobj.family.name, struct.unpack("=i", limit)[0], flush=True)
