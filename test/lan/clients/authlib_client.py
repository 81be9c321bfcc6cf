"""Unmodified Authlib. The CA is in REQUESTS_CA_BUNDLE."""
import time

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey
from authlib.oauth2.rfc7523 import PrivateKeyJWT, private_key_jwt_sign
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from client_protocol import converse, show


class BriefPrivateKeyJWT(PrivateKeyJWT):
    """Assertions with a lifetime of a minute: the library's own last an hour, which is more than the hub accepts."""

    alg = "ES256"

    def sign(self, auth, token_endpoint):
        return private_key_jwt_sign(auth.client_secret, auth.client_id, token_endpoint, self.alg, expires_in=60)


def discovery(params):
    metadata = AuthorizationServerMetadata(requests.get(get_well_known_url(params["issuer"], external=True)).json())
    metadata.validate()
    return metadata


def session(params, method="client_secret_basic"):
    return OAuth2Session(
        params["client_id"],
        params["client_secret"],
        scope=params["scope"],
        token_endpoint_auth_method=method,
        token_endpoint=discovery(params)["token_endpoint"],
    )


def client_secret_basic(params):
    return session(params).fetch_token(grant_type="client_credentials")


def client_secret_post(params):
    return session(params, "client_secret_post").fetch_token(grant_type="client_credentials")


def private_key_jwt(params):
    key = JsonWebKey.import_key(params["key"])
    hub = OAuth2Session(params["client_id"], key, token_endpoint_auth_method="private_key_jwt")
    hub.register_client_auth_method(BriefPrivateKeyJWT())
    return hub.fetch_token(discovery(params)["token_endpoint"], grant_type="client_credentials")


def device_flow(params):
    hub = session(params)
    device = hub.post(
        discovery(params)["device_authorization_endpoint"],
        data={"scope": params["scope"]},
        auth=hub.client_auth("client_secret_basic"),
        withhold_token=True,
    ).json()
    show(device)
    interval = device.get("interval", 5)
    for _ in range(device["expires_in"] // interval):
        time.sleep(interval)
        try:
            return hub.fetch_token(
                grant_type="urn:ietf:params:oauth:grant-type:device_code", device_code=device["device_code"]
            )
        except OAuthError as error:
            if error.error == "slow_down":
                interval += 5
            elif error.error != "authorization_pending":
                raise
    raise TimeoutError("nobody logged in")


def refresh_token(params):
    return session(params).refresh_token(discovery(params)["token_endpoint"], refresh_token=params["refresh_token"])


def revocation(params):
    response = session(params).revoke_token(
        discovery(params)["revocation_endpoint"], token=params["access_token"], token_type_hint="access_token"
    )
    response.raise_for_status()


converse(discovery, client_secret_basic, client_secret_post, private_key_jwt, device_flow, refresh_token, revocation)
