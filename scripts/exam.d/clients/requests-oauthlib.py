import os

from program import authorization_endpoint, env, redirect_uri, redirected, run, secret, token_endpoint
from requests_oauthlib import OAuth2Session

# The emulator has plain HTTP on loopback.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
client_id = env.get("OAUTH_CLIENT_ID")
session = OAuth2Session(client_id, redirect_uri=redirect_uri)


def login():
    url, _state = session.authorization_url(authorization_endpoint)
    return session.fetch_token(token_endpoint, authorization_response=redirected(url), client_secret=secret)


def refresh(tokens):
    credentials = {"client_id": client_id, **({"client_secret": secret} if secret else {})}
    return session.refresh_token(token_endpoint, refresh_token=tokens["refresh_token"], **credentials)


run(refresh, login, is_final=lambda error: getattr(error, "error", None) == "invalid_grant")
