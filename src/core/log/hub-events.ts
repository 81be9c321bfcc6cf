import { error, event, number, optional, retryIn, text, user, whatToDo } from './table.ts';

const portal = text('name of the portal');

/** The daemon, from its start to its end. */
export const hubEvents = {
  hub_started: event('info', 'The hub is up and serves clients.', {
    name: text('name of the hub'),
    id: text('id of the hub'),
    version: text('version of Latchkey'),
    address: optional(text('IPv4 address of the hub; null if it has none')),
    http_port: optional(number('port of the HTTP listener')),
    https_port: number('port of the HTTPS listener'),
    control_socket: text('path of the control socket'),
    appliances: number('how many appliances the hub has'),
  }),
  hub_stopping: event('info', 'The daemon was asked to stop.', {
    signal: optional(text('the signal it received')),
  }),
  hub_stopped: event('info', 'The hub has stopped normally.'),
  hub_restarting: event('info', 'The hub starts again within the process, for example after a restore.'),
  hub_removed: event('info', 'A hub was removed from the list of its site.', { hub: text('its id') }),
  page_never_opened: event('info', "Nobody has signed in to the hub's page yet.", { what_to_do: whatToDo }),
  configuration_warning: event('warn', 'The hub uses the configuration, but something in it should be corrected.', {
    detail: text('the file, the key, what is wrong and what to do'),
  }),
  configuration_reloading: event('info', 'The changed configuration is valid; the hub starts again with it.', {
    file: optional(text('path of the configuration file')),
  }),
  configuration_rejected: event(
    'error',
    'The changed configuration is invalid; the old one stays in force. Correct the file and reload it.',
    { error },
  ),
  configuration_reverted: event(
    'error',
    'The hub could not start with the changed configuration and runs with the old one. Correct the file and reload it.',
    { error },
  ),
  reload_unavailable: event(
    'warn',
    'A reload was requested, but a hub in test mode has no configuration file to reload.',
  ),
  event_loop_blocked: event('warn', 'The daemon was unresponsive: the machine is overloaded, or was suspended.', {
    seconds: number('for how many seconds'),
  }),
  watchdog_starved: event('error', 'The daemon is stuck and sends no keep-alives; systemd will restart it.', {
    reason: text('what is stuck, in words'),
  }),
  watchdog_recovered: event('info', 'The daemon sends keep-alives to systemd again.'),
  crashed: event('error', 'An unexpected error ended the daemon; systemd restarts it. Please report it.', {
    origin: text('`uncaughtException` or `unhandledRejection`'),
    error,
    at: text('where in the code'),
  }),
  event_handler_failed: event(
    'error',
    'Internal error: a part of the hub failed to process an event. Please report it.',
    {
      kind: text('the kind of event'),
      error,
    },
  ),
  request_failed: event(
    'error',
    'Internal error while handling a request to the page or the appliance API. Please report it.',
    {
      error,
    },
  ),
  portal_added: event('info', 'A person has added a portal, or entered its data again; the hub starts again with it.', {
    portal,
    user,
  }),
  portal_removed: event('info', 'A person has removed an added portal; the hub starts again without it.', {
    portal,
    user,
  }),
  added_portal_invalid: event(
    'error',
    'The hub can not use a portal that a person has added, for example after a restore by an earlier version. It stays stored: remove it and add it again, or install the version that it is from.',
    { detail: text('the key, and what is wrong') },
  ),
  added_portal_hidden: event(
    'warn',
    'The configuration declares a portal with the name of an added one, and its portal is the one that counts. The added one stays stored.',
    { portal },
  ),
  portal_client_rejected: event('error', 'A portal does not accept the hub as its client, so no login can succeed.', {
    portal: text("the portal's name in the configuration"),
    what_to_do: whatToDo,
  }),
  portal_metadata_missing: event(
    'warn',
    'The hub could not get the metadata of a portal, which names its endpoints, and has none from before. It keeps trying.',
    { portal, detail: text('why') },
  ),
  emulator_started: event('info', 'The portal emulator of test mode is up.', {
    base_url: text('URL of its API'),
    frontend_url: text('URL of its login page'),
  }),
};

/** Addresses and mDNS. */
export const networkEvents = {
  lan_address_missing: event(
    'warn',
    'No network interface has the address of `lan.address`. Correct the configuration.',
    {
      address: text('the configured address'),
    },
  ),
  address_changed: event('info', 'The hub has another IPv4 address.', {
    address: optional(text('the new address; null if it has none')),
  }),
  address_change_failed: event('error', 'A part of the hub could not adapt to a changed address.', { error }),
  hub_announced: event('info', 'The hub is announced by mDNS.', {
    instance: text('instance name of the service'),
    host: text('host name'),
    address: text('the addresses, separated by commas'),
    interface: text('the network interfaces, separated by commas'),
  }),
  hub_name_claimed: event(
    'warn',
    'Another device on the network claims the host name of the hub. Rename one of them.',
    {
      error,
      retry_in: retryIn,
    },
  ),
  announcement_failed: event('warn', 'The hub could not be announced by mDNS; it tries again.', {
    error,
    retry_in: retryIn,
  }),
  mdns_failed: event('warn', 'Sending or receiving mDNS messages failed; each error is logged once.', { error }),
};

/** The control socket, which the command line uses, and the metrics listener. */
export const listenerEvents = {
  control_socket_created: event('info', 'The control socket was created after earlier failures.', {
    control_socket: text('path of the socket'),
  }),
  control_socket_failed: event(
    'error',
    'The control socket could not be created; the command line cannot reach the hub.',
    {
      error,
      retry_in: retryIn,
    },
  ),
  control_socket_group_not_set: event(
    'warn',
    'The control socket could not be given to its group; only root and the service can use it.',
    {
      group: text('name of the group'),
      error,
    },
  ),
  control_request_failed: event('error', 'Internal error while handling a command. Please report it.', {
    route: optional(text('route of the request')),
    error,
  }),
  pairing_events_failed: event('error', 'Internal error while reporting the progress of a pairing to a command.', {
    error,
  }),
  ingress_listening: event('info', "The installer's page is served to the reverse proxy.", {
    host: text('IP address'),
    port: number('port'),
    from: text('the only address that is accepted'),
  }),
  ingress_unavailable: event('warn', 'The listener for the reverse proxy could not be opened; the hub keeps trying.', {
    host: text('IP address'),
    port: number('port'),
    error,
    retry_in: retryIn,
  }),
  local_listening: event('info', 'Tokens are issued to programs on this machine at the port of `[local]`.', {
    port: number('port on 127.0.0.1 and ::1'),
  }),
  local_unavailable: event('warn', 'The port of `[local]` could not be opened; the hub keeps trying.', {
    port: number('port on 127.0.0.1 and ::1'),
    error,
    retry_in: retryIn,
  }),
  metrics_listening: event('info', 'The metrics are served.', {
    host: text('address of the listener'),
    port: number('port of the listener'),
  }),
  metrics_unavailable: event('warn', 'The metrics listener could not be opened; the hub keeps trying.', {
    host: text('address of the listener'),
    port: number('port of the listener'),
    error,
    retry_in: retryIn,
  }),
  metrics_request_failed: event('error', 'Internal error while handling a request for metrics. Please report it.', {
    error,
  }),
};
