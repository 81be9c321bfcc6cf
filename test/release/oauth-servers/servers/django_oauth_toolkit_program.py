"""A Django project with django-oauth-toolkit. Argument: settings as JSON. Prints its port when it listens."""
import json
import sys

import django
from django.conf import settings
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application

given = json.loads(sys.argv[1])

LOGIN_PAGE = '<form method="post">{% csrf_token %}{{ form }}<button type="submit">Log in</button></form>'

settings.configure(
    SECRET_KEY="key-of-the-cookies",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    LOGGING_CONFIG=None,
    LOGIN_URL="/login/",
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": given["database"]}},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "oauth2_provider",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": ["django.template.context_processors.request"],
                "loaders": [
                    ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN_PAGE}),
                    "django.template.loaders.app_directories.Loader",
                ],
            },
        }
    ],
    OAUTH2_PROVIDER={
        "SCOPES": {scope: scope for scope in given["scopes"]},
        "ACCESS_TOKEN_EXPIRE_SECONDS": given["accessTokenTtl"],
        "REFRESH_TOKEN_EXPIRE_SECONDS": 86400,
        "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": given["gracePeriod"],
        "ROTATE_REFRESH_TOKEN": True,
        "PKCE_REQUIRED": True,
    },
)
django.setup()

from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.core.management import call_command
from django.urls import include, path
from oauth2_provider.models import Application

urlpatterns = [
    path("login/", LoginView.as_view()),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]


class QuietHandler(WSGIRequestHandler):
    """Logs no requests, because their URLs contain codes."""

    def log_message(self, *_):
        pass


call_command("migrate", verbosity=0)
user = User.objects.create_user(given["user"]["name"], password=given["user"]["password"])
Application.objects.create(
    name="Latchkey",
    user=user,
    client_id=given["client"]["id"],
    client_secret=given["client"]["secret"],
    client_type=Application.CLIENT_CONFIDENTIAL,
    authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
    redirect_uris=" ".join(given["redirectUris"]),
)
server = ThreadedWSGIServer(("127.0.0.1", 0), QuietHandler)
server.set_app(get_wsgi_application())
print(server.server_port, flush=True)
server.serve_forever()
