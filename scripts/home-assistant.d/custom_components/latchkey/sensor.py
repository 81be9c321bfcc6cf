"""A sensor for each connection of a hub: the state of its login."""

from homeassistant.components.sensor import SensorDeviceClass, SensorEntity
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.device_registry import DeviceEntryType, DeviceInfo
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.update_coordinator import CoordinatorEntity

from . import HubCoordinator, LatchkeyConfigEntry
from .hub import DOMAIN, Hub

PARALLEL_UPDATES = 0


async def async_setup_entry(
    hass: HomeAssistant, entry: LatchkeyConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add and remove sensors as connections come and go."""
    coordinator = entry.runtime_data
    prefix = f"{entry.unique_id}_"
    shown: set[str] = set()

    @callback
    def update() -> None:
        nonlocal shown
        registry = er.async_get(hass)
        for entity in er.async_entries_for_config_entry(registry, entry.entry_id):
            if entity.unique_id.removeprefix(prefix) not in coordinator.data:
                registry.async_remove(entity.entity_id)
        async_add_entities(ConnectionSensor(coordinator, name) for name in coordinator.data if name not in shown)
        shown = set(coordinator.data)

    update()
    entry.async_on_unload(coordinator.async_add_listener(update))


class ConnectionSensor(CoordinatorEntity[HubCoordinator], SensorEntity):
    """The state of a connection's login."""

    _attr_has_entity_name = True
    _attr_translation_key = "connection"
    _attr_device_class = SensorDeviceClass.ENUM
    _attr_options = ["unpaired", "pairing", "active", "retrying", "needs_pairing"]

    def __init__(self, coordinator: HubCoordinator, connection: str) -> None:
        """Initialize the sensor."""
        super().__init__(coordinator)
        entry = coordinator.config_entry
        self._connection = connection
        self._attr_name = coordinator.data[connection]["title"]
        self._attr_unique_id = f"{entry.unique_id}_{connection}"
        self._attr_device_info = DeviceInfo(
            identifiers={(DOMAIN, str(entry.unique_id))},
            name=entry.title,
            entry_type=DeviceEntryType.SERVICE,
            sw_version=coordinator.version,
            configuration_url=str(Hub(coordinator.hass, entry.data).url),
        )

    @property
    def available(self) -> bool:
        """Return whether the hub responds and has the connection."""
        return super().available and self._connection in self.coordinator.data

    @property
    def native_value(self) -> str | None:
        """Return the state."""
        return self.coordinator.data[self._connection]["state"] if self.available else None
