"""Listens as systemd does on NOTIFY_SOCKET: prints a line of JSON for every message (sd_notify(3)), without barriers."""
import array
import json
import os
import socket
import sys

listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
print(json.dumps([]), flush=True)
while True:
    data, ancillary, _, _ = listener.recvmsg(4096, 1024)
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors = array.array("i")
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
            for descriptor in descriptors:
                os.close(descriptor)
    assignments = [line for line in data.decode().split("\n") if line]
    if assignments != ["BARRIER=1"]:
        print(json.dumps(assignments), flush=True)
