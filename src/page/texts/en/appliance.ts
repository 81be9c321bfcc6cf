import type { PairingFailureReason } from '../../../core/pairings/pairing.ts';
import type { ProblemCode } from '../../../core/reports/problem.ts';

/** The page of one appliance, and the confirmations of what cannot be undone. */
export const appliance = {
  state: 'State',
  refreshNow: 'Refresh now',
  clientId: 'Client ID',
  commandName: 'Name in commands',
  manage: 'Change',
  /** What a person seldom needs. */
  more: 'More',
  newSecret: 'New secret for the appliance',
  rename: 'Rename',
  saveName: 'Save the name',
  /** What stays when an appliance gets another name. */
  renameMeaning:
    'The appliance is then called so here, in notices and on new labels. Its client ID, secret, login and name in commands stay the same, and printed labels still work.',
  doorLabel: 'Label for the cabinet door',
  disconnect: 'Disconnect',
  remove: 'Remove',
  /** What these two do, below their buttons. */
  disconnectMeaning: 'No access until somebody logs in again. The appliance stays on the hub.',
  removeMeaning: 'Deletes the appliance, its secret and its login on the hub.',
  removeFromLoginMeaning: 'Deletes the appliance and its secret on the hub. The login stays.',
  declared:
    'The hub’s configuration file declares this appliance. To change its secret or to remove it, edit that file.',
  rotateHeading: (name: string) => `Give ${name} a new secret?`,
  rotateText:
    'The old secret stops working at once. Enter the new one in the appliance. The appliance stays connected to the portal.',
  rotateKeys:
    'This appliance uses its own keys instead of a secret. A new secret would replace the keys, and they would stop working.',
  rotateKeysLabel: 'Replace its keys',
  rotateKeysMissing: 'Tick this to replace its keys with a secret.',
  disconnectHeading: (name: string) => `Disconnect ${name} from the portal?`,
  disconnectText:
    'The hub deletes the stored login and no longer gives the appliance access to the portal. To connect it again, somebody has to log in at the portal again. Some portals cannot be told of this: to be sure, also remove the access in your account there.',
  removeHeading: (name: string) => `Remove ${name}?`,
  removeText: 'The hub deletes the appliance, its secret and its login. This cannot be undone.',
  rejectHeading: (name: string) => `Refuse ${name}, which asks to join?`,
  rejectText: 'The hub deletes this request. The appliance can ask again as long as you let appliances join.',
  notFound: 'Appliance not found',
  notFoundText: 'The hub does not know this appliance. Perhaps somebody has removed it.',
  backToOverview: 'To the overview',
  backToAppliance: 'To the appliance',
  /** Why an action failed. */
  failures: {
    appliance_declared: 'The hub’s configuration file declares this appliance, so it can only be changed there.',
    not_allowed:
      'That is not possible at the moment. Perhaps somebody else has already done it, or the appliance is not approved yet. Go back to see the current state.',
    store_unwritable:
      'Nothing was changed, because the hub cannot save anything. Free space on its disk, or replace its SD card; if several hubs share a database, check that. Then try again.',
    hub_stopping: 'The hub is restarting. Try again in a moment.',
    other: 'That failed. The reason is in the hub’s log (“sudo journalctl -u latchkey”).',
  },
  nothingChanged: 'Nothing was changed',
};

/** Adding an appliance, and the credentials that the hub then shows. */
export const adding = {
  title: 'Add an appliance',
  name: 'Name',
  nameHint: 'What stands on the cabinet, such as “Heat pump cellar”; at most 64 characters.',
  scope: 'Permissions',
  scopeHint:
    'The permissions that the appliance needs at the portal (“scope” in many manuals), such as “Monitoring RemoteControl”. May stay empty.',
  portal: 'Portal',
  choosePortal: 'Choose…',
  portalMissing: 'Choose the portal of this appliance.',
  add: 'Add',
  nameMissing: 'Type a name.',
  nameInvalid: 'This name is not possible. Use at most 64 letters, digits, spaces and signs.',
  nameTaken: 'There is already an appliance with this name, or with almost the same. Choose another name.',
  scopeInvalid:
    'This is too long or has a character that is not allowed. Type the permissions with spaces between them, without quotes or accents.',
  portalUnknown: 'The hub does not have this portal. Choose another one.',
  credentials: {
    title: (appliance: string) => `Credentials of ${appliance}`,
    added: (appliance: string) => `${appliance} has been added.`,
    rotated: (appliance: string) => `${appliance} has a new secret. The old one no longer works.`,
    keep: 'Enter these in the appliance now. The secret is shown only on this page, which you can reload for ten minutes or until you tap “Done”. After that nobody can see it again.',
    clientId: 'Client ID',
    clientSecret: 'Client secret',
    tokenEndpoint: 'Address where the appliance gets its access (token URL)',
    addressHint: 'In the router, let the hub keep this address.',
    pin: 'Security code of the hub, by which the appliance recognises the hub; it is not secret',
    qr: 'All of this as a QR code',
    qrHint:
      'For appliances with a camera, or an app that sets them up. It contains the secret: do not show it to anybody else.',
    connectNext: (appliance: string) => `Connect ${appliance} now`,
    addAnother: 'Add another appliance',
    done: 'Done',
    gone: 'These credentials are no longer shown',
    goneText:
      'Credentials are shown for ten minutes, or until you tap “Done” or sign out. If they are lost, tap the appliance on the overview, then “More”, then “New secret for the appliance”.',
  },
};

/** The history of an appliance. */
export const history = {
  heading: 'History',
  empty: 'Nothing has happened yet.',
  olderEntries: 'Older entries',
  days: 'The last 14 days',
  connected: 'Connected',
  failing: 'Problems for a time',
  needsPairing: 'A login was needed',
  unknown: 'Not connected, or nothing known',
  /** For screen readers: the number of days in each state. */
  summary: (connected: number, failing: number, needsPairing: number) =>
    `The last 14 days. Days connected: ${connected}, days with problems: ${failing}, days on which a login was needed: ${needsPairing}.`,
  kinds: {
    paired: 'Connected after a login',
    pairing_failed: 'A login failed',
    unpaired: 'Disconnected',
    refreshed: 'Access refreshed',
    refresh_failed: 'Access could not be refreshed',
    token_refused: 'The appliance reports that the portal rejected its access',
  },
  /** A login that somebody cancelled or replaced; the reason follows. */
  loginEnded: 'An attempt to log in ended',
  /** Who did it. */
  by: (user: string) => `by ${user}`,
  repeatCount: (count: number) => (count === 1 ? '' : `${count} times`),
  /** Why a refresh failed, if the reason of a failed login has other words. */
  failureReasons: {
    portal_unreachable: 'The portal could not be reached.',
    portal_deferred: 'The portal asked the hub to wait.',
    portal_rejected: 'The portal rejected the hub’s request.',
    clock_unknown: 'The hub did not know the right time.',
    store_unwritable: 'The hub could not save anything.',
    database_unavailable: 'The hub could not reach its database.',
    refused: 'The portal has ended the access.',
  } satisfies Readonly<Record<Exclude<ProblemCode, PairingFailureReason> | 'portal_rejected', string>>,
};
