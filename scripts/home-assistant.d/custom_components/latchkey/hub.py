"""The hub: an OAuth server on the home network with a CA of its own."""

import base64
from collections.abc import Mapping
import hashlib
import ssl
from typing import Any

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from yarl import URL

from homeassistant.const import CONF_HOST, CONF_PORT
from homeassistant.core import HomeAssistant
from homeassistant.helpers.aiohttp_client import async_get_clientsession

DOMAIN = "latchkey"
CONF_CA = "ca"
CONF_CLIENT_ID = "client_id"
CONF_CLIENT_SECRET = "client_secret"
CONF_CONNECTIONS = "connections"

# The hub responds to every request within 10 s.
TIMEOUT = aiohttp.ClientTimeout(total=15)


class HubError(Exception):
    """A request that the hub has not fulfilled. The code is OAuth's, or one of the two below."""

    UNREACHABLE = "unreachable"
    OTHER_CA = "other_ca"

    def __init__(self, code: str, message: str) -> None:
        """Initialize the error."""
        super().__init__(message)
        self.code = code


def pin_of(ca: str) -> str:
    """Return the pin of a CA certificate: the base64url SHA-256 of its public key. Raises ValueError."""
    key = x509.load_pem_x509_certificate(ca.encode()).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()


class Hub:
    """A hub at one address, with the CA that is trusted and the credentials of this Home Assistant."""

    def __init__(self, hass: HomeAssistant, data: Mapping[str, Any]) -> None:
        """Initialize the hub from the data of a config entry; without a CA, it is not verified."""
        self._session = async_get_clientsession(hass)
        self._data = data
        self.url = URL.build(scheme="https", host=data[CONF_HOST], port=data[CONF_PORT])
        self._tls: ssl.SSLContext | bool = False
        if CONF_CA in data:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._tls.load_verify_locations(cadata=data[CONF_CA])

    async def fetch_ca(self) -> str:
        """Return the hub's present CA certificate as PEM."""
        ca = str(await self._request("GET", "/ca.pem"))
        try:
            pin_of(ca)
        except ValueError as error:
            raise HubError(HubError.UNREACHABLE, f"{self.url} is no Latchkey hub") from error
        return ca

    async def register(self) -> dict[str, Any]:
        """Ask to join (RFC 7591); an installer approves it on the hub's page."""
        client = {"client_name": "Home Assistant", "software_id": "latchkey-home-assistant"}
        return await self._request("POST", "/oauth/register", json=client)

    async def ask(self, path: str, connection: str | None = None, **form: str) -> dict[str, Any]:
        """Send a form to an endpoint, about a connection if it is named."""
        if connection is not None:
            form["resource"] = str(self.url / "connections" / connection)
        auth = aiohttp.BasicAuth(self._data[CONF_CLIENT_ID], self._data[CONF_CLIENT_SECRET])
        return await self._request("POST", path, data=form, auth=auth)

    async def token(self, connection: str) -> dict[str, Any]:
        """Return a token response of a connection."""
        return await self.ask("/oauth/token", connection, grant_type="client_credentials")

    async def _request(self, method: str, path: str, **content: Any) -> Any:
        url = self.url.with_path(path)
        try:
            async with self._session.request(method, url, ssl=self._tls, timeout=TIMEOUT, **content) as response:
                if response.status < 400 and method == "GET":
                    return await response.text()
                body = await response.json(content_type=None)
        except aiohttp.ClientConnectorCertificateError as error:
            message = f"the hub at {self.url} does not prove its identity with the security code that is known"
            raise HubError(HubError.OTHER_CA, message) from error
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            message = f"the hub at {self.url} does not respond ({reason})"
            raise HubError(HubError.UNREACHABLE, message) from error
        if response.status >= 400 or not isinstance(body, dict):
            error = body if isinstance(body, dict) else {}
            code = error.get("error", f"HTTP {response.status}")
            raise HubError(code, f"the hub at {self.url} says: {error.get('error_description', code)}")
        return body
