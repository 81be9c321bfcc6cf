"""Authorization code grant and refresh with requests-oauthlib as it is.

Reads {base_url, frontend_url, client_id, client_secret, scope} from stdin and writes {first, second, user}, where
first and second tell what the token responses held, without the tokens.
"""
import json
import os
import sys

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # the emulator speaks plain HTTP on loopback

from requests_oauthlib import OAuth2Session  # noqa: E402

given = json.load(sys.stdin)
redirect_uri = given["base_url"] + "/external/oauth2helper/code/set/" + given["client_id"]
token_url = given["frontend_url"] + "/sso/token"
session = OAuth2Session(given["client_id"], redirect_uri=redirect_uri, scope=given["scope"])
authorize_url, _ = session.authorization_url(given["frontend_url"] + "/sso/authorize")
landed = session.get(authorize_url, allow_redirects=False, withhold_token=True).headers["Location"]
first = session.fetch_token(
    token_url, authorization_response=landed.replace("http:", "https:"), client_secret=given["client_secret"]
)
first_access, first_refresh = first["access_token"], first["refresh_token"]
second = session.refresh_token(token_url, client_id=given["client_id"], client_secret=given["client_secret"])
user = session.get(given["base_url"] + "/api/whoami").json()["user"]
json.dump(
    {
        "scope": second["scope"],
        "expires_in": second["expires_in"],
        "rotated": second["access_token"] != first_access and second["refresh_token"] != first_refresh,
        "user": user,
    },
    sys.stdout,
)
