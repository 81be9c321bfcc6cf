import {
  appliance,
  connection,
  connectionIfKnown,
  error,
  event,
  flag,
  number,
  optional,
  text,
  user,
  whatToDo,
} from './table.ts';

const detail = text('what the portal responded, or why it was unreachable, in words');
const address = text('address of the device');
const count = number('how many there were');

/** Appliances: added, declared, registered, removed. */
export const applianceEvents = {
  appliance_added: event('info', 'Somebody added an appliance.', {
    appliance,
    connection,
    user,
  }),
  appliance_declared: event('info', 'The configuration declares this appliance for the first time.', {
    appliance,
    client_id: text('its client_id'),
    existed: flag('whether the hub had it already, added by hand'),
  }),
  appliance_undeclared: event(
    'warn',
    'The configuration no longer declares this appliance; its tokens cannot be requested.',
    {
      appliance,
      what_to_do: whatToDo,
    },
  ),
  appliance_registered: event('info', 'An appliance has registered itself.', {
    appliance,
    client_id: text('its client_id'),
    software_id: optional(text('its software_id')),
    address: optional(text('address of the device, if it waits for approval')),
    waits_for_approval: flag('whether somebody must approve it'),
    repeated: flag('whether it registered again with the same invite, because the first response was lost'),
  }),
  appliance_approved: event('info', 'Somebody approved an appliance that registered itself.', { appliance, user }),
  appliance_removed: event(['info', 'warn'], 'An appliance was removed.', {
    appliance,
    reason: text('`request` or `approval_timeout` (not approved in time)'),
    user,
  }),
  appliance_removal_failed: event(
    ['debug', 'error'],
    'An appliance that was not approved in time could not be removed.',
    {
      appliance,
      error,
    },
  ),
  appliance_moved: event('info', 'An appliance uses another connection.', {
    appliance,
    before: text('name of the former connection'),
    connection,
    user,
  }),
  appliance_renamed: event('info', 'Somebody gave an appliance another title. Its name stays.', {
    appliance,
    before: text('its former title'),
    title: text('its new title'),
    user,
  }),
  appliance_refused: event(
    'warn',
    'Somebody has asked with the client_id of an appliance and wrong credentials: perhaps the appliance itself.',
    {
      appliance,
      address,
      detail: text('what is wrong with them, in words'),
      count: number('how many such requests there were since the appliance last asked with the right ones'),
    },
  ),
  appliance_accepted: event('info', 'After that, the appliance has asked with the right credentials.', {
    appliance,
    count: number('how many requests were refused before'),
  }),
  secret_rotated: event('info', 'An appliance has a new client secret.', { appliance, user }),
  invite_created: event('info', 'Somebody made an invite.', {
    appliance: optional(text('name that the appliance will get, if the invite has one')),
    expires_in: number('seconds until it expires'),
  }),
  registration_opened: event('warn', 'Any appliance on the network may register without an invite.', {
    expires_in: number('seconds until that ends'),
    user,
  }),
  registration_closed: event('info', 'Appliances can register with an invite only.', { user }),
};

/** Connections: added, declared, imported, removed. */
export const connectionEvents = {
  connection_added: event('info', 'Somebody added a connection.', {
    connection,
    portal: text('name of its portal'),
    user,
  }),
  connection_renamed: event('info', 'Somebody gave a connection another title. Its name stays.', {
    connection,
    before: text('its former title'),
    title: text('its new title'),
    user,
  }),
  connection_removed: event('info', 'Somebody removed a connection.', { connection, user }),
  connection_undeclared: event('info', 'The configuration no longer declares this connection.', {
    connection,
    kept: flag('whether the hub keeps it, because it has a grant or is in use'),
  }),
  connection_moved: event('warn', 'The configuration assigns a connection to another portal. Pair it there.', {
    connection,
    before: optional(text('name of the former portal')),
    portal: optional(text('name of the new portal')),
  }),
  portal_renamed: event('info', 'The portal of a connection has another name in the configuration.', {
    connection,
    before: text('the former name'),
    portal: text('the new name'),
  }),
  scope_changed: event(
    'warn',
    'The declared scope differs from the scope of the grant, which stays in use. Pair again.',
    {
      connection,
      scope: optional(text('the declared scope')),
      what_to_do: whatToDo,
    },
  ),
  grant_imported: event('info', "The hub has taken over another program's grant.", {
    connection,
    scope: optional(text('the scope of the grant')),
  }),
  grant_import_failed: event('warn', 'The grant of another program could not be taken over.', {
    connection,
    outcome: text(
      '`not_sent`, `deferred`, `ambiguous`, `refused`, `misconfigured`, `rejected`, or `superseded` by another login',
    ),
    detail,
  }),
  grant_revoked: event(
    'info',
    'The portal has revoked a grant that was removed from the hub, or tokens that came too late for one.',
    {
      connection,
    },
  ),
  grant_revocation_failed: event(
    'warn',
    'The portal did not revoke a grant that was removed from the hub, or tokens that came too late for one.',
    {
      connection,
      detail,
    },
  ),
};

/** Pairings: a person logs in at the portal for a connection. */
export const pairingEvents = {
  pairing_started: event(['debug', 'info'], 'A pairing was started.', {
    connection,
    by: text('`person`, `appliance` (RFC 8628) or `on_start` (`pairing.on_start`)'),
    times: optional(number('the number of consecutive pairings of this connection that nobody opened')),
    user,
  }),
  pairing_start_failed: event('warn', 'A pairing could not be started.', { connection: optional(connection), error }),
  login_link_created: event('info', 'A pairing of `pairing.on_start` waits for a login.', {
    connection,
    authorize_url: text('open it in a browser and log in'),
  }),
  login_link_rejected: event(
    'warn',
    'The portal gave no login link for the changed address of the hub; the pairing continues.',
    {
      connection: connectionIfKnown,
      detail,
    },
  ),
  login_response_rejected: event(
    'warn',
    'A browser brought the response to a login, and the hub did not use it: another portal sent it (`foreign_issuer`), or it reports this error of the portal.',
    { connection: connectionIfKnown, reason: text('`foreign_issuer`, or the error code of the portal') },
  ),
  redirect_address_rejected: event(
    'info',
    'The portal rejected the redirect address; the hub polls for the login instead.',
    {
      connection: connectionIfKnown,
      detail,
    },
  ),
  portal_unreachable: event(['debug', 'warn'], 'The portal is unreachable during a pairing; the hub keeps trying.', {
    connection: connectionIfKnown,
    detail,
  }),
  login_confirmation_needed: event(
    'warn',
    'A login came from a browser that the hub did not send to the portal: confirm it on the page.',
    {
      connection: connectionIfKnown,
      address,
    },
  ),
  login_confirmed: event('info', 'Somebody confirmed a login that came from another device.', {
    connection: connectionIfKnown,
    address,
    user,
  }),
  connection_paired: event('info', 'A pairing has succeeded: a login was successful.', {
    connection: connectionIfKnown,
    scope: optional(text('the scope of the grant')),
    user,
  }),
  connection_unpaired: event('info', 'Somebody removed the grant of a connection.', { connection, user }),
  device_flow_approved: event('info', 'An installer let an appliance use a connection that is paired already.', {
    appliance,
    connection,
    user,
  }),
  pairing_failed: event(['debug', 'info'], 'A pairing has ended without a grant. Start another.', {
    connection: connectionIfKnown,
    reason: text('`expired`, `cancelled`, `denied` or another reason, as in `latchkey pair --json`'),
  }),
  pairing_rejected: event('warn', 'The portal gave no login link; the pairing fails.', {
    connection: connectionIfKnown,
    detail,
  }),
  pairing_crashed: event('error', 'Internal error during a pairing, which fails. Please report it.', {
    connection: connectionIfKnown,
    error,
  }),
  code_exchange_failed: event('warn', 'The portal did not exchange the authorization code for tokens.', {
    connection: connectionIfKnown,
    outcome: text('`not_sent`, `deferred`, `ambiguous`, `refused`, `misconfigured` or `rejected`'),
    detail,
  }),
  code_exchange_interrupted: event(
    'warn',
    'The hub ended while exchanging an authorization code; the login must be repeated.',
    {
      connection: connectionIfKnown,
      since: text('when the exchange began, as in RFC 3339'),
    },
  ),
  code_exchange_crashed: event('error', 'Internal error while exchanging an authorization code. Please report it.', {
    connection: connectionIfKnown,
    error,
  }),
  refresh_token_missing: event(
    'warn',
    'The portal gave no refresh token: somebody must log in again before the access token ends.',
    {
      connection: connectionIfKnown,
      expires_in: number('lifetime of the access token in seconds'),
      what_to_do: whatToDo,
    },
  ),
};

/** Sign-ins, and devices that exceed a rate limit. */
export const accessEvents = {
  signed_in: event('info', "Somebody signed in to the hub's page.", {
    address,
    by: text('`setup_code` or `sign_in_link` (the one-time address of `latchkey setup-code`)'),
  }),
  setup_code_shown: event('info', "Somebody who is signed in to the hub's page had it show the setup code.", {
    address,
  }),
  setup_code_rotated: event('warn', 'The hub has a new setup code, and all sessions of the page have ended.', {
    what_to_do: whatToDo,
  }),
  too_many_wrong_setup_codes: event('warn', 'A device typed too many wrong setup codes and has to wait.', {
    address,
    count,
  }),
  too_many_unknown_user_codes: event('warn', 'A device typed too many unknown user codes and has to wait.', {
    address,
    count,
  }),
  too_many_registrations: event('warn', 'A device tried to register too often and has to wait.', { address, count }),
  ingress_connection_refused: event(
    'warn',
    'A device other than the reverse proxy (`ingress.from`) has connected to the port of `ingress.listen`, and was refused. Logged at most every ten minutes.',
    { address, count },
  ),
  too_many_failed_authentications: event('warn', 'A device failed to authenticate too often and has to wait.', {
    address,
    count,
  }),
};
