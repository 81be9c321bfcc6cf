"""Authorization code grant and refresh with unmodified requests-oauthlib.

Reads {base_url, frontend_url, client_id, client_secret, scope} from each line of stdin, and writes a line for each: what is
known of the second token response, without the tokens, or {error}.
"""
import json
import os
import sys

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # the emulator speaks plain HTTP on loopback

from requests_oauthlib import OAuth2Session  # noqa: E402


def run(params):
    redirect_uri = params["base_url"] + "/external/oauth2helper/code/set/" + params["client_id"]
    token_url = params["frontend_url"] + "/sso/token"
    session = OAuth2Session(params["client_id"], redirect_uri=redirect_uri, scope=params["scope"])
    authorize_url, _ = session.authorization_url(params["frontend_url"] + "/sso/authorize")
    location = session.get(authorize_url, allow_redirects=False, withhold_token=True).headers["Location"]
    first = session.fetch_token(
        token_url, authorization_response=location.replace("http:", "https:"), client_secret=params["client_secret"]
    )
    first_access, first_refresh = first["access_token"], first["refresh_token"]
    second = session.refresh_token(token_url, client_id=params["client_id"], client_secret=params["client_secret"])
    return {
        "scope": second["scope"],
        "expires_in": second["expires_in"],
        "rotated": second["access_token"] != first_access and second["refresh_token"] != first_refresh,
        "user": session.get(params["base_url"] + "/api/whoami").json()["user"],
    }


for line in sys.stdin:
    try:
        result = run(json.loads(line))
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)
