import type { LeftOutReason } from '../../../core/pairings/round.ts';
import { result } from './result.ts';

/** All appliances connected one after the other. */
export const round = {
  title: 'Connect all appliances',
  progress: (connected: number, all: number) => `${connected} of ${all} connected`,
  done: (count: number) =>
    ['Your appliance is connected', 'Both appliances are connected'][count - 1] ??
    `All ${count} appliances are connected`,
  notAll: (connected: number, all: number) =>
    `${connected} of ${all} appliances ${connected === 1 ? 'is' : 'are'} connected`,
  none: 'There is no appliance yet',
  noneText: 'Add one on the overview first.',
  connected: 'Connected',
  open: 'Not connected yet',
  /** Below a list that does not show all. */
  more: (count: number) => (count === 1 ? 'and one more' : `and ${count} more`),
  accounts:
    'The appliances were connected with different accounts. If that was not meant, open the wrong one and log in again.',
  next: (appliance: string) => `Next: ${appliance}`,
  stop: 'Stop here',
  skip: (appliance: string) => `Skip ${appliance}`,
  again: (appliance: string) => `Try ${appliance} again`,
  others: 'Connect the others again',
  goOn: 'Go on with the others',
  /** On the phone that has logged in. */
  closing: 'That was the last one. You can close this page.',
  toHub: 'To the hub’s page',
  unreachable: 'The portal is out of reach',
  unreachableText: (appliance: string) =>
    `The hub cannot get the link for ${appliance} just now. Check that this home is online, and try again.`,
  over: 'This round has ended',
  overText: 'Go on at the hub’s page, or with “latchkey pair --all”.',
  reasons: {
    ...result.reasons,
    waiting_for_approval: 'It waits for your approval.',
    not_begun: 'Its turn has not come yet.',
  } satisfies Readonly<Record<LeftOutReason, string>>,
};
