import type { HUB_FIELDS } from '../../../core/administration.ts';
import type { APPLIANCE_FIELDS } from '../../../core/appliances/appliance-status.ts';
import type { CONNECTION_FIELDS } from '../../../core/connections/connection-status.ts';
import type { ApplianceConditionCode } from '../../../core/health/appliance-conditions.ts';
import type { ConnectionConditionCode } from '../../../core/health/connection-conditions.ts';
import type { HubConditionCode } from '../../../core/health/hub-conditions.ts';
import type { NoticeCode } from '../../../core/health/notice.ts';
import type { ApplyMethod } from '../../../core/portals/identity.ts';
import type { PageField } from '../../../core/status-field.ts';

/** The state of the appliances and of the hub, and what to do. */
export const states = {
  kinds: {
    connected: 'Connected',
    held_up: 'Connected, but access not refreshed',
    interrupted: 'Interrupted',
    log_in_again: 'Log in again',
    not_connected: 'Not connected yet',
    waiting_for_login: 'Waiting for the login',
    waiting_for_portal: 'Waiting for the portal',
    waiting_for_approval: 'Waiting for your approval',
    not_used_yet: 'Logged in, but not used yet',
    refused: 'Logged in, but asks with wrong credentials',
  },
  /** The fields of `status` that the page shows. */
  fields: {
    version: 'Version',
    refreshIn: 'Next refresh',
    lastRefresh: 'Last refreshed',
    loginEnds: 'Login ends',
    lastToken: 'Last got its access',
  } satisfies Readonly<
    Record<PageField<typeof HUB_FIELDS & typeof CONNECTION_FIELDS & typeof APPLIANCE_FIELDS>, string>
  >,
  /** What is wrong, and what to do about it. */
  conditions: {
    portal_unreachable: () =>
      'The portal could not be reached. Check the internet connection of this home; the hub keeps trying.',
    portal_deferred: () =>
      'The portal asked the hub to wait. There is nothing to do: the hub tries again automatically.',
    portal_rejected: () =>
      'The portal rejected the hub’s request. The hub keeps trying. If this continues, check the portal’s address in the configuration, and any firewall on the way.',
    answer_lost: () => 'An answer of the portal was lost on the way. The hub tries again automatically.',
    misconfigured: () => 'The portal does not accept the hub’s credentials (client_id and client secret).',
    clock_unknown: () => 'The hub does not know the right time yet. It continues automatically as soon as it does.',
    store_unwritable: () => 'The hub cannot save anything. Free space on its disk, or replace its SD card.',
    database_unavailable: () =>
      'The hub cannot reach the database that it shares with other hubs. It continues automatically as soon as it can.',
    refused: (appliance: string) =>
      `The portal has ended the access. Log in at the portal again to connect ${appliance}.`,
    access_token_rejected: () =>
      'An appliance reports that the portal rejects its access. There is nothing to do: the hub gets a new one, but at most once a minute. If the portal rejects that one as well, check the account and its permissions at the portal.',
    credentials_untried: () =>
      'Last time, the portal did not accept the hub’s credentials (client_id and client secret). The hub is trying them again now. There is nothing to do yet.',
    portal_changed: (appliance: string) =>
      `Since the last login for ${appliance}, the portal or client_id in the hub’s configuration was changed. If that was a mistake, undo the change and run “sudo latchkey reload” on the hub. Otherwise log in at the portal again to connect ${appliance}.`,
    portal_missing: (appliance: string) =>
      `The portal at which somebody logged in for ${appliance} is missing from the hub’s configuration. Add it again; a new login is not needed.`,
    grant_damaged: (appliance: string) =>
      `The stored access of ${appliance} was damaged on the hub’s disk. Log in at the portal again.`,
    connection_damaged: (appliance: string) =>
      `The stored data of the login for ${appliance} was damaged on the hub’s disk, or somebody changed it there, so the hub gives no access with it. Remove this login on the hub, and log in at the portal again.`,
    login_ending: (appliance: string) =>
      `The portal ends this login soon, as it ends every login after some time. Log in again before then to keep ${appliance} connected.`,
    permissions_missing: (appliance: string) =>
      `${appliance} is connected, but the portal did not grant all permissions that were asked for.`,
    approval_needed: (appliance: string) =>
      `${appliance} asks to join. Approve it only if it is yours. If it shows a code, it must be the same as the code below.`,
    not_paired: (appliance: string) => `Log in at the portal once to connect ${appliance}.`,
    pairing_failed: (appliance: string) => `The last attempt to connect ${appliance} failed.`,
    login_open: (appliance: string) => `Somebody has to log in at the portal to connect ${appliance}.`,
    portal_awaited: () =>
      'There is nothing to do: the hub keeps asking. The login link appears here as soon as the portal sends it.',
    without_credentials: () =>
      'The hub no longer has a secret for this appliance, so the appliance gets no access. Add the appliance to the configuration again, or give it a new secret.',
    credentials_damaged: () =>
      'The stored data of this appliance was damaged on the hub’s disk, or somebody changed it there. Remove the appliance, add it again, and log in at the portal again.',
    appliance_refused: (appliance: string) =>
      `Requests for ${appliance} come with a wrong client ID or secret, so they get no access. Enter both in the appliance again. If the secret is lost, make a new one on the page of the appliance.`,
    appliance_never_served: (appliance: string) =>
      `${appliance} has not fetched its access yet. Enter client ID, secret and address in the appliance, and switch it on. If the secret is lost, make a new one on the page of the appliance, below “More”.`,
    appliance_silent: (appliance: string) =>
      `${appliance} has not asked for its access for a week or longer. Check whether it is switched on. If you no longer have it, remove it.`,
    appliance_asks_often: (appliance: string) =>
      `${appliance} asks for its access much more often than it needs to. There is nothing to do: the hub answers it as usual.`,
  } satisfies Readonly<Record<ApplianceConditionCode | ConnectionConditionCode, (appliance: string) => string>>,
  /** Of one of several connections of an appliance. */
  neverServedOf: (appliance: string, connection: string) =>
    `${appliance} has not fetched its access to ${connection} yet. Enter the address for ${connection} in ${appliance}. If it does not need ${connection}, choose its logins on its page: “More”, then “Use other logins”.`,
  /** What to correct if the portal does not accept the hub’s own credentials. */
  corrections: {
    apply: {
      reload: 'run “sudo latchkey reload” on the hub',
      service_restart: 'restart the hub (“sudo systemctl restart latchkey”)',
      app_restart: 'restart the app in Home Assistant',
      new_start: 'stop the hub and start it again',
    } satisfies Readonly<Record<Exclude<ApplyMethod, 'enter_again'>, string>>,
    /** Of a portal that was added. */
    enterAgain: 'Enter the client ID and the client secret of this portal again.',
    clientId: (portal: string, apply: string) =>
      `In the hub’s configuration, correct portals.${portal}.client_id. Then ${apply}.`,
    credentials: (portal: string, secretFile: string | undefined, apply: string) =>
      `In the hub’s configuration, correct portals.${portal}.client_id or the client secret${secretFile === undefined ? '' : ` (in ${secretFile})`}. Then ${apply}.`,
  },
  /** Below the state of an appliance with which nothing is wrong. */
  allWell: 'All is well: there is nothing to do.',
  secretUnused: (appliance: string) =>
    `${appliance} has not asked with its new secret yet. Enter the new secret in the appliance.`,
  lastPairing: 'Last attempt to connect',
  newLoginOpen: 'A new login is in progress. Until it is complete, nothing changes.',
  useRequested: 'An appliance asks whether it may use this login.',
  ownUseRequested: (appliance: string) => `${appliance} asks whether it may use its login again.`,
  comparisonCode: 'Code',
  registrantAddress: 'IP address',
  softwareId: 'Software',
  scopeChanged: 'The configuration now asks for other permissions. Log in at the portal again to apply them.',
  missingPermissions: (names: string) => `Missing: ${names}. If they are needed, log in again and allow them.`,
  withoutRefreshToken:
    'The portal gave no refresh token, so the hub cannot renew this access. Add offline_access to the permissions, and log in again.',
  problemSince: 'Problem began',
  /** Requests with wrong credentials; a time and an address follow. */
  refusedRequests: 'Refused requests',
  refusals: (count: number, address: string) => `${count} ×, from ${address}, since`,
  neverServed: 'not yet',
  tokenExpires: 'Access expires',
  /** Conditions of the hub itself. */
  hub: {
    certificate_expired:
      'The hub’s certificate has expired, so browsers warn and appliances may get no access. Ask the person who set up the hub’s own web address to renew the certificate.',
    certificate_expiring:
      'The hub’s certificate expires soon and was not renewed automatically. Ask the person who set up the hub’s own web address to renew the certificate.',
    hub_id_taken:
      'Another hub in this network has the same identity as this one. If an SD card was copied, switch one of the two off.',
    hub_missing:
      'Another hub of this site has not been seen for a while. Check its power and its network (“About this hub” below lists the hubs).',
    hub_name_claimed:
      'Another device in this network uses the hub’s name. Your appliances are safe, because they also check the hub’s security code. Find that device (“sudo latchkey status” on the hub shows its address), and rename it or disconnect it from the network.',
    not_announced:
      'Appliances may be unable to find this hub in the network automatically. Check the hub’s network connection.',
    no_portal: 'No portal is chosen yet.',
    client_rejected:
      'A portal does not accept the hub’s own credentials (client_id and client secret), so no login can succeed. Ask the person who set up the hub to correct them: “sudo latchkey status” on the hub shows where.',
    portal_moved:
      'A portal says that it has moved to another address. Before the hub sends your access there, ask the portal’s support whether that is true. “sudo latchkey status” on the hub shows both addresses, and how to confirm the new one.',
    database_unavailable:
      'The hub cannot reach the database that it shares with other hubs. Appliances that are connected keep the access that they have, but it is not refreshed. Check the database server and the network; the hub then continues automatically.',
    store_changed:
      'Some of the hub’s stored data was damaged, or somebody changed it. Check the appliances: remove each one that gets no access, and add it again.',
    store_recovered:
      'The hub’s stored data was damaged or missing, and was restored from a copy. Check below whether every appliance is connected. If nobody has just restored a backup, replace the SD card soon.',
    store_slow:
      'The hub’s SD card is very slow, as cards often are before they fail. Make a backup now (“sudo latchkey backup FILE” on the hub), and then replace the card.',
    store_volatile:
      'Nothing that the hub saves survives a restart of its machine: afterwards all appliances must be connected again. Ask the person who set up the hub to turn off the “Overlay File System” (“sudo raspi-config” on the hub, under Performance Options).',
    store_unwritable: 'The hub cannot save anything. Free space on its disk, or replace its SD card.',
    wrong_setup_codes:
      'Somebody has typed wrong setup codes on this page. If it was not you, find that device and disconnect it from your network.',
  } satisfies Readonly<Record<HubConditionCode, string>>,
  /** Behind the text of a condition that a device causes. */
  deviceAddress: (address: string) => `The address of the device is ${address}.`,
  /** Notices by command and webhook; the English ones have messages of their own. */
  notices: {
    hub: 'The hub',
    over: (about: string) => `${about}: this is over`,
    test: 'This is a test: notices from this hub arrive here',
    open: (url: string) => `See ${url}`,
    nothing: 'Nothing',
  },
  /** Warnings that the state does not show. */
  warnings: {
    token_ending: (appliance: string) =>
      `The access of ${appliance} ends soon, because the hub could not refresh it. The text below says whether you can do something.`,
    refresh_failing: () => 'Its access has not been refreshed for a day.',
  } satisfies Partial<Record<NoticeCode, (appliance: string) => string>>,
};
