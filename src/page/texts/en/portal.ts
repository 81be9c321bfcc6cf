/** The portals of the hub: choosing one, and the list of them. */
export const portal = {
  choose: 'Choose your portal',
  chooseText:
    'A portal is the cloud service at which the appliances of this home have their account. The hub logs in there for them.',
  chooseAnother: 'Add another portal',
  /** Of the list of portals that the hub knows. */
  untried: 'The hub knows these portals from public sources; none of them has been tried.',
  helper: 'A portal with two addresses',
  helperText: 'Its operator gave you two web addresses, a client ID and a secret.',
  other: 'Another portal',
  otherText: 'Any portal with OAuth 2.0 whose address (issuer) you know.',
  manage: 'Your portals',
  addHeading: (portal: string) => `Add ${withinSentence(portal)}`,
  againHeading: (portal: string) => `Enter the data of ${withinSentence(portal)} again`,
  nothingToRegister: 'There is nothing to register at this portal.',
  registerHeading: 'First, at the portal',
  registerAt: 'Open the page of the portal',
  redirect: 'Redirect address',
  /** In a step of a portal, in place of the address, which is one of the fields. */
  redirectBelow: 'the redirect address (below)',
  redirectHint: 'Enter exactly this address at the portal, as “redirect URI”.',
  redirectOwnHint:
    'Enter exactly this address at the portal, as “redirect URI”. If the portal does not accept it, enter another one here and there, such as that of a relay page: docs/relay.md of Latchkey describes it.',
  redirectPublicHint:
    'A public https address, because this portal accepts no other: that of a relay page, which leads the browser back to the hub. docs/relay.md of Latchkey says how to put one on any web space. Enter the same address at the portal, as “redirect URI”.',
  enterHeading: 'Then, here',
  baseUrl: 'First address (base URL)',
  frontendUrl: 'Second address (frontend URL)',
  addressHint: 'Beginning with https, from the operator of the portal.',
  issuer: 'Address of the portal (issuer)',
  address: 'Address',
  clientId: 'Client ID',
  clientSecret: 'Client secret',
  secretHint: 'The hub keeps it encrypted, and never shows it again.',
  secretOptionalHint:
    'May stay empty if the portal gave you none. The hub keeps it encrypted, and never shows it again.',
  /** If the data is entered again. */
  secretKeptHint:
    'If this stays empty, the hub keeps the secret that it has, unless you change anything else here. If you do, enter it again.',
  variableHint: (description: string) => `Must be ${description}.`,
  add: 'Check and add',
  /** If the data of a portal is entered again. */
  save: 'Check and save',
  missing: 'This is missing.',
  /** Of a secret, beside what is wrong with another field. */
  secretAgain: 'Enter it again: the page does not show a secret that was typed.',
  invalid: 'This is not valid. Compare it with what the portal gave you.',
  invalidUuid:
    'This is not a client ID of such a portal. It has 36 characters, as 0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90 has.',
  invalidAddress: {
    notHttps: 'The address must begin with “https://”.',
    origin: 'This is not valid. The address has nothing after its name, such as “https://portal.example”.',
    issuer: 'This is not valid. The address has the form “https://id.example”, without “?” and “#”.',
  },
  /** Something else answers there, or nothing, while another address of the portal can be reached. */
  otherAddress: {
    origin:
      'The portal does not answer at this address. Compare it; perhaps the two addresses are swapped. Nothing was stored.',
    issuer: 'The portal does not answer at this address. Compare it. Nothing was stored.',
  },
  rejected: 'The portal does not accept this client ID with this secret. Compare both. Nothing was stored.',
  rejectedWithoutSecret: 'The portal does not accept this client ID. Compare it. Nothing was stored.',
  rejectedPreset: 'The portal does not accept the client ID that the hub has for it. Nothing was stored.',
  starting: 'The hub starts with the new portal',
  startingText: 'This takes a few seconds. The page updates automatically.',
  notStarted: 'The hub could not start with this portal',
  added: (portal: string) => `${portal} has been added`,
  saved: (portal: string) => `${portal} is saved`,
  accepted: 'The portal accepts the hub.',
  unreachable:
    'The portal could not be reached, so the data was not checked. Check the internet connection of this home, and the address of the portal if you entered it.',
  unchecked: 'The portal was reached. Whether it accepts the hub, only the first login shows.',
  login: 'How to log in',
  logins: {
    device: 'with a code',
    redirect: 'with a link',
    paste: 'with a link; then paste the address on which the browser ends',
    poll: 'with a link',
  },
  loginUnknown: 'not known until the portal is reached',
  declared: 'The hub’s configuration file declares this portal. To change or remove it, edit that file.',
  again: 'Enter again',
  inUse: (logins: string) => `Used by ${logins}. To remove this portal, remove these first.`,
  removeHeading: (portal: string) => `Remove ${portal}?`,
  removeText: 'The hub deletes what was entered for this portal.',
  /** Why nothing was changed. */
  failures: {
    portal_declared: 'The hub’s configuration file declares this portal, so it can only be changed there.',
    portal_exists: 'Somebody has just added this portal. Go back to see it.',
    portal_in_use: 'Appliances or logins still use this portal. Remove them first.',
    portal_unknown: 'Somebody has removed this portal.',
  },
};

/** A title that is no name begins with an article. */
function withinSentence(title: string): string {
  return title.replace(/^(A|Another)\b/, (article) => article.toLowerCase());
}
