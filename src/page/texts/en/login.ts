import type { PairingFailureReason } from '../../../core/pairings/pairing.ts';

/** The page that takes the code which an appliance shows. */
export const userCode = {
  heading: 'Connect an appliance',
  enterCode: 'Type the code that the appliance shows: eight letters.',
  checkCode: 'Continue only if your appliance shows this code.',
  unknownCode: 'No appliance waits with this code.',
  unknownCodeText:
    'Compare it with the appliance. If it has been there a while, start the pairing on the appliance once more.',
  label: 'Code',
  continueButton: 'Continue',
  confirm: (appliance: string) => `Connect ${appliance}?`,
  logInAgain: 'Please log in once more.',
  portalDecides: 'The portal says what it may do.',
  /** Around the names of what an appliance asks for, which are joined by the next two. */
  scopePrefix: 'It asks for access to ',
  scopeSuffix: '.',
  comma: ', ',
  and: ' and ',
  compare: 'Go on only if the appliance, or its app, shows this code:',
  notYours: 'Another code, or not your appliance? Then close this page.',
  loginNext: 'You log in at the portal next.',
  unreachable: 'The portal is out of reach',
  unreachableText: 'The hub cannot reach it just now. Check that this home is online; the code stays good.',
  tryAgain: 'Try again',
  codeReplaced: (appliance: string) => `${appliance} shows another code by now`,
  codeReplacedText:
    'It has started its pairing once more. If you have logged in already, this page tells how that ended when you load it again.',
  typeNewCode: 'Type the new code',
  tooManyPairings: 'Too many pairings are open',
  tooManyPairingsText: 'Wait a few minutes, and then go back and try again; the code stays good.',
  crossSite: 'This came from another site',
  crossSiteText: 'Open the link on the appliance, or type its code.',
  notAForm: 'This is not a form',
  notAFormText: 'Codes are taken as a form sends them.',
  malformedRequest: 'This address is not right',
  malformedRequestText: 'Open the link on the appliance once more, or type its code.',
  typeCode: 'Type the code',
  tooManyAttempts: 'Too many wrong codes',
  tooManyAttemptsText: (seconds: number) => `Wait ${seconds} s, and then type the code once more.`,
};

const LOST = 'The portal’s answer was lost on the way.';

/** What the last page of a login says: how a pairing stands, or ended. */
export const loginResult = {
  connected: (appliance: string) => `${appliance} is connected`,
  connectedText: 'You can close this page. The hub looks after the rest.',
  notConnectedYet: (appliance: string) => `${appliance} is not connected yet`,
  /** Between a login and the grant; told to who may log in once more. */
  loginFailures: {
    code_refused: 'The portal did not accept this login any more, perhaps because it took too long.',
    answer_lost: LOST,
  },
  /** The portal's redirect brought somebody here, and the portal itself does not tell of their login. */
  unconfirmed:
    'The portal has not confirmed this login to the hub. Whoever looks after the hub can confirm it on the hub’s page within a minute. This page looks again by itself.',
  unconfirmedTooLate: 'Nobody has confirmed this login in time.',
  reopenLink: 'Open the pairing link once more and log in again.',
  useNewLink: 'The hub makes a fresh link: open that one and log in once more.',
  connecting: (appliance: string) => `${appliance} is being connected`,
  connectingText: 'The hub waits for the portal. This page looks again by itself.',
  notConnected: (appliance: string) => `${appliance} is not connected`,
  reasons: {
    refused_by_user: 'Access was refused at the portal.',
    expired: 'The time for this pairing ran out.',
    replaced: 'A newer pairing was started in its place.',
    cancelled: 'The pairing was cancelled at the hub.',
    portal_rejected: 'The portal rejected the pairing.',
    foreign_origin: 'The portal named an address that is not its own, so the hub stopped.',
    code_refused: 'The portal did not accept the login.',
    answer_lost: LOST,
    misconfigured: 'The portal does not accept the hub’s client_id and client secret.',
    client_unknown: 'The portal does not know this client_id.',
  } satisfies Readonly<Record<PairingFailureReason, string>>,
  /** What to do next, for a pairing that its appliance began, and for one of the installer's. */
  nextSteps: {
    startOnAppliance: 'Start the pairing once more on the appliance.',
    startAtHub: 'Start a new pairing at the hub.',
    ifAgain: 'If that happens again, check the hub’s configuration.',
    otherLink: 'Use the link of that one.',
    checkConfiguration: 'Check the hub’s configuration.',
  },
  malformed: 'This address is not right',
  malformedText: 'It is not what the portal sends after a login. Open the pairing link once more and log in again.',
  noCode: 'The login is not finished',
  noCodeText: 'The portal sent no code along. Open the pairing link once more and log in.',
  unknownLink: 'This link is no longer in use',
  unknownLinkText: 'The hub knows nothing of this pairing. Start a new one at the hub and open its link.',
};
