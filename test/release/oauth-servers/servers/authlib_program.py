"""An authorization server by Authlib. Argument: settings as JSON. Prints its port when it listens."""
import json
import logging
import os
import secrets
import sys
from types import SimpleNamespace

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import InvalidScopeError, grants
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, ClientMixin, TokenMixin
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask, request
from werkzeug.serving import make_server

given = json.loads(sys.argv[1])
AUTHENTICATION = ["client_secret_basic", "client_secret_post"]
LOGIN_PAGE = """<!doctype html><form method="post"><label>Name <input name="username"></label>
<label>Password <input name="password" type="password"></label><button type="submit">Allow</button></form>"""


class Client(ClientMixin):
    client_id = given["client"]["id"]

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return given["redirectUris"][0]

    def get_allowed_scope(self, scope):
        return scope

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in given["redirectUris"]

    def check_client_secret(self, client_secret):
        return secrets.compare_digest(client_secret, given["client"]["secret"])

    def check_endpoint_auth_method(self, method, endpoint):
        return method in AUTHENTICATION

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in ("authorization_code", "refresh_token")


class Code(SimpleNamespace, AuthorizationCodeMixin):
    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


class Token(SimpleNamespace, TokenMixin):
    def check_client(self, client):
        return True

    def get_scope(self):
        return self.scope

    def get_expires_in(self):
        return given["accessTokenTtl"]


def make_app():
    codes = {}
    refresh_tokens = {}

    class CodeGrant(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = AUTHENTICATION

        def save_authorization_code(self, code, request):
            codes[code] = Code(
                code=code,
                redirect_uri=request.redirect_uri,
                scope=request.scope,
                code_challenge=request.data.get("code_challenge"),
                code_challenge_method=request.data.get("code_challenge_method"),
            )

        def query_authorization_code(self, code, client):
            return codes.get(code)

        def delete_authorization_code(self, authorization_code):
            del codes[authorization_code.code]

        def authenticate_user(self, authorization_code):
            return given["user"]["name"]

    class RefreshGrant(grants.RefreshTokenGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = AUTHENTICATION
        INCLUDE_NEW_REFRESH_TOKEN = True

        def authenticate_refresh_token(self, refresh_token):
            return refresh_tokens.get(refresh_token)

        def authenticate_user(self, credential):
            return given["user"]["name"]

        def revoke_old_credential(self, credential):
            del refresh_tokens[credential.refresh_token]

    class Server(AuthorizationServer):
        def validate_requested_scope(self, scope, state=None):
            if not set((scope or "").split(" ")) <= set(given["scopes"]):
                raise InvalidScopeError(state=state)

    def save_token(token, request):
        if "refresh_token" in token:
            refresh_tokens[token["refresh_token"]] = Token(refresh_token=token["refresh_token"], scope=token["scope"])

    app = Flask(__name__)
    server = Server(app, lambda client_id: Client() if client_id == Client.client_id else None, save_token)
    random_token = lambda **_: secrets.token_urlsafe(32)
    server.register_token_generator(
        "default", BearerTokenGenerator(random_token, random_token, lambda client, grant_type: given["accessTokenTtl"])
    )
    server.register_grant(CodeGrant, [CodeChallenge(required=True)])
    server.register_grant(RefreshGrant)

    @app.get("/authorize")
    def authorization_page():
        server.get_consent_grant(end_user=None)
        return LOGIN_PAGE

    @app.post("/authorize")
    def authorize():
        user = given["user"]
        accepted = (request.form["username"], request.form["password"]) == (user["name"], user["password"])
        return server.create_authorization_response(grant_user=user["name"] if accepted else None)

    @app.post("/token")
    def token():
        return server.create_token_response()

    return app


# It would log every request, and their URLs contain codes.
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, make_app(), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
