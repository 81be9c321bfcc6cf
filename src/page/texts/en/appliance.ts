import type { PairingFailureReason } from '../../../core/pairings/pairing.ts';
import type { ProblemCode } from '../../../core/reports/problem.ts';

/** The page of one appliance, and what is asked back before something is lost. */
export const appliance = {
  state: 'State',
  refreshNow: 'Refresh now',
  clientId: 'Client ID',
  manage: 'Change',
  newSecret: 'New secret',
  doorLabel: 'Label for the door',
  disconnect: 'Disconnect',
  remove: 'Remove',
  declared:
    'It is declared in the hub’s configuration file: its secret and whether it is there are changed in that file.',
  rotateHeading: (name: string) => `Give ${name} a new secret?`,
  rotateText:
    'The old secret stops working at once. The new one has to be put into the appliance. It stays connected to the portal.',
  rotateKeys: 'It proves itself by keys of its own. A secret would replace them, and they would stop working.',
  rotateKeysLabel: 'Replace its keys',
  rotateKeysMissing: 'Tick this if its keys are to be replaced.',
  disconnectHeading: (name: string) => `Disconnect ${name}?`,
  disconnectText:
    'The hub forgets the login and gives it no more access. To connect it again, somebody has to log in again.',
  removeHeading: (name: string) => `Remove ${name}?`,
  removeText: 'The hub forgets the appliance, its secret and its login. This cannot be taken back.',
  rejectHeading: (name: string) => `Refuse ${name}?`,
  rejectText: 'The hub forgets that it asked to join. It may ask again while new appliances may join.',
  notFound: 'There is no such appliance',
  notFoundText: (name: string) => `${name} is not known to the hub. Perhaps it has been removed meanwhile.`,
  backToOverview: 'To the overview',
  backToAppliance: (name: string) => `To ${name}`,
  /** Why something was not done. */
  failures: {
    appliance_declared: 'The hub’s configuration file declares this appliance, so it is changed there and not here.',
    not_allowed: 'That is not possible the way things are now. Perhaps somebody else has done it already.',
    store_unwritable: 'The hub could not save it: its disk is full or damaged. Nothing was changed.',
    token_unavailable: 'It is not connected, so there is nothing to refresh. Log in first.',
    hub_stopping: 'The hub is being restarted. Try again in a moment.',
    other: 'The hub could not do it. Its log tells more.',
  },
  nothingChanged: 'Nothing was changed',
};

/** Adding an appliance, and the credentials that are shown then. */
export const addAppliance = {
  title: 'Add an appliance',
  name: 'Name',
  nameHint: 'Small letters a–z, digits and “-”, such as “wallbox” or “heat-pump-2”; at most 63.',
  scope: 'Permissions',
  scopeHint:
    'What it is to ask the portal for (“scope” in many manuals), such as “Monitoring RemoteControl”. May stay empty.',
  portal: 'Portal',
  add: 'Add',
  nameMissing: 'Type a name.',
  nameInvalid:
    'This cannot be a name. Use small letters a–z, digits and “-”, beginning with a letter or digit; at most 63.',
  nameTaken: 'There is an appliance of this name already. Choose another name.',
  scopeInvalid:
    'This has a character that cannot be in it, or is too long. Use names with spaces between them, without quotes or accents.',
  portalUnknown: 'There is no such portal in the hub’s configuration.',
  credentials: {
    title: (appliance: string) => `Credentials of ${appliance}`,
    added: (appliance: string) => `${appliance} is added.`,
    rotated: (appliance: string) => `${appliance} has a new secret. The old one no longer works.`,
    keep: 'Put these into the appliance now. The secret is shown this once: the hub keeps no copy. This page can be loaded again for ten minutes, unless you tap “Done”.',
    clientId: 'Client ID',
    clientSecret: 'Client secret',
    tokenEndpoint: 'Address for tokens',
    pin: 'Security code of the hub',
    qr: 'All of it as a QR code',
    qrHint: 'For appliances with a camera, or an app that sets them up. It holds the secret: show it to nobody else.',
    connectNext: (appliance: string) => `Connect ${appliance} now`,
    done: 'Done',
    gone: 'These credentials are no longer shown',
    goneText:
      'They can be seen for ten minutes, and not after “Done” or signing out. If they are lost, give the appliance a new secret on its page.',
  },
};

/** What has happened to an appliance. */
export const history = {
  heading: 'History',
  empty: 'Nothing has happened yet.',
  olderEntries: 'Older entries',
  days: 'The last 14 days',
  connected: 'Connected',
  failing: 'Held up for a time',
  needsPairing: 'A login was needed',
  unknown: 'Not connected, or nothing known',
  /** For who can't see the picture: how many days each. */
  summary: (connected: number, failing: number, needsPairing: number) =>
    `The last 14 days: connected on ${connected}, held up on ${failing}, in need of a login on ${needsPairing}.`,
  kinds: {
    paired: 'Connected by a login',
    pairing_failed: 'A login came to nothing',
    unpaired: 'Disconnected',
    refreshed: 'Refreshed',
    refresh_failed: 'Could not be refreshed',
    token_refused: 'The cloud turned its access down, the appliance says',
  },
  repeatCount: (count: number) => (count === 1 ? '' : `${count} times`),
  /** Why a refresh failed, where what is said of a failed login does not fit. */
  failureReasons: {
    portal_unreachable: 'The portal could not be reached.',
    portal_deferred: 'The portal asked for patience.',
    portal_rejected: 'The portal turned the hub away.',
    clock_unknown: 'The hub did not know the time.',
    store_unwritable: 'The hub could not save it.',
    refused: 'The portal has ended the access.',
  } satisfies Readonly<Record<Exclude<ProblemCode, PairingFailureReason> | 'portal_rejected', string>>,
};
