import type { PairingFailureReason } from '../../../core/pairings/pairing.ts';

/** The page on which a person types the code that an appliance shows. */
export const code = {
  heading: 'Connect an appliance',
  enterCode: 'Type the code that the appliance shows: eight letters.',
  checkCode: 'Continue only if your appliance has opened this page or shows this code.',
  unknownCode: 'No waiting appliance has this code.',
  unknownCodeText:
    'Compare it with the code on the appliance. If the appliance has shown that code for some time, start connecting again on the appliance.',
  label: 'Code',
  continueButton: 'Continue',
  confirm: (appliance: string) => `Connect ${appliance}?`,
  /** An appliance that shares its login, or uses several. */
  confirmLogin: (appliance: string, login: string) => `Connect ${appliance} with the login “${login}”?`,
  logInAgain: 'Please log in at the portal again.',
  portalDecides: 'The portal decides what the appliance may do.',
  /** The text before and after the requested permissions; the next two texts join these. */
  scopePrefix: 'It asks for these permissions: ',
  scopeSuffix: '.',
  comma: ', ',
  and: ' and ',
  compare: 'Continue only if the appliance, or its app, has opened this page or shows this code:',
  compareToAllow: 'Allow it only if the appliance, or its app, has opened this page or shows this code:',
  notYours: 'A different code, or not your appliance? Then close this page.',
  loginNext: 'Next, you log in at the portal.',
  /** An appliance whose login is connected already. */
  mayUse: (appliance: string, login: string) => `May ${appliance} use the login “${login}”?`,
  mayUseOwn: (appliance: string) => `May ${appliance} use its login again?`,
  signInToDecide:
    'The hub is connected with this login already, so nobody needs to log in at the portal. To allow it, sign in with the setup code.',
  signIn: 'Sign in to decide',
  loginInstead: 'Log in at the portal instead',
  connectedAlready: 'The hub is connected with this login already, so nobody needs to log in at the portal.',
  allow: 'Allow',
  unreachableText:
    'The hub cannot reach the portal at the moment. Check the internet connection of this home. The code stays valid.',
  tryAgain: 'Try again',
  codeReplaced: (appliance: string) => `${appliance} now shows a different code`,
  codeReplacedText:
    'The appliance has started connecting again. If you have already logged in, reload this page to see the result.',
  typeNewCode: 'Type the new code',
  typeCode: 'Type the code',
  tooManyAttempts: 'Too many wrong codes',
  tooManyAttemptsText: (seconds: number) => `Wait ${seconds} s, then type the code again.`,
};

/** The page with a code that a person types at the portal. */
export const portalCode = {
  heading: 'The portal asks for a code',
  /** The code follows. */
  text: 'Open the portal, and enter this code there. The portal opens in a new tab, so you can come back to the code.',
  compareHeading: 'The portal shows a code',
  /** The code follows. */
  compare:
    'Open the portal, and continue there only if it shows this code. The portal opens in a new tab, so you can come back to the code.',
  notOfAppliance: 'It is not the code that the appliance shows.',
  /** @param host of the address that the button opens */
  logIn: (host: string) => `Log in at ${host}`,
  after:
    'After the login you can close this page. The appliances fetch their access by themselves; the hub’s page shows when they did.',
  afterInBatch: 'After the login, continue on the hub’s page.',
};

const LOST = 'The portal’s answer was lost on the way.';

/** The last page of a login: the state or the result of a pairing. */
export const result = {
  connected: (appliances: string, count: number) => `${appliances} ${count === 1 ? 'is' : 'are'} connected`,
  connectedText:
    'You can close this page. The appliances fetch their access by themselves; the hub’s page shows when they did.',
  notConnectedYet: (appliances: string, count: number) =>
    `${appliances} ${count === 1 ? 'is' : 'are'} not connected yet`,
  /** Failures between a login and the grant, after which a person can log in again. */
  loginFailures: {
    code_refused: 'The portal no longer accepted this login, perhaps because it took too long.',
    answer_lost: LOST,
  },
  /** The portal's redirect brought a browser here, but the portal itself does not confirm the login. */
  unconfirmed:
    'The portal has not confirmed this login to the hub. If you have the setup code, confirm the login on the hub’s page within a minute; otherwise ask somebody who has it. This page updates automatically.',
  unconfirmedTooLate: 'Nobody has confirmed this login in time.',
  reopenLink: 'Open the login link again and log in.',
  useNewLink: 'The hub makes a new link, which appears where you found this one. Open it and log in again.',
  connecting: (appliances: string, count: number) => `${appliances} ${count === 1 ? 'is' : 'are'} being connected`,
  connectingText: 'The hub is waiting for the portal. This page updates automatically.',
  notConnected: (appliances: string, count: number) => `${appliances} ${count === 1 ? 'is' : 'are'} not connected`,
  reasons: {
    refused_by_user: 'Somebody did not allow the access, or the portal refused it.',
    expired: 'The time for this login has expired.',
    replaced: 'A newer login link has replaced this one.',
    cancelled: 'The attempt was cancelled or skipped at the hub.',
    portal_rejected: 'The portal rejected the hub’s request.',
    foreign_origin: 'The portal returned an address that is not its own, so the hub cancelled this login.',
    code_refused: 'The portal did not accept the login.',
    answer_lost: LOST,
    misconfigured: 'The portal does not accept the hub’s credentials (client_id and client secret).',
    client_unknown: 'The portal does not know the hub’s client_id.',
  } satisfies Readonly<Record<PairingFailureReason, string>>,
  /** What to do next, for a pairing that the appliance started and for one that the installer started. */
  nextSteps: {
    startOnAppliance: 'Start connecting again on the appliance.',
    startAtHub: 'You can try again on the hub’s page.',
    ifAgain: 'If this happens again, check the hub’s configuration.',
    otherLink: 'Use the newer link.',
    checkConfiguration: 'Check the hub’s configuration.',
  },
  malformed: 'This address is not valid',
  malformedText: 'This is not an address that the portal opens after a login. Open the login link again and log in.',
  noCode: 'The login is not finished',
  noCodeText: 'The portal sent the hub no code for this login. Open the login link again and log in.',
  usedLink: 'This login was used already',
  usedLinkText: 'Each login link works once. On the hub’s page, open the newest link and log in again.',
  foreignIssuer: 'This login does not come from the portal',
  foreignIssuerText: 'The hub did not use it. On the hub’s page, open the newest link and log in again.',
  unknownLink: 'This link is no longer valid',
  unknownLinkText:
    'The hub does not know this login. On the hub’s page, connect the appliance again, and open the new link.',
};
