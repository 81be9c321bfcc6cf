"""Client credentials grant with requests-oauthlib as it is.

Reads {hub, client_id, client_secret, api, authentication, scope, ca_file} from stdin and writes {expires_in, scope, user}.
"""
import json
import sys

from oauthlib.oauth2 import BackendApplicationClient
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

given = json.load(sys.stdin)
client_id, client_secret = given["client_id"], given["client_secret"]
session = OAuth2Session(client=BackendApplicationClient(client_id, scope=given["scope"].split()))
authentication = (
    {"auth": HTTPBasicAuth(client_id, client_secret)}
    if given["authentication"] == "basic"
    else {"include_client_id": True, "client_id": client_id, "client_secret": client_secret}
)
token = session.fetch_token(given["hub"] + "/oauth/token", verify=given["ca_file"], **authentication)
user = session.get(given["api"] + "/api/whoami").json()["user"]
json.dump({"expires_in": token["expires_in"], "scope": " ".join(token["scope"]), "user": user}, sys.stdout)
