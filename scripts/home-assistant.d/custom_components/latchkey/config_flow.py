"""Setting up a hub: found by zeroconf or by its address, then approved on its page or with typed credentials."""

import asyncio
from collections.abc import Mapping
from typing import Any

import voluptuous as vol

from homeassistant.config_entries import SOURCE_REAUTH, SOURCE_RECONFIGURE, ConfigFlow, ConfigFlowResult
from homeassistant.const import CONF_HOST, CONF_PORT
from homeassistant.helpers.service_info.zeroconf import ZeroconfServiceInfo

from .hub import CONF_CA, CONF_CLIENT_ID, CONF_CLIENT_SECRET, CONF_CONNECTIONS, DOMAIN, Hub, HubError, pin_of

POLL_INTERVAL = 5


class LatchkeyConfigFlow(ConfigFlow, domain=DOMAIN):
    """Makes this Home Assistant an appliance of a hub."""

    def __init__(self) -> None:
        """Initialize the flow."""
        self._data: dict[str, Any] = {}
        self._hub_name = ""
        self._code = ""
        self._approval: asyncio.Task[dict[str, Any]] | None = None

    async def async_step_zeroconf(self, discovery_info: ZeroconfServiceInfo) -> ConfigFlowResult:
        """Offer a hub that was found, or follow a known one to its new address."""
        found = {CONF_HOST: discovery_info.host, CONF_PORT: discovery_info.port}
        entry = await self.async_set_unique_id(discovery_info.properties["id"])
        if entry is not None and {**entry.data, **found} != entry.data:
            try:
                # Any device can announce itself as the hub. Only the hub can prove it.
                await Hub(self.hass, {**entry.data, **found}).fetch_ca()
            except HubError:
                return self.async_abort(reason="cannot_connect")
        self._abort_if_unique_id_configured(updates=found)
        self._hub_name = discovery_info.name.partition("._")[0]
        self.context["title_placeholders"] = {"name": self._hub_name}
        if (error := await self._connect(found)) is not None:
            return self.async_abort(reason=error)
        return await self.async_step_join_menu()

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Take the address of a hub."""
        errors = {}
        if user_input is not None:
            if (error := await self._connect(user_input)) is None:
                return await self.async_step_join_menu()
            errors["base"] = error
        schema = vol.Schema({vol.Required(CONF_HOST): str, vol.Required(CONF_PORT, default=8443): int})
        schema = self.add_suggested_values_to_schema(schema, user_input or self._data)
        return self.async_show_form(step_id="user", data_schema=schema, errors=errors)

    async def async_step_reauth(self, entry_data: Mapping[str, Any]) -> ConfigFlowResult:
        """Join again: the hub does not know the credentials any more."""
        self._data = {key: entry_data[key] for key in (CONF_HOST, CONF_PORT)}
        return await self.async_step_user()

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Take another address, or another security code of the hub."""
        return await self.async_step_reauth(self._get_reconfigure_entry().data)

    async def async_step_join_menu(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Show the hub's security code, and ask how to join."""
        return self.async_show_menu(
            step_id="join_menu",
            menu_options=["join", "credentials"],
            description_placeholders={"hub": self._title, "pin": pin_of(self._data[CONF_CA])},
        )

    async def async_step_join(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask the hub to join, which somebody approves on its page."""
        try:
            registered = await Hub(self.hass, self._data).register()
        except HubError as error:
            reason = "registration_closed" if error.code == "invalid_token" else "cannot_connect"
            page = {"hub": self._title, "url": str(Hub(self.hass, self._data).url)}
            return self.async_show_form(step_id="join", errors={"base": reason}, description_placeholders=page)
        self._data |= {key: registered[key] for key in (CONF_CLIENT_ID, CONF_CLIENT_SECRET)}
        self._code = registered.get("comparison_code", "")
        return await self.async_step_approval()

    async def async_step_approval(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Show the comparison code until the hub knows this Home Assistant."""
        if self._approval is None:
            self._approval = self.hass.async_create_task(self._await_approval(), eager_start=False)
        if not self._approval.done():
            return self.async_show_progress(
                step_id="approval",
                progress_action="approval",
                description_placeholders={"code": self._code, "url": str(Hub(self.hass, self._data).url)},
                progress_task=self._approval,
            )
        return self.async_show_progress_done(next_step_id="finish")

    async def async_step_credentials(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Take credentials that `latchkey appliance add` or the hub's page has shown."""
        errors = {}
        if user_input is not None:
            self._data |= user_input
            try:
                return await self._finish(await Hub(self.hass, self._data).ask("/oauth/connections"))
            except HubError as error:
                errors["base"] = "invalid_auth" if error.code == "invalid_client" else "cannot_connect"
        schema = vol.Schema({vol.Required(CONF_CLIENT_ID): str, vol.Required(CONF_CLIENT_SECRET): str})
        return self.async_show_form(step_id="credentials", data_schema=schema, errors=errors)

    async def async_step_finish(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Finish after the approval."""
        assert self._approval is not None
        try:
            return await self._finish(self._approval.result())
        except HubError:
            return self.async_abort(reason="not_approved")

    @property
    def _title(self) -> str:
        return self._hub_name or str(self._data[CONF_HOST])

    async def _connect(self, address: Mapping[str, Any]) -> str | None:
        """Fetch the CA of the hub at an address, and return the reason if that fails.

        From then on, no other hub can take its place. A person can compare its security code.
        """
        self._data = {CONF_HOST: address[CONF_HOST].strip(), CONF_PORT: address[CONF_PORT]}
        try:
            ca = await Hub(self.hass, self._data).fetch_ca()
            self._data[CONF_CA] = ca
            await Hub(self.hass, self._data).fetch_ca()
        except HubError:
            return "cannot_connect"
        return None

    async def _await_approval(self) -> dict[str, Any]:
        """Return what the hub says after the approval."""
        while True:
            try:
                return await Hub(self.hass, self._data).ask("/oauth/connections")
            except HubError as error:
                if error.code == "invalid_client":
                    raise  # Rejected, or forgotten after a day.
            await asyncio.sleep(POLL_INTERVAL)

    async def _finish(self, answer: dict[str, Any]) -> ConfigFlowResult:
        """Create or update the entry."""
        await self.async_set_unique_id(answer["hub"]["id"], raise_on_progress=False)
        if self.source in (SOURCE_REAUTH, SOURCE_RECONFIGURE):
            self._abort_if_unique_id_mismatch()
            entry = self._get_reauth_entry() if self.source == SOURCE_REAUTH else self._get_reconfigure_entry()
            return self.async_update_reload_and_abort(entry, data_updates=self._data)
        self._abort_if_unique_id_configured(updates=self._data)
        known = {one["name"]: {"title": one["title"], "cloud": one["cloud"]} for one in answer["connections"]}
        return self.async_create_entry(title=answer["hub"]["name"], data={**self._data, CONF_CONNECTIONS: known})
