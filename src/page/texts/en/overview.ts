import type { ApplianceConditionCode, HubConditionCode } from '../../../core/health/condition.ts';
import type { ApplyMethod } from '../../../core/portal.ts';
import type { NoticeCode } from '../../../core/reports/notice.ts';

/** The first page of the installer's. */
export const overview = {
  title: 'Overview',
  /** The hub's health, in one sentence. */
  noAppliances: 'There are no appliances yet.',
  oneConnected: (appliance: string) => `The ${appliance} is connected.`,
  allConnected: (count: number) =>
    count === 2 ? 'Both appliances are connected.' : `All ${count} appliances are connected.`,
  needsLogin: (appliance: string) => `The ${appliance} needs you: log in again.`,
  needsFirstLogin: (appliance: string) => `The ${appliance} is not connected yet.`,
  needsApproval: (appliance: string) => `The ${appliance} waits for your approval.`,
  needsAttention: (appliance: string) => `The ${appliance} needs you.`,
  severalNeedAttention: (count: number) => `${count} appliances need you.`,
  severalNotConnected: (count: number) => `${count} appliances are not connected yet.`,
  waitsForLogin: (appliance: string) => `The ${appliance} waits for the login.`,
  severalWaitForLogin: (count: number) => `${count} appliances wait for the login.`,
  waitsForPortal: (appliance: string) => `The ${appliance} waits for the portal.`,
  severalWaitForPortal: (count: number) => `${count} appliances wait for the portal.`,
  notRefreshed: (appliance: string) => `The ${appliance} could not be refreshed; the hub goes on trying.`,
  severalNotRefreshed: (count: number) => `${count} appliances could not be refreshed; the hub goes on trying.`,
  hubNeedsAttention: 'The hub itself needs you.',
  hubWarning: 'The hub has something to tell you.',
  hubConditions: 'What to do',
  appliances: 'Appliances',
  addFirst: 'Add the first one, then connect it.',
  add: 'Add an appliance',
  connectAll: 'Connect all',
  connectAllHint: 'One login is usually enough for all of them.',
  connectByCode: 'Connect by an appliance’s code',
  scope: 'Permissions',
  scopeByPortal: 'as the portal decides',
  portal: 'Portal',
  account: 'Account',
  lastRefresh: 'Last refreshed',
  nextRefresh: 'Next refresh',
  registered: 'Asked to join',
  connect: 'Connect',
  connectAgain: 'Log in again',
  showLink: 'Show the login link',
  approve: 'Approve',
  reject: 'Refuse',
  registration: 'Appliances that ask to join',
  registrationHint:
    'Some appliances can ask the hub to join. Let them do so for ten minutes; each of them then waits here until you approve it.',
  registrationOpen: 'New appliances may join. That ends',
  registrationOpenHint: 'Start the set-up on the appliance now. It appears here, and waits until you approve it.',
  severalRegistered: (count: number) =>
    `${count} appliances asked to join since that is allowed. Compare the codes: approve an appliance only if it shows the same code as this page.`,
  openRegistration: 'Let appliances join for 10 minutes',
  closeRegistration: 'End this now',
  about: 'About this hub',
  version: 'Version',
  address: 'Address',
  noAddress: 'none',
  pin: 'Security code',
};

/** How appliances and the hub stand, and what to do. */
export const health = {
  kinds: {
    connected: 'Connected',
    held_up: 'Connected, but not refreshed',
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
      'The portal could not be reached. Check the internet connection of this home; the hub goes on trying.',
    portal_deferred: () => 'The portal asked for patience. There is nothing to do: the hub tries again by itself.',
    portal_rejected: () =>
      'The portal turned the hub away. The hub goes on trying. If this lasts, check the portal’s address in the configuration, and any firewall on the way.',
    answer_lost: () => 'An answer of the portal was lost on the way. The hub tries again by itself.',
    misconfigured: () => 'The portal does not accept the hub’s client_id and client secret.',
    clock_unknown: () => 'The hub does not know the right time yet. It goes on by itself once it does.',
    store_unwritable: () => 'The hub cannot save anything. Make room on its disk, or replace its memory card.',
    refused: (appliance: string) => `The portal has ended the access. Log in again to connect the ${appliance}.`,
    credentials_untried: () =>
      'The portal did not accept the hub’s client_id and client secret before. There is nothing to do yet: the hub tries them again now.',
    portal_changed: (appliance: string) =>
      `The hub’s configuration names another portal or client_id than the one that the ${appliance} was connected with. If that was not meant, change it back and run “sudo latchkey reload”; else log in again to connect the ${appliance}.`,
    grant_damaged: (appliance: string) =>
      `Its access was damaged on the hub’s disk. Log in again to connect the ${appliance}.`,
    approval_needed: (appliance: string) =>
      `The ${appliance} asks to join. Approve it only if it is yours. If it shows a code, that must be the one below.`,
    not_paired: (appliance: string) => `Log in once to connect the ${appliance}.`,
    pairing_failed: (appliance: string) => `The last pairing of the ${appliance} failed.`,
    login_open: (appliance: string) => `Someone has to log in at the portal to connect the ${appliance}.`,
    portal_awaited: () =>
      'There is nothing to do: the hub goes on asking, and the link for the login is here once the portal gives one.',
    without_credentials: () =>
      'It has no secret any more, so it gets no access. Add it to the configuration again, or give it a new secret.',
    credentials_damaged: () =>
      'Its entry was damaged on the hub’s disk, or changed there by someone. Remove it, add it again, and log in again.',
  } satisfies Readonly<Record<ApplianceConditionCode, (appliance: string) => string>>,
  /** What to correct where the portal does not take the hub’s own credentials. */
  corrections: {
    apply: {
      reload: 'run “latchkey reload”',
      service_restart: 'restart the hub (“sudo systemctl restart latchkey”)',
      new_start: 'end the hub and start it again',
    } satisfies Readonly<Record<ApplyMethod, string>>,
    clientId: (portal: string) =>
      `Correct portals.${portal}.client_id in the hub’s configuration, and run “latchkey reload”.`,
    credentials: (portal: string, secretFile: string | undefined, apply: string) =>
      `Correct portals.${portal}.client_id in the hub’s configuration, or the client secret${secretFile === undefined ? '' : ` in ${secretFile}`}, and ${apply}.`,
  },
  lastPairing: 'Last pairing',
  newLoginOpen: 'A new login is under way; until then all stays as it is.',
  comparisonCode: 'Code',
  registrantAddress: 'Its address',
  softwareId: 'Calls itself',
  scopeChanged: 'The configuration asks for other access by now. Log in again to bring it into effect.',
  problemSince: 'Trouble began',
  tokenExpires: 'Access ends',
  /** Of the hub as a whole. */
  hub: {
    hub_id_taken:
      'Another hub in this network says that it is this one. If a memory card was copied, switch one of the two off.',
    hub_name_claimed:
      'Another device in this network uses the hub’s name. Your appliances are safe: they know the hub by more than its name.',
    not_announced: 'Appliances may not find this hub in the network by themselves. Check the hub’s network.',
    store_changed:
      'Entries of the hub’s memory were damaged, or changed by someone. Look through the appliances; those that get no access have to be removed and added again.',
    store_recovered:
      'The hub’s memory was damaged and has been repaired. Look through the appliances, and replace the memory card soon.',
    store_unwritable: 'The hub cannot save anything. Make room on its disk, or replace its memory card.',
    wrong_setup_codes:
      'Someone has typed wrong setup codes at this page. If that was not you, look for the device in your network that did.',
  } satisfies Readonly<Record<HubConditionCode, string>>,
  /** What the hub warns of where the state does not say it. */
  warnings: {
    token_ending: (appliance: string) =>
      `The ${appliance} is about to lose its access, because that could not be refreshed. See to it soon.`,
    refresh_failing: () => 'Its access has not been refreshed for a day.',
  } satisfies Partial<Record<NoticeCode, (appliance: string) => string>>,
};
