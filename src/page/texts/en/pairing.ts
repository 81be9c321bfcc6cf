import type { SkipReason } from '../../../core/pairings/pairing-batch.ts';
import type { UrlReach } from '../../../system/addresses.ts';
import { loginResult } from './login.ts';

/** Connecting an appliance, step by step. */
export const pairing = {
  title: (appliance: string) => `Connect ${appliance}`,
  connecting: 'Waiting for the portal',
  connectingText: 'The hub asks the portal for a link. It is here in a moment.',
  portalUnreachable:
    'The portal cannot be reached just now. Check the internet connection of this home; the hub goes on trying by itself.',
  waiting: 'Waiting for the login',
  logIn: 'Log in at the portal',
  /** By the reach of the link. */
  scan: {
    anywhere: 'Or scan this with another phone, and log in there. It may be anywhere, also outside this home.',
    home: 'Or scan this with another phone in this home network, and log in there.',
    machine: 'The QR code is the same link. It works only on the machine that the hub runs on.',
  } satisfies Readonly<Record<UrlReach, string>>,
  qr: 'QR code of the link to log in at',
  updatesItself: 'This page follows by itself.',
  /** Before a time such as "in 14 minutes". */
  linkExpires: 'The link expires',
  /** The portal's redirect brought somebody, and the portal itself does not tell of that login. */
  unconfirmed: (address: string) => `Somebody at ${address} has logged in. Was that you?`,
  unconfirmedText:
    'The portal has not confirmed this login. Say yes only if you know whose it is: the appliance is connected with the account of that person.',
  confirm: 'Yes, use this login',
  exchanging: 'Somebody has logged in',
  exchangingText: 'The hub fetches the access from the portal. This takes a few seconds.',
  connected: (appliance: string) => `${appliance} is connected`,
  connectedText: 'The hub looks after the rest. There is nothing more to do.',
  superseded: 'This pairing has ended',
  failed: (appliance: string) => `${appliance} is not connected`,
  /** What to do next. */
  nextSteps: {
    refused: 'If that was a mistake, take a fresh link and allow the access this time.',
    fresh: 'Take a fresh link and log in once more.',
    newer: 'Another pairing of this appliance is the one that counts.',
    configuration: 'Correct that in the hub’s configuration first, and then take a fresh link.',
    portal:
      'Take a fresh link. If that happens again, check the portal’s address and the scope in the hub’s configuration.',
  },
  showNewer: 'Show the newer one',
  newLink: 'Take a fresh link',
  cancel: 'Cancel',
  toOverview: 'To the overview',
  notFound: 'This pairing is not known any more',
  notFoundText: 'Begin a new one on the appliance’s page.',
  notPossible: 'That is not possible just now',
  tooMany: 'Too many pairings are open, or the appliance is not approved yet. See to that first, and try again.',
  storeUnwritable: 'The hub cannot save anything. Make room on its disk, or replace its memory card, and try again.',
  label: {
    heading: (appliance: string) => `Connect ${appliance} again?`,
    text: 'Something else than the label’s own code has led you here. Go on only if you want to connect this appliance now.',
    button: 'Go on',
    /** On the printed label. */
    caption: 'Scan to connect',
    title: (appliance: string) => `Label of ${appliance}`,
    what: 'Stick it inside the cabinet’s door. Whoever scans it, and knows the setup code, connects this appliance again. There is no secret on it.',
    paper: 'Only the label is printed, 60 by 40 mm. On larger paper, print at 100 % and cut it out.',
    print: 'Print',
  },
};

/** All appliances connected one after the other. */
export const pairingBatch = {
  title: 'Connect all appliances',
  progress: (connected: number, all: number) => `${connected} of ${all} connected`,
  allConnected: (count: number) =>
    ['Your appliance is connected', 'Both appliances are connected'][count - 1] ??
    `All ${count} appliances are connected`,
  someConnected: (connected: number, all: number) =>
    `${connected} of ${all} appliances ${connected === 1 ? 'is' : 'are'} connected`,
  noAppliances: 'There is no appliance yet',
  noAppliancesText: 'Add one on the overview first.',
  connected: 'Connected',
  notConnected: 'Not connected yet',
  /** Below a list that does not show all. */
  more: (count: number) => (count === 1 ? 'and one more' : `and ${count} more`),
  differentAccounts:
    'The appliances were connected with different accounts. If that was not meant, open the wrong one and log in again.',
  next: (appliance: string) => `Next: ${appliance}`,
  stop: 'Stop here',
  skip: (appliance: string) => `Skip ${appliance}`,
  retry: (appliance: string) => `Try ${appliance} again`,
  retryOthers: 'Connect the others again',
  continueWithOthers: 'Go on with the others',
  /** On the phone that has logged in. */
  mayClosePage: 'That was the last one. You can close this page.',
  openHubPage: 'To the hub’s page',
  unreachable: 'The portal is out of reach',
  unreachableText: (appliance: string) =>
    `The hub cannot get the link for ${appliance} just now. Check that this home is online, and try again.`,
  ended: 'This round has ended',
  endedText: 'Go on at the hub’s page, or with “latchkey pair --all”.',
  reasons: {
    ...loginResult.reasons,
    waiting_for_approval: 'It waits for your approval.',
    not_begun: 'Its turn has not come yet.',
  } satisfies Readonly<Record<SkipReason, string>>,
};
