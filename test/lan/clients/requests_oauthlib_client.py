"""requests-oauthlib as it is: its argument names the capability, what it is given comes on stdin as JSON, and what the hub
said goes to stdout, as the last line of JSON. The CA comes by REQUESTS_CA_BUNDLE.
"""
import json
import sys
import time

from oauthlib.oauth2 import BackendApplicationClient, DeviceClient, OAuth2Error
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session


def say(what):
    print(json.dumps(what), flush=True)


given = json.load(sys.stdin)
# The library knows no metadata: the addresses are set up in it.
issuer = given["issuer"]
token_endpoint = issuer + "/oauth/token"
client_id, client_secret, scope = given["client_id"], given["client_secret"], given["scope"].split()
basic = HTTPBasicAuth(client_id, client_secret)


def client_secret_basic():
    session = OAuth2Session(client=BackendApplicationClient(client_id, scope=scope))
    return session.fetch_token(token_endpoint, auth=basic)


def client_secret_post():
    session = OAuth2Session(client=BackendApplicationClient(client_id, scope=scope))
    return session.fetch_token(token_endpoint, include_client_id=True, client_secret=client_secret)


def device_flow():
    session = OAuth2Session(client=DeviceClient(client_id, scope=scope))
    device = session.post(
        issuer + "/oauth/device_authorization", data={"scope": given["scope"]}, auth=basic, withhold_token=True
    ).json()
    say(device)
    interval = device.get("interval", 5)
    for _ in range(device["expires_in"] // interval):
        time.sleep(interval)
        try:
            return session.fetch_token(token_endpoint, device_code=device["device_code"], auth=basic)
        except OAuth2Error as error:
            if error.error == "slow_down":
                interval += 5
            elif error.error != "authorization_pending":
                raise
    raise SystemExit("nobody logged in")


def refresh_token():
    session = OAuth2Session(client_id, token={"access_token": "old", "refresh_token": given["refresh_token"]})
    return session.refresh_token(token_endpoint, auth=basic)


def revocation():
    client = BackendApplicationClient(client_id)
    url, headers, body = client.prepare_token_revocation_request(issuer + "/oauth/revoke", given["access_token"])
    OAuth2Session(client=client).post(url, data=body, headers=headers, auth=basic, withhold_token=True).raise_for_status()


abilities = (client_secret_basic, client_secret_post, device_flow, refresh_token, revocation)
answer = {ability.__name__: ability for ability in abilities}[sys.argv[1]]()
if answer is not None and "scope" in answer:
    answer["scope"] = " ".join(answer["scope"])
say(answer or {})
