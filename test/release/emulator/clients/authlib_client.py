# Unmodified Authlib: logs in with PKCE and nonce, checks the ID token, and uses each endpoint. Prints what it got as JSON.
# The server logs its user in without a page.
import json, os
import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken

issuer, api = os.environ["ISSUER"], os.environ["API"]
server = requests.get(f"{issuer}/.well-known/openid-configuration").json()
client = OAuth2Session(
    os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"], scope="openid read", redirect_uri=os.environ["REDIRECT_URI"],
    token_endpoint=server["token_endpoint"], code_challenge_method="S256")
verifier, nonce = generate_token(48), generate_token(20)
url, state = client.create_authorization_url(
    server["authorization_endpoint"], code_verifier=verifier, nonce=nonce, max_age=60)
location = requests.get(url, allow_redirects=False).headers["location"]
first = dict(client.fetch_token(authorization_response=location, state=state, code_verifier=verifier))
keys = JsonWebKey.import_key_set(requests.get(server["jwks_uri"]).json())
options = {"iss": {"value": issuer}, "aud": {"value": client.client_id}}
params = {"nonce": nonce, "client_id": client.client_id, "access_token": first["access_token"], "max_age": 60}
claims = jwt.decode(first["id_token"], keys, claims_cls=CodeIDToken, claims_options=options, claims_params=params)
claims.validate()
user = client.get(server["userinfo_endpoint"]).json()
introspected = client.introspect_token(server["introspection_endpoint"], token=first["access_token"]).json()
renewed = dict(client.refresh_token(server["token_endpoint"], refresh_token=first["refresh_token"]))
revoked = client.revoke_token(server["revocation_endpoint"], token=first["access_token"]).json()
after = client.introspect_token(server["introspection_endpoint"], token=first["access_token"]).json()
own = OAuth2Session(client.client_id, client.client_secret, scope="read").fetch_token(
    server["token_endpoint"], grant_type="client_credentials")
called = [requests.get(api, headers={"Authorization": f"Bearer {token['access_token']}"}).json() for token in (renewed, own)]
print(json.dumps({
    "user": claims["sub"], "userinfo": user["sub"], "active": [introspected["active"], after["active"]],
    "revoked": revoked, "called": called,
    "tokens": [token["access_token"] for token in (first, renewed, own)]}))
