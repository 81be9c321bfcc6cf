"""The connections of hubs as logins of Home Assistant's own integrations of clouds."""

import asyncio
from contextlib import suppress
from http import HTTPStatus
import time
from typing import Any

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import AbortFlow, UnknownFlow
from homeassistant.helpers import http
from homeassistant.helpers.config_entry_oauth2_flow import (
    AUTH_CALLBACK_PATH,
    CLOCK_OUT_OF_SYNC_MAX_SEC,
    HEADER_FRONTEND_BASE,
    AbstractOAuth2Implementation,
    LocalOAuth2Implementation,
)
from homeassistant.helpers.network import get_url

from .hub import CONF_CONNECTIONS, DOMAIN, Hub, HubError

try:
    from homeassistant.exceptions import OAuth2TokenRequestTransientError
except ImportError:  # Before Home Assistant 2026.3.
    OAuth2TokenRequestTransientError = None

# The integrations whose names differ from those of the hub's presets.
INTEGRATIONS = {
    "husqvarna": "husqvarna_automower",
    "microsoft": "onedrive",
    "resideo": "lyric",
    "tesla": "tesla_fleet",
    "viessmann": "vicare",
}


def integration_of(connection: str, cloud: str | None) -> str:
    """Return the integration of a connection: that of its cloud, or the one that it is named after."""
    name = cloud or connection
    return INTEGRATIONS.get(name, name.replace("-", "_"))


async def async_provide_implementations(
    hass: HomeAssistant, domain: str
) -> list[AbstractOAuth2Implementation]:
    """Return the connections for an integration. They are stored, so the hub may be away."""
    found = _implementations(hass, domain)
    if not found and http.current_request.get() is not None:
        # A person sets the integration up, and may have just chosen its login on the page of a hub.
        entries = hass.config_entries.async_loaded_entries(DOMAIN)
        await asyncio.gather(*(entry.runtime_data.async_refresh() for entry in entries))
        found = _implementations(hass, domain)
    return found


def _implementations(hass: HomeAssistant, domain: str) -> list[AbstractOAuth2Implementation]:
    """Return the stored connections for an integration."""
    return [
        HubImplementation(hass, str(entry.unique_id), name, f"{known['title']} ({entry.title})")
        for entry in hass.config_entries.async_entries(DOMAIN)
        for name, known in entry.data.get(CONF_CONNECTIONS, {}).items()
        if integration_of(name, known["cloud"]) == domain
    ]


class HubImplementation(LocalOAuth2Implementation):
    """A connection of a hub, which logs in and refreshes. Home Assistant only asks it for access tokens."""

    def __init__(self, hass: HomeAssistant, hub_id: str, connection: str, name: str) -> None:
        """Initialize the implementation."""
        super().__init__(hass, f"{DOMAIN}_{hub_id}_{connection}", DOMAIN, "", "", "")
        self._hub_id = hub_id
        self._connection = connection
        self._name = name
        self._login: asyncio.Task[None] | None = None
        self._login_url = ""

    @property
    def name(self) -> str:
        """Return what a person chooses."""
        return self._name

    @property
    def redirect_uri(self) -> str:
        """Return the address of Home Assistant to which a login returns: always this one, without a detour."""
        request = http.current_request.get()
        base = request and request.headers.get(HEADER_FRONTEND_BASE)
        return f"{base or get_url(self.hass)}{AUTH_CALLBACK_PATH}"

    @property
    def extra_authorize_data(self) -> dict[str, str]:
        """Return what Home Assistant waits for. It means nothing, because the hub has the login."""
        return {"code": DOMAIN}

    async def async_generate_authorize_url(self, flow_id: str) -> str:
        """Return the hub's page for a login, or if nobody needs to log in, where that would have ended."""
        # A person who opens the dialog again sees the same login: another one would end this one.
        if self._login is not None and not self._login.done():
            return self._login_url
        try:
            if await self._is_logged_in():
                self.authorize_url = self.redirect_uri
                return await super().async_generate_authorize_url(flow_id)
            device = await self._hub.ask("/oauth/device_authorization", self._connection)
        except HubError as error:
            raise AbortFlow("oauth_implementation_unavailable") from error
        self._login = self.hass.async_create_background_task(self._await_login(flow_id, device), f"{self.domain} login")
        self._login_url = str(device["verification_uri_complete"])
        return self._login_url

    async def async_resolve_external_data(self, external_data: Any) -> dict[str, Any]:
        """Return the first token."""
        return await self._token()

    async def _async_refresh_token(self, token: dict[str, Any]) -> dict[str, Any]:
        """Return the hub's present token, or a new one if the cloud has refused the given one."""
        if token.get("expires_at", 0) > time.time() + CLOCK_OUT_OF_SYNC_MAX_SEC:
            await self._token(refused=token["access_token"])
        return {**token, **await self._token()}

    @property
    def _hub(self) -> Hub:
        entry = self.hass.config_entries.async_entry_for_domain_unique_id(DOMAIN, self._hub_id)
        if entry is None:
            raise HubError(HubError.UNREACHABLE, "the hub was removed from Home Assistant")
        return Hub(self.hass, entry.data)

    async def _token(self, refused: str | None = None) -> dict[str, Any]:
        """Return a token response.

        Every failure looks like a server that is away for a while: the integration then tries again by itself. If
        somebody must log in, a repair issue says so, and no integration has to be set up again.
        """
        try:
            if refused is not None:
                await self._hub.ask("/oauth/revoke", token=refused)
            return await self._hub.token(self._connection)
        except HubError as error:
            url = URL.build(scheme="https", host=f"{self._hub_id}.local", path="/oauth/token")
            request = aiohttp.RequestInfo(url, "POST", CIMultiDictProxy(CIMultiDict()), url)
            status = HTTPStatus.SERVICE_UNAVAILABLE
            details = {"request_info": request, "history": (), "status": status, "message": str(error)}
            if OAuth2TokenRequestTransientError is None:
                raise aiohttp.ClientResponseError(**details) from error
            raise OAuth2TokenRequestTransientError(**details, domain=self.domain) from error

    async def _is_logged_in(self) -> bool:
        """Return whether nobody needs to log in."""
        try:
            await self._hub.token(self._connection)
        except HubError as error:
            if error.code == "invalid_grant":
                return False
            raise
        return True

    async def _await_login(self, flow_id: str, device: dict[str, Any]) -> None:
        """Continue a config flow when somebody has logged in (RFC 8628, 3.4)."""
        wait = float(device["interval"])
        end = time.monotonic() + device["expires_in"]
        while time.monotonic() < end:
            await asyncio.sleep(wait)
            try:
                await self._hub.ask(
                    "/oauth/token",
                    grant_type="urn:ietf:params:oauth:grant-type:device_code",
                    device_code=device["device_code"],
                )
            except HubError as error:
                if error.code == "slow_down":
                    wait += 5
                if error.code in ("slow_down", "authorization_pending", "temporarily_unavailable", HubError.UNREACHABLE):
                    continue
                result = {"error": error.code}
            else:
                result = {"code": DOMAIN}
            with suppress(UnknownFlow):  # A person has closed it.
                await self.hass.config_entries.flow.async_configure(flow_id, result)
            return
