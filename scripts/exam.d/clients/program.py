# What program.mjs is in Node, for adapters in Python.
import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import requests

env = os.environ
secret = env.get("OAUTH_CLIENT_SECRET", "")
token_endpoint = env.get("OAUTH_TOKEN_ENDPOINT", "")
authorization_endpoint = env.get("OAUTH_AUTHORIZATION_ENDPOINT", "")
redirect_uri = env.get("OAUTH_REDIRECT_URI", "")
file = env["STATE_DIR"] + "/tokens.json"
os.umask(0o077)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def load():
    """The tokens of an earlier run, or the refresh token to begin with; None without either."""
    if os.path.exists(file):
        with open(file) as kept:
            return json.load(kept)
    return {"refresh_token": env["OAUTH_REFRESH_TOKEN"]} if "OAUTH_REFRESH_TOKEN" in env else None


def save(tokens):
    """Stores tokens, and returns them."""
    with open(file + ".new", "w") as new:
        json.dump(tokens, new)
    os.replace(file + ".new", file)
    return tokens


def redirected(url):
    """Prints an authorization URL, and waits until the browser comes back. Returns the address that it came to."""
    came = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            came.append(urlsplit(redirect_uri)._replace(path="").geturl() + self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"You can close this page.")

        def log_message(self, *_):
            pass

    with HTTPServer((urlsplit(redirect_uri).hostname, urlsplit(redirect_uri).port), Page) as server:
        print(url, flush=True)
        while not came:
            server.handle_request()
    return came[0]


def run(refresh, login, is_final):
    """Runs a client until it is stopped: see run in program.mjs."""
    tokens = load()
    if tokens is None and authorization_endpoint == "":
        sys.exit(1)
    while True:
        try:
            tokens = load() or tokens
            if tokens is None:
                tokens = save(login())
            headers = {"Authorization": "Bearer " + tokens.get("access_token", "none")}
            if requests.get(env["API_URL"], headers=headers, timeout=10).status_code == 401:
                tokens = save({**tokens, **refresh(tokens)})
        except Exception as error:
            print(error, file=sys.stderr, flush=True)
            if tokens is None or is_final(error):
                sys.exit(1)
        time.sleep(1)
