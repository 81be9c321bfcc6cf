"""Unmodified requests-oauthlib. It does not read metadata: the endpoints are configured. The CA is in REQUESTS_CA_BUNDLE."""
import time

from client_protocol import converse, show
from oauthlib.oauth2 import BackendApplicationClient, DeviceClient, OAuth2Error
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session


def token_endpoint(params):
    return params["issuer"] + "/oauth/token"


def basic(params):
    return HTTPBasicAuth(params["client_id"], params["client_secret"])


def token_response(token):
    return {**token, "scope": " ".join(token["scope"])}


def backend(params):
    return OAuth2Session(client=BackendApplicationClient(params["client_id"], scope=params["scope"].split()))


def client_secret_basic(params):
    return token_response(backend(params).fetch_token(token_endpoint(params), auth=basic(params)))


def client_secret_post(params):
    secret = params["client_secret"]
    return token_response(backend(params).fetch_token(token_endpoint(params), include_client_id=True, client_secret=secret))


def device_flow(params):
    session = OAuth2Session(client=DeviceClient(params["client_id"], scope=params["scope"].split()))
    device = session.post(
        params["issuer"] + "/oauth/device_authorization",
        data={"scope": params["scope"]},
        auth=basic(params),
        withhold_token=True,
    ).json()
    show(device)
    interval = device.get("interval", 5)
    for _ in range(device["expires_in"] // interval):
        time.sleep(interval)
        try:
            token = session.fetch_token(token_endpoint(params), device_code=device["device_code"], auth=basic(params))
            return token_response(token)
        except OAuth2Error as error:
            if error.error == "slow_down":
                interval += 5
            elif error.error != "authorization_pending":
                raise
    raise TimeoutError("nobody logged in")


def refresh_token(params):
    old = {"access_token": "old", "refresh_token": params["refresh_token"]}
    session = OAuth2Session(params["client_id"], token=old)
    return token_response(session.refresh_token(token_endpoint(params), auth=basic(params)))


def revocation(params):
    client = BackendApplicationClient(params["client_id"])
    address = params["issuer"] + "/oauth/revoke"
    url, headers, body = client.prepare_token_revocation_request(address, params["access_token"])
    revoked = OAuth2Session(client=client).post(
        url, data=body, headers=headers, auth=basic(params), withhold_token=True
    )
    revoked.raise_for_status()


converse(client_secret_basic, client_secret_post, device_flow, refresh_token, revocation)
