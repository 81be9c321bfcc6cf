import type { RejectedAddressReason } from '../../../core/pairings/pairing-administration.ts';
import type { SkipReason } from '../../../core/pairings/pairing-batch.ts';
import type { UrlAddressScope } from '../../../system/addresses.ts';
import { result } from './login.ts';

/** Connecting an appliance, step by step. */
export const pairing = {
  title: (appliance: string) => `Connect ${appliance}`,
  loginTitle: (login: string) => `Connect the login “${login}”`,
  connecting: 'Waiting for the portal',
  connectingText: 'The hub is asking the portal for a login link. It appears here in a moment.',
  portalUnreachable:
    'The portal cannot be reached at the moment. Check the internet connection of this home; the hub keeps trying.',
  waiting: 'Waiting for the login',
  logIn: 'Log in at the portal',
  /** If the hub has several. */
  logInAt: (portal: string) => `Log in at “${portal}”`,
  /** By where the link works. */
  scan: {
    anywhere:
      'Or scan this QR code with another phone and log in there. That phone does not need to be in this home network.',
    home: 'Or scan this QR code with another phone in this home network and log in there.',
    machine:
      'The QR code contains the same link. The link works only on the machine that runs the hub, not on a phone.',
  } satisfies Readonly<Record<UrlAddressScope, string>>,
  qr: 'QR code with the login link',
  /** The code of a login follows. */
  enterCode: 'Enter this code there. The portal opens in a new tab, so you can come back to the code.',
  compareCode: 'Compare this code. Continue at the portal only if it shows the same one.',
  /** The address on which a browser ended after a login, if it could not open the hub’s page. */
  paste: {
    question: 'The browser shows a warning, an error or a blank page after the login?',
    /** If every login at this portal ends in that way. */
    expected:
      'After the login, the browser shows an error or a blank page. That is expected: the hub needs the address of that page. The portal opens in a new tab, so you can come back here.',
    /** If every login at this portal ends at an app. @param scheme with which the address of the app begins */
    expectedApp: (scheme: string) =>
      `This login ends at an app, and the hub needs its address, which begins with “${scheme}”. Log in on a computer. Before you do, read on the next page which browser shows this address. The portal opens in a new tab.`,
    open: 'Paste the address',
    back: 'To the login link',
    title: 'The browser shows an error or a blank page',
    why: 'The login may have worked all the same. Everything that the hub needs is in the address of that page.',
    picture: 'The whole address at the top of the browser with the error goes into the field on this page.',
    steps: {
      open: 'Leave the page with the error open, and tap the address at the top of the browser.',
      copy: 'Copy the whole address. It is long.',
      paste: 'Come back here, paste the address into the field, and tap “Connect”.',
    },
    /** A browser that allows only https does not open the hub’s page by itself. */
    httpsOnly:
      'Does the browser only warn that the page is not secure? It is set to open secure pages only. Choose to continue there: the page of the hub then opens, and there is nothing to copy.',
    /** If the login ends at an app. */
    whyApp: (scheme: string) =>
      `Everything that the hub needs is in the address to which the portal sends the browser after the login. It begins with “${scheme}”, and not every browser shows it:`,
    browsers: {
      safari: 'Safari on a Mac shows the address at the top of the window. Copy all of it.',
      chrome: (scheme: string) =>
        `Chrome and Edge stay on the page of the login. Before you log in, press F12 there and choose “Network”. After the login, right-click the last line there, and choose “Copy”, “Copy URL”. What you copied begins with “${scheme}”.`,
      firefox: 'Firefox stays on the page of the login, too, and does not show the address. Use another browser.',
      phone: 'A phone with the app of the maker opens the app instead. Use a computer.',
    },
    address: 'Address after the login',
    secret: 'Do this now: the address works only once, and for a short time. Do not show it to anybody else.',
    connect: 'Connect',
    /** Why the address was not used, and what to do. */
    problems: {
      malformed:
        'This is not the address of a page after a login. Copy the whole address, from the beginning to the end.',
      unknown: 'The hub does not know the login of this address, or its time has expired. Go back, and log in again.',
      other_pairing: 'This address belongs to another login. Go back, and log in with the link that is shown there.',
      used: 'This address was used before. Go back, and log in again.',
      foreign_issuer:
        'This address does not come from the portal, so the hub did not use it. Go back, and log in again.',
    } satisfies Readonly<Record<Exclude<RejectedAddressReason, 'ended'>, string>>,
  },
  updatesItself: 'This page updates automatically.',
  /** A time such as "in 14 minutes" follows. */
  linkExpires: 'The link expires',
  newCode: 'A new code appears here',
  /** The portal's redirect brought a browser to the hub, but the portal itself does not confirm the login. */
  unconfirmed: (address: string) => `Somebody has logged in from the address ${address}. Was it you?`,
  unconfirmedText:
    'The portal has not confirmed this login. Use it only if you know who logged in: the appliance is then connected with the account of that person.',
  confirm: 'Yes, use this login',
  exchanging: 'Somebody has logged in',
  exchangingText: 'The hub is getting the access from the portal. This takes a few seconds.',
  connectedText: 'The appliances fetch their access by themselves. The overview shows when they did.',
  superseded: 'This login link is no longer valid',
  /** What to do next. */
  nextSteps: {
    refused: 'If that was a mistake, get a new link and allow the access this time.',
    fresh: 'Get a new link and log in again.',
    newer: 'Only the newest attempt to log in counts.',
    configuration: 'Correct that in the hub’s configuration first. Then get a new link.',
    portal:
      'Get a new link. If this happens again, check the portal’s address and the permissions (“scope”) in the hub’s configuration.',
  },
  showNewer: 'Show the newest login',
  newLink: 'Get a new link',
  cancel: 'Cancel',
  notFound: 'The hub no longer knows this login',
  notFoundText: 'Tap the appliance on the overview and connect it again.',
  label: {
    heading: (appliance: string) => `Connect ${appliance} again?`,
    text: 'This page was not opened by scanning the label. Continue only if you want to connect this appliance now.',
    button: 'Continue',
    /** On the printed label. */
    caption: 'Scan to connect',
    title: (appliance: string) => `Label of ${appliance}`,
    what: 'Stick the label on the inside of the cabinet door. Anybody who scans it and knows the setup code can connect this appliance again. The label contains no secret.',
    paper: 'Only the label is printed, 60 by 40 mm. On larger paper, print at 100 % and cut the label out.',
    print: 'Print',
  },
};

/** Connecting all appliances, one after another. */
export const batch = {
  title: 'Connect all appliances',
  /** Logins are counted, because several appliances may use one. */
  progress: (done: number, all: number) => `${done} of ${all} logins done`,
  allConnected: (count: number) =>
    ['The login is done', 'Both logins are done'][count - 1] ?? `All ${count} logins are done`,
  someConnected: (done: number, all: number) => `${done} of ${all} logins ${done === 1 ? 'is' : 'are'} done`,
  noAppliances: 'There is no appliance yet',
  noAppliancesText: 'Add one on the overview first.',
  connected: 'Connected',
  notConnected: 'Not connected yet',
  /** Below a list that is cut off. */
  more: (count: number) => (count === 1 ? 'and one more' : `and ${count} more`),
  differentAccounts:
    'The appliances were connected with different accounts. If this is a mistake, tap the appliance that has the wrong account, and log in again with the right account.',
  next: (appliance: string) => `Next: ${appliance}`,
  stop: 'Stop here',
  skip: (appliance: string) => `Skip ${appliance}`,
  retry: (appliance: string) => `Try ${appliance} again`,
  retryOthers: 'Connect the others again',
  continueWithOthers: 'Continue with the others',
  openHubPage: 'To the hub’s page',
  unreachable: 'The portal cannot be reached',
  unreachableText: (appliance: string) =>
    `The hub cannot get the login link for ${appliance} at the moment. Check the internet connection of this home and try again.`,
  ended: '“Connect all” has ended',
  endedText: 'Continue on the hub’s page, or run “sudo latchkey pair --all” on the hub.',
  reasons: {
    ...result.reasons,
    waiting_for_approval: 'It is waiting for your approval.',
    not_begun: 'Not started yet.',
  } satisfies Readonly<Record<SkipReason, string>>,
};
