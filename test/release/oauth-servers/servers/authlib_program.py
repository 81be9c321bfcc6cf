"""Authorization servers by Authlib whose responses have the quirks of real clouds. Argument: settings as JSON, with a list
of quirks for each server. Prints their ports when they listen. The control path returns the last token response, and
revokes all refresh tokens."""
import json
import logging
import os
import secrets
import sys
import threading
from types import SimpleNamespace

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import InvalidScopeError, grants
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, ClientMixin, TokenMixin
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask, Response, request
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


def make_app(quirks):
    separator = "," if "comma-scopes" in quirks else " "
    codes = {}
    refresh_tokens = {}
    last_response = {}

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
        INCLUDE_NEW_REFRESH_TOKEN = "no-new-refresh-token" not in quirks

        def authenticate_refresh_token(self, refresh_token):
            return refresh_tokens.get(refresh_token)

        def authenticate_user(self, credential):
            return given["user"]["name"]

        def revoke_old_credential(self, credential):
            if self.INCLUDE_NEW_REFRESH_TOKEN:
                del refresh_tokens[credential.refresh_token]

    class Server(AuthorizationServer):
        def validate_requested_scope(self, scope, state=None):
            if not set((scope or "").split(separator)) <= set(given["scopes"]):
                raise InvalidScopeError(state=state)

        def handle_response(self, status_code, payload, headers):
            if isinstance(payload, dict):
                return with_quirks(status_code, payload, dict(headers))
            return super().handle_response(status_code, payload, headers)

    def with_quirks(status, body, headers):
        error = body.get("error")
        if error is None:
            if "string-expires-in" in quirks:
                body = {**body, "expires_in": str(body["expires_in"])}
            if "no-token-type" in quirks:
                body = {name: value for name, value in body.items() if name != "token_type"}
            if "narrowed-scope" in quirks and request.form.get("grant_type") == "refresh_token":
                body = {**body, "scope": body["scope"].split(separator)[0]}
        if error == "invalid_grant" and "invalid-grant-401" in quirks:
            status = 401
        if error is not None and "html-errors" in quirks:
            return Response("<!doctype html><h1>Sorry</h1>", status=status, content_type="text/html")
        if "envelope" in quirks:
            body = {"status": 0, "body": body} if error is None else {"status": status, "body": {}, "error": error}
            status = 200
        return Response(json.dumps(body), status=status, headers=headers)

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
        response = server.create_token_response()
        last_response.update(status=response.status_code, body=response.get_data(as_text=True))
        return response

    @app.route(given["controlPath"], methods=["GET", "DELETE"])
    def control():
        if request.method == "DELETE":
            refresh_tokens.clear()
        return last_response

    return app


# It would log every request, and their URLs contain codes.
logging.getLogger("werkzeug").setLevel(logging.ERROR)
listening = [make_server("127.0.0.1", 0, make_app(set(quirks)), threaded=True) for quirks in given["quirks"]]
print(json.dumps([server.server_port for server in listening]), flush=True)
for server in listening:
    threading.Thread(target=server.serve_forever).start()
