import type {
  ApplianceConditionCode,
  ConnectionConditionCode,
  HubConditionCode,
} from '../../../core/health/condition.ts';
import type { ApplyMethod } from '../../../core/portals/identity.ts';
import type { NoticeCode } from '../../../core/reports/notice.ts';

/** The first page of the installer. */
export const overview = {
  title: 'Overview',
  /** The hub's health, in one sentence. */
  noAppliances: 'There are no appliances yet.',
  oneConnected: (appliance: string) => `The ${appliance} is connected.`,
  allConnected: (count: number) =>
    count === 2 ? 'Both appliances are connected.' : `All ${count} appliances are connected.`,
  needsLogin: (appliance: string) => `The ${appliance} needs a new login.`,
  needsFirstLogin: (appliance: string) => `The ${appliance} is not connected yet.`,
  needsApproval: (appliance: string) => `The ${appliance} is waiting for your approval.`,
  needsAttention: (appliance: string) => `The ${appliance} needs attention.`,
  severalNeedAttention: (count: number) => `${count} appliances need attention.`,
  severalNotConnected: (count: number) => `${count} appliances are not connected yet.`,
  waitsForLogin: (appliance: string) => `The ${appliance} is waiting for the login.`,
  severalWaitForLogin: (count: number) => `${count} appliances are waiting for the login.`,
  waitsForPortal: (appliance: string) => `The ${appliance} is waiting for the portal.`,
  severalWaitForPortal: (count: number) => `${count} appliances are waiting for the portal.`,
  notRefreshed: (appliance: string) => `The access of the ${appliance} could not be refreshed; the hub keeps trying.`,
  severalNotRefreshed: (count: number) =>
    `The access of ${count} appliances could not be refreshed; the hub keeps trying.`,
  /** The same about a login that several appliances share. */
  login: {
    needsRenewal: (login: string) => `The login “${login}” must be renewed.`,
    needsRenewalFor: (login: string, appliances: string) =>
      `The login “${login}” must be renewed. This affects ${appliances}.`,
    needsAttention: (login: string) => `The login “${login}” needs attention.`,
    notConnected: (login: string) => `The login “${login}” is not connected yet.`,
    waitsForPerson: (login: string) => `Somebody has to log in for “${login}”.`,
    waitsForPortal: (login: string) => `The login “${login}” is waiting for the portal.`,
    notRefreshed: (login: string) => `The access of the login “${login}” could not be refreshed; the hub keeps trying.`,
  },
  hubNeedsAttention: 'The hub itself needs attention.',
  hubWarning: 'There is a warning about the hub.',
  hubConditions: 'What to do',
  appliances: 'Appliances',
  addFirst: 'Add the first one, then connect it.',
  add: 'Add an appliance',
  connectAll: 'Connect all',
  connectAllHint: 'One login is usually enough for all of them.',
  connectByCode: 'Connect with the code of an appliance',
  scope: 'Permissions',
  scopeByPortal: 'decided by the portal',
  portal: 'Portal',
  account: 'Account',
  lastRefresh: 'Last refreshed',
  nextRefresh: 'Next refresh',
  registered: 'Asked to join',
  lastToken: 'Last got its access',
  tokenCounts: 'How often',
  tokens: (today: number, last14Days: number) => `${today} × today, ${last14Days} × in 14 days`,
  connect: 'Connect',
  connectAgain: 'Log in again',
  showLink: 'Show the login link',
  decide: 'Allow or refuse',
  approve: 'Approve',
  reject: 'Refuse',
  registration: 'Appliances that ask to join',
  registrationHint:
    'Some appliances can ask the hub to add them. Allow this for ten minutes: each appliance that asks appears here and waits for your approval.',
  registrationOpen: 'New appliances are allowed to join. This ends',
  registrationOpenHint: 'Start the set-up on the appliance now. It appears here and waits for your approval.',
  severalRegistered: (count: number) =>
    `${count} appliances have asked to join since you allowed it. Compare the codes: approve an appliance only if it shows the same code as this page.`,
  openRegistration: 'Let appliances join for 10 minutes',
  closeRegistration: 'Stop letting appliances join',
  about: 'About this hub',
  version: 'Version',
  address: 'Address',
  noAddress: 'none',
  /** A hub of several that work together. */
  siteHub: (name: string) => `The hub ${name}`,
  thisHub: 'this hub',
  lastSeen: 'last seen',
  pin: 'Security code, by which appliances recognise this hub; it is not secret',
};

/** The state of the appliances and of the hub, and what to do. */
export const health = {
  kinds: {
    connected: 'Connected',
    held_up: 'Connected, but access not refreshed',
    interrupted: 'Interrupted',
    log_in_again: 'Log in again',
    not_connected: 'Not connected yet',
    waiting_for_login: 'Waiting for the login',
    waiting_for_portal: 'Waiting for the portal',
    waiting_for_approval: 'Waiting for your approval',
  },
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
      `The portal has ended the access. Log in at the portal again to connect the ${appliance}.`,
    credentials_untried: () =>
      'Last time, the portal did not accept the hub’s credentials (client_id and client secret). The hub is trying them again now. There is nothing to do yet.',
    portal_changed: (appliance: string) =>
      `Since the last login for the ${appliance}, the portal or client_id in the hub’s configuration was changed. If that was a mistake, undo the change and run “sudo latchkey reload” on the hub. Otherwise log in at the portal again to connect the ${appliance}.`,
    grant_damaged: (appliance: string) =>
      `The stored access of the ${appliance} was damaged on the hub’s disk. Log in at the portal again.`,
    connection_damaged: (appliance: string) =>
      `The stored data of the login for the ${appliance} was damaged on the hub’s disk, or somebody changed it there, so the hub gives no access with it. Remove this login on the hub, and log in at the portal again.`,
    login_ending: (appliance: string) =>
      `The portal ends this login soon, as it ends every login after some time. Log in again before then to keep the ${appliance} connected.`,
    permissions_missing: (appliance: string) =>
      `The ${appliance} is connected, but the portal did not grant all permissions that were asked for.`,
    approval_needed: (appliance: string) =>
      `The ${appliance} asks to join. Approve it only if it is yours. If it shows a code, it must be the same as the code below.`,
    not_paired: (appliance: string) => `Log in at the portal once to connect the ${appliance}.`,
    pairing_failed: (appliance: string) => `The last attempt to connect the ${appliance} failed.`,
    login_open: (appliance: string) => `Somebody has to log in at the portal to connect the ${appliance}.`,
    portal_awaited: () =>
      'There is nothing to do: the hub keeps asking. The login link appears here as soon as the portal sends it.',
    without_credentials: () =>
      'The hub no longer has a secret for this appliance, so the appliance gets no access. Add the appliance to the configuration again, or give it a new secret.',
    credentials_damaged: () =>
      'The stored data of this appliance was damaged on the hub’s disk, or somebody changed it there. Remove the appliance, add it again, and log in at the portal again.',
    appliance_silent: (appliance: string) =>
      `The ${appliance} has not asked for its access for a week or longer. Check whether it is switched on. If you no longer have it, remove it.`,
    appliance_asks_often: (appliance: string) =>
      `The ${appliance} asks for its access much more often than it needs to. There is nothing to do: the hub answers it as usual.`,
  } satisfies Readonly<Record<ApplianceConditionCode | ConnectionConditionCode, (appliance: string) => string>>,
  /** What to correct if the portal does not accept the hub’s own credentials. */
  corrections: {
    apply: {
      reload: 'run “sudo latchkey reload” on the hub',
      service_restart: 'restart the hub (“sudo systemctl restart latchkey”)',
      app_restart: 'restart the app in Home Assistant',
      new_start: 'stop the hub and start it again',
    } satisfies Readonly<Record<ApplyMethod, string>>,
    clientId: (portal: string, apply: string) =>
      `In the hub’s configuration, correct portals.${portal}.client_id. Then ${apply}.`,
    credentials: (portal: string, secretFile: string | undefined, apply: string) =>
      `In the hub’s configuration, correct portals.${portal}.client_id or the client secret${secretFile === undefined ? '' : ` (in ${secretFile})`}. Then ${apply}.`,
  },
  lastPairing: 'Last attempt to connect',
  newLoginOpen: 'A new login is in progress. Until it is complete, nothing changes.',
  useRequested: 'An appliance asks whether it may use this login.',
  comparisonCode: 'Code',
  registrantAddress: 'IP address',
  softwareId: 'Name that it gives itself',
  scopeChanged: 'The configuration now asks for other permissions. Log in at the portal again to apply them.',
  missingPermissions: (names: string) => `Missing: ${names}. If they are needed, log in again and allow them.`,
  withoutRefreshToken:
    'The portal gave no refresh token, so the hub cannot renew this access. Add offline_access to the permissions, and log in again.',
  problemSince: 'Problem began',
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
      'Somebody has typed wrong setup codes on this page. If it was not you, find that device (“sudo latchkey status” on the hub shows its address) and disconnect it from your network.',
  } satisfies Readonly<Record<HubConditionCode, string>>,
  /** Warnings that the state does not show. */
  warnings: {
    token_ending: (appliance: string) =>
      `The access of the ${appliance} ends soon, because the hub could not refresh it. The text below says whether you can do something.`,
    refresh_failing: () => 'Its access has not been refreshed for a day.',
  } satisfies Partial<Record<NoticeCode, (appliance: string) => string>>,
};
