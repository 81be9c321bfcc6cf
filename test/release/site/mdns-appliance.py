"""An appliance that follows mDNS: it asks one hub of a site for a token again and again, and if that hub does not respond, looks for another hub of the same site.

It writes one JSON object per line for each token: the id of the hub that issued it, and `at` in seconds on CLOCK_MONOTONIC.
Usage: mdns-appliance.py ADDRESS CA_FILE CLIENT_ID CLIENT_SECRET
"""

import json
import sys
import time

from oauthlib.oauth2 import BackendApplicationClient
from requests.exceptions import RequestException
from requests_oauthlib import OAuth2Session
from zeroconf import IPVersion, ServiceBrowser, ServiceListener, Zeroconf

# Seconds: how long it waits for a hub to accept its connection, and to respond.
TIMEOUT = (1, 10)

address, ca_file, client_id, client_secret = sys.argv[1:]


class Hubs(ServiceListener):
    """The hubs that have answered, by id."""

    def __init__(self):
        self.found = {}

    def add_service(self, zeroconf, kind, name):
        info = zeroconf.get_service_info(kind, name)
        if info is None or not info.parsed_addresses(IPVersion.V4Only):
            return
        txt = {key.decode(): value.decode() for key, value in info.properties.items() if value is not None}
        origin = f"https://{info.parsed_addresses(IPVersion.V4Only)[0]}:{info.port}"
        self.found[txt["id"]] = {"id": txt["id"], "site": txt.get("site"), "origin": origin}

    update_service = remove_service = lambda self, zeroconf, kind, name: None


def look_up(site, without):
    """The first hub of the site to answer, other than the one that does not respond."""
    zeroconf = Zeroconf(interfaces=[address], ip_version=IPVersion.V4Only)
    hubs = Hubs()
    ServiceBrowser(zeroconf, "_latchkey._tcp.local.", hubs)
    try:
        while True:
            for hub in list(hubs.found.values()):
                if hub["site"] is not None and site in (None, hub["site"]) and hub["id"] != without:
                    return hub
            time.sleep(0.05)
    finally:
        zeroconf.close()


def fetch_token(hub):
    session = OAuth2Session(client=BackendApplicationClient(client_id=client_id))
    return session.fetch_token(
        hub["origin"] + "/oauth/token", client_id=client_id, client_secret=client_secret, verify=ca_file, timeout=TIMEOUT
    )


hub = look_up(None, None)
while True:
    try:
        token = fetch_token(hub)
        print(json.dumps({"hub": hub["id"], "token": token["access_token"], "at": time.monotonic()}), flush=True)
        time.sleep(0.2)
    except RequestException:
        hub = look_up(hub["site"], hub["id"])
