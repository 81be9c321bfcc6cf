"""Queries a host's addresses as a one-shot resolver does: from any port, and with the first unicast response.

Writes the answer as one JSON object, or ends with status 1 where there is none within 3 s.
Usage: one-shot-query.py HOST SOURCE_ADDRESS GROUP
"""

import json
import socket
import sys

from zeroconf import DNSOutgoing, DNSQuestion
from zeroconf._protocol.incoming import DNSIncoming

A, AAAA, IN, QUERY, ID = 1, 28, 1, 0, 0x1234

host, source, group = sys.argv[1:]
query = DNSOutgoing(QUERY, multicast=False)
query.add_question(DNSQuestion(host, A, IN))
packet = ID.to_bytes(2, "big") + query.packets()[0][2:]
if ":" in group:
    asking = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    asking.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
else:
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(source))
asking.bind((source, 0))
asking.settimeout(3)
asking.sendto(packet, (group, 5353))
try:
    data, (sender, port, *_) = asking.recvfrom(9000)
except TimeoutError:
    sys.exit(1)
answer = DNSIncoming(data)
records = [{"name": r.name, "ttl": r.ttl, "unique": r.unique} for r in answer.answers]
print(json.dumps({"id": int.from_bytes(data[:2], "big"), "from": sender, "port": port,
                  "questions": [q.name for q in answer.questions], "records": records}))
