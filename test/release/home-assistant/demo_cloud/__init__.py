"""An integration of a cloud: asks it every few seconds, and reports as Home Assistant's own ones do."""

from datetime import timedelta
import logging
import os

import aiohttp

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import ConfigEntryAuthFailed
from homeassistant.helpers import config_entry_oauth2_flow as oauth
from homeassistant.helpers.update_coordinator import DataUpdateCoordinator, UpdateFailed


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Set up the integration; its state shows how often the cloud has accepted a token."""
    implementation = await oauth.async_get_config_entry_implementation(hass, entry)
    session = oauth.OAuth2Session(hass, entry, implementation)
    accepted = 0

    async def ask_cloud() -> int:
        nonlocal accepted
        try:
            response = await session.async_request("GET", os.environ["DEMO_CLOUD"] + "/api/whoami")
        except aiohttp.ClientResponseError as error:
            if 400 <= error.status < 500:
                raise ConfigEntryAuthFailed from error
            raise UpdateFailed(str(error)) from error
        except aiohttp.ClientError as error:
            raise UpdateFailed(str(error)) from error
        if response.status == 401:
            raise ConfigEntryAuthFailed("the cloud has refused the token")
        response.raise_for_status()
        accepted += 1
        hass.states.async_set("demo_cloud.accepted", str(accepted), {"expires_at": entry.data["token"]["expires_at"]})
        return accepted

    coordinator = DataUpdateCoordinator(
        hass,
        logging.getLogger(__name__),
        config_entry=entry,
        name="Demo cloud",
        update_method=ask_cloud,
        update_interval=timedelta(seconds=2),
    )
    await coordinator.async_config_entry_first_refresh()
    entry.async_on_unload(coordinator.async_add_listener(lambda: None))
    return True


async def async_unload_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Unload the integration."""
    hass.states.async_remove("demo_cloud.accepted")
    return True
