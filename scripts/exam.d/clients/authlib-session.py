from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session
from program import authorization_endpoint, env, redirect_uri, redirected, run, secret, token_endpoint

session = OAuth2Session(
    env.get("OAUTH_CLIENT_ID"), secret or None, redirect_uri=redirect_uri, code_challenge_method="S256"
)


def login():
    verifier = generate_token(48)
    url, state = session.create_authorization_url(authorization_endpoint, code_verifier=verifier)
    back = redirected(url)
    return session.fetch_token(token_endpoint, authorization_response=back, state=state, code_verifier=verifier)


run(
    refresh=lambda tokens: session.refresh_token(token_endpoint, refresh_token=tokens["refresh_token"]),
    login=login,
    is_final=lambda error: getattr(error, "error", None) == "invalid_grant",
)
