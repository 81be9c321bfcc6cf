"""Watches a service type with python-zeroconf and writes one JSON object per line: each service that was found, with its resolved records, and each that was removed.

`at` is seconds on CLOCK_MONOTONIC, which all processes of the machine share.
Usage: zeroconf-observer.py TYPE INTERFACE_ADDRESS
"""

import json
import sys
import time

from zeroconf import IPVersion, ServiceBrowser, ServiceListener, Zeroconf


def say(**event):
    print(json.dumps({**event, "at": time.monotonic()}), flush=True)


class Observer(ServiceListener):
    def add_service(self, zc, type_, name):
        info = zc.get_service_info(type_, name, timeout=3000)
        if info is None:
            say(event="unresolved", name=name)
            return
        txt = {key.decode(): (value or b"").decode() for key, value in info.properties.items()}
        addresses = info.parsed_addresses(IPVersion.All)
        say(event="up", name=name, host=info.server, addresses=addresses, port=info.port, txt=txt)

    def update_service(self, zc, type_, name):
        self.add_service(zc, type_, name)

    def remove_service(self, zc, type_, name):
        say(event="down", name=name)


kind, address = sys.argv[1:]
version = IPVersion.V6Only if ":" in address else IPVersion.V4Only
zeroconf = Zeroconf(interfaces=[address], ip_version=version)
say(event="watching")
browser = ServiceBrowser(zeroconf, kind, Observer())
try:
    while True:
        time.sleep(60)
except KeyboardInterrupt:
    pass
