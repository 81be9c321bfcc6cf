import type { HubProblem } from '../../../core/administration.ts';
import type { NoticeCode } from '../../../core/reports/notice.ts';
import type { ProblemCode } from '../../../core/reports/problem.ts';

/** How appliances and the hub stand, and what to do. */
export const states = {
  kinds: {
    connected: 'Connected',
    held_up: 'Connected, but not refreshed',
    interrupted: 'Interrupted',
    log_in_again: 'Log in again',
    not_connected: 'Not connected yet',
    waiting_for_login: 'Waiting for the login',
    waiting_for_approval: 'Waiting for your approval',
  },
  /** What is wrong, and what to do about it. */
  problems: {
    portal_unreachable: () =>
      'The portal cannot be reached. Check the internet connection of this home; the hub goes on trying.',
    portal_deferred: () => 'The portal asked for patience. There is nothing to do: the hub tries again by itself.',
    portal_rejected: () =>
      'The portal turned the hub away. The hub goes on trying. If this lasts, check the portal’s address in the configuration, and any firewall on the way.',
    answer_lost: () => 'An answer of the portal was lost on the way. The hub tries again by itself.',
    misconfigured: () =>
      'The portal does not accept the hub’s own credentials. Correct client_id and client secret of the portal in the hub’s configuration.',
    clock_unknown: () => 'The hub does not know the right time yet. It goes on by itself once it does.',
    store_unwritable: () => 'The hub cannot save anything. Make room on its disk, or replace its memory card.',
    refused: (appliance: string) => `The portal has ended the access. Log in again to connect the ${appliance}.`,
  } satisfies Readonly<Record<ProblemCode, (appliance: string) => string>>,
  unpaired: (appliance: string) => `Log in once to connect the ${appliance}.`,
  loginOpen: (appliance: string) => `Someone has to log in at the portal to connect the ${appliance}.`,
  newLoginOpen: 'A new login is under way; until then all stays as it is.',
  needsLogin: (appliance: string) => `Log in again to connect the ${appliance}.`,
  approval: (appliance: string) =>
    `The ${appliance} has introduced itself. Approve it only if it is yours. If it shows a code, that must be the one below.`,
  comparisonCode: 'Code',
  askedFrom: 'Its address',
  calledItself: 'Calls itself',
  withoutCredentials:
    'It has no secret any more, so it gets no access. Add it to the configuration again, or give it a new secret.',
  credentialsDamaged:
    'Its entry was damaged on the hub’s disk, or changed there by someone. Remove it, add it again, and log in again.',
  otherScope: 'The configuration asks for other access by now. Log in again to bring it into effect.',
  troubleBegan: 'Trouble began',
  serves: 'Access ends',
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
  } satisfies Readonly<Record<HubProblem['code'], string>>,
  /** What the hub warns of where the state does not say it. */
  warnings: {
    token_ending: (appliance: string) =>
      `The ${appliance} is about to lose its access, because that could not be refreshed. See to it soon.`,
    refresh_failing: () => 'Its access has not been refreshed for a day.',
  } satisfies Partial<Record<NoticeCode, (appliance: string) => string>>,
};
