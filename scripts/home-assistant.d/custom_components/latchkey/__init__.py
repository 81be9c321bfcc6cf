"""Latchkey: Home Assistant's integrations of clouds get their tokens from a hub on the home network."""

from datetime import timedelta
import logging
import time
from typing import Any

from homeassistant.config_entries import SOURCE_REAUTH, ConfigEntry, ConfigEntryState
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import ConfigEntryNotReady
from homeassistant.helpers import config_validation as cv, issue_registry as ir
from homeassistant.helpers.config_entry_oauth2_flow import async_add_implementation_provider
from homeassistant.helpers.start import async_at_started
from homeassistant.helpers.typing import ConfigType
from homeassistant.helpers.update_coordinator import DataUpdateCoordinator, UpdateFailed
from homeassistant.util.hass_dict import HassKey

from .hub import CONF_CA, CONF_CONNECTIONS, DOMAIN, Hub, HubError
from .oauth import async_provide_implementations

CONFIG_SCHEMA = cv.config_entry_only_config_schema(DOMAIN)
LOGGER = logging.getLogger(__name__)
UPDATE_INTERVAL = timedelta(minutes=1)
CA_CHECK_INTERVAL = 3600
SECOND_LOGIN_INTERVAL = 3600
# The hubs that could not be set up, by their entries: each try has a new coordinator.
AWAY: HassKey[set[str]] = HassKey(f"{DOMAIN}_away")
# The states in which only a person can help.
NEEDS_PERSON = ("unpaired", "needs_pairing")

type LatchkeyConfigEntry = ConfigEntry[HubCoordinator]


async def async_setup(hass: HomeAssistant, config: ConfigType) -> bool:
    """Provide the logins of all hubs, also while they are away."""
    async_add_implementation_provider(hass, DOMAIN, async_provide_implementations)

    @callback
    def retry(hass: HomeAssistant) -> None:
        """Set integrations up again that asked for their login before it was provided.

        Home Assistant lets only its own Cloud provide logins earlier than integrations begin.
        """
        for entry in hass.config_entries.async_entries():
            implementation = str(entry.data.get("auth_implementation", ""))
            if entry.state is ConfigEntryState.SETUP_ERROR and implementation.startswith(f"{DOMAIN}_"):
                hass.config_entries.async_schedule_reload(entry.entry_id)

    async_at_started(hass, retry)
    return True


async def async_setup_entry(hass: HomeAssistant, entry: LatchkeyConfigEntry) -> bool:
    """Set up a hub."""
    coordinator = HubCoordinator(hass, entry)
    away = hass.data.setdefault(AWAY, set())
    try:
        await coordinator.async_config_entry_first_refresh()
    except ConfigEntryNotReady:
        # Home Assistant shows this on its page, but not in its log.
        if entry.entry_id not in away:
            away.add(entry.entry_id)
            LOGGER.warning("%s cannot be set up yet: %s", entry.title, coordinator.last_exception)
        raise
    if entry.entry_id in away:
        away.remove(entry.entry_id)
        LOGGER.info("%s responds again", entry.title)
    entry.runtime_data = coordinator
    # A hub without connections has no sensors, and is asked all the same.
    entry.async_on_unload(coordinator.async_add_listener(lambda: None))
    await hass.config_entries.async_forward_entry_setups(entry, [Platform.SENSOR])
    return True


async def async_unload_entry(hass: HomeAssistant, entry: LatchkeyConfigEntry) -> bool:
    """Unload a hub."""
    entry.runtime_data.show_issues({})
    return await hass.config_entries.async_unload_platforms(entry, [Platform.SENSOR])


class HubCoordinator(DataUpdateCoordinator[dict[str, dict[str, Any]]]):
    """What the hub says of its connections, by their names."""

    config_entry: LatchkeyConfigEntry
    version: str | None = None
    _ca_checked = float("-inf")

    def __init__(self, hass: HomeAssistant, entry: LatchkeyConfigEntry) -> None:
        """Initialize the coordinator."""
        super().__init__(hass, LOGGER, config_entry=entry, name=entry.title, update_interval=UPDATE_INTERVAL)
        # When a login that an integration asked for was ended last, by its entry.
        self._ended: dict[str, float] = {}

    async def _async_update_data(self) -> dict[str, dict[str, Any]]:
        entry = self.config_entry
        hub = Hub(self.hass, entry.data)
        try:
            answer = await hub.ask("/oauth/connections")
            ca = entry.data[CONF_CA]
            if time.monotonic() - self._ca_checked >= CA_CHECK_INTERVAL:
                # Over a connection that the known CA has verified, so that a planned rotation needs nobody.
                ca = await hub.fetch_ca()
                self._ca_checked = time.monotonic()
        except HubError as error:
            if error.code == HubError.OTHER_CA:
                self.show_issues({"ca": {}})
            if error.code == "invalid_client":
                entry.async_start_reauth(self.hass)
            raise UpdateFailed(str(error)) from error
        for flow in entry.async_get_active_flows(self.hass, {SOURCE_REAUTH}):
            self.hass.config_entries.flow.async_abort(flow["flow_id"])
        connections = {connection["name"]: connection for connection in answer["connections"]}
        known = {name: {key: connections[name][key] for key in ("title", "cloud")} for name in connections}
        changed = {**entry.data, CONF_CA: ca, CONF_CONNECTIONS: known}
        if changed != entry.data:
            self.hass.config_entries.async_update_entry(entry, data=changed)
        self.version = answer["hub"]["version"]
        self.show_issues(
            {
                f"login_{name}": {"title": connection["title"]}
                for name, connection in connections.items()
                if connection["state"] in NEEDS_PERSON
            }
        )
        try:
            await self._end_needless_logins(hub, connections)
        except HubError as error:
            raise UpdateFailed(str(error)) from error
        return connections

    async def _end_needless_logins(self, hub: Hub, connections: dict[str, dict[str, Any]]) -> None:
        """Give integrations that ask for a login, because the cloud has refused their token, a new token instead."""
        for entry in self.hass.config_entries.async_entries():
            for name, connection in connections.items():
                if entry.data.get("auth_implementation") != f"{DOMAIN}_{self.config_entry.unique_id}_{name}":
                    continue
                if connection["state"] != "active":
                    self._ended.pop(entry.entry_id, None)
                    continue
                flows = list(entry.async_get_active_flows(self.hass, {SOURCE_REAUTH}))
                since = time.monotonic() - self._ended.get(entry.entry_id, float("-inf"))
                # If it asks again with the same login, the token is not the cause.
                if not flows or since < SECOND_LOGIN_INTERVAL:
                    continue
                self._ended[entry.entry_id] = time.monotonic()
                token = entry.data["token"]
                await hub.ask("/oauth/revoke", token=token["access_token"])
                changed = {**entry.data, "token": {**token, "expires_at": 0}}
                self.hass.config_entries.async_update_entry(entry, data=changed)
                for flow in flows:
                    self.hass.config_entries.flow.async_abort(flow["flow_id"])
                self.hass.config_entries.async_schedule_reload(entry.entry_id)

    @callback
    def show_issues(self, issues: dict[str, dict[str, str]]) -> None:
        """Show these repair issues, the placeholders of their texts by `ca` or `login_NAME`, and no other ones."""
        entry = self.config_entry
        prefix = f"{entry.entry_id}_"
        for domain, issue in list(ir.async_get(self.hass).issues):
            if domain == DOMAIN and issue.startswith(prefix) and issue.removeprefix(prefix) not in issues:
                ir.async_delete_issue(self.hass, DOMAIN, issue)
        url = str(Hub(self.hass, entry.data).url)
        for key, placeholders in issues.items():
            ir.async_create_issue(
                self.hass,
                DOMAIN,
                prefix + key,
                is_fixable=False,
                severity=ir.IssueSeverity.ERROR,
                translation_key=key.partition("_")[0],
                translation_placeholders={"hub": entry.title, "url": url, **placeholders},
                learn_more_url=url,
            )
