"""requests-oauthlib as it is. The library knows no metadata: the addresses are set up in it. The CA comes by REQUESTS_CA_BUNDLE."""
import time

from conversation import converse, show
from oauthlib.oauth2 import BackendApplicationClient, DeviceClient, OAuth2Error
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session


def token_endpoint(given):
    return given["issuer"] + "/oauth/token"


def basic(given):
    return HTTPBasicAuth(given["client_id"], given["client_secret"])


def answer(token):
    return {**token, "scope": " ".join(token["scope"])}


def backend(given):
    return OAuth2Session(client=BackendApplicationClient(given["client_id"], scope=given["scope"].split()))


def client_secret_basic(given):
    return answer(backend(given).fetch_token(token_endpoint(given), auth=basic(given)))


def client_secret_post(given):
    secret = given["client_secret"]
    return answer(backend(given).fetch_token(token_endpoint(given), include_client_id=True, client_secret=secret))


def device_flow(given):
    session = OAuth2Session(client=DeviceClient(given["client_id"], scope=given["scope"].split()))
    device = session.post(
        given["issuer"] + "/oauth/device_authorization",
        data={"scope": given["scope"]},
        auth=basic(given),
        withhold_token=True,
    ).json()
    show(device)
    interval = device.get("interval", 5)
    for _ in range(device["expires_in"] // interval):
        time.sleep(interval)
        try:
            token = session.fetch_token(token_endpoint(given), device_code=device["device_code"], auth=basic(given))
            return answer(token)
        except OAuth2Error as error:
            if error.error == "slow_down":
                interval += 5
            elif error.error != "authorization_pending":
                raise
    raise TimeoutError("nobody logged in")


def refresh_token(given):
    old = {"access_token": "old", "refresh_token": given["refresh_token"]}
    session = OAuth2Session(given["client_id"], token=old)
    return answer(session.refresh_token(token_endpoint(given), auth=basic(given)))


def revocation(given):
    client = BackendApplicationClient(given["client_id"])
    address = given["issuer"] + "/oauth/revoke"
    url, headers, body = client.prepare_token_revocation_request(address, given["access_token"])
    revoked = OAuth2Session(client=client).post(
        url, data=body, headers=headers, auth=basic(given), withhold_token=True
    )
    revoked.raise_for_status()


converse(client_secret_basic, client_secret_post, device_flow, refresh_token, revocation)
