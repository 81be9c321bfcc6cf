/** The clouds that the hub is connected to: choosing one, and the list of them. */
export const portal = {
  choose: 'Choose your cloud',
  chooseText: 'Where do the appliances of this home have their account? The hub logs in there for them.',
  chooseAnother: 'Add another cloud',
  /** Of the list of clouds that the hub knows. */
  untried: 'The hub knows these clouds from public sources; none of them has been tried.',
  helper: 'A portal with two addresses',
  helperText: 'Its operator gave you two web addresses, a client ID and a secret.',
  other: 'Another cloud',
  otherText: 'Any cloud with OAuth 2.0 whose address (issuer) you know.',
  manage: 'Your clouds',
  addHeading: (cloud: string) => `Add ${withinSentence(cloud)}`,
  againHeading: (cloud: string) => `Enter the data of ${withinSentence(cloud)} again`,
  nothingToRegister: 'There is nothing to register at this cloud.',
  registerHeading: 'First, at the cloud',
  registerAt: 'Open the page of the cloud',
  redirect: 'Redirect address',
  /** In a step of a cloud, in place of the address, which is one of the fields. */
  redirectBelow: 'the redirect address (below)',
  redirectHint: 'Enter exactly this address at the cloud, as “redirect URI”.',
  redirectOwnHint:
    'Enter exactly this address at the cloud, as “redirect URI”. If the cloud does not accept it, enter another one here and there, such as that of your relay page.',
  enterHeading: 'Then, here',
  baseUrl: 'First address (base URL)',
  frontendUrl: 'Second address (frontend URL)',
  addressHint: 'Beginning with https, from the operator of the portal.',
  issuer: 'Address of the cloud (issuer)',
  clientId: 'Client ID',
  clientSecret: 'Client secret',
  secretHint: 'The hub keeps it encrypted, and never shows it again.',
  secretOptionalHint:
    'May stay empty if the cloud gave you none. The hub keeps it encrypted, and never shows it again.',
  variableHint: (description: string) => `Must be ${description}.`,
  add: 'Check and add',
  missing: 'This is missing.',
  invalid: 'This is not valid. Compare it with what the cloud gave you.',
  rejected: 'The cloud does not accept this client ID with this secret. Compare both. Nothing was stored.',
  starting: 'The hub starts with the new cloud',
  startingText: 'This takes a few seconds. The page updates automatically.',
  notStarted: 'The hub could not start with this cloud',
  added: (cloud: string) => `${cloud} has been added`,
  accepted: 'The cloud accepts the hub.',
  unreachable:
    'The cloud could not be reached, so the data was not checked. Check the internet connection of this home, and the address of the cloud if you entered it.',
  unchecked: 'The cloud was reached. Whether the client ID and the secret are right, only the first login shows.',
  login: 'How to log in',
  logins: {
    device: 'with a code',
    redirect: 'with a link',
    paste: 'with a link; then paste the address on which the browser ends',
    poll: 'with a link',
  },
  loginUnknown: 'not known until the cloud is reached',
  declared: 'The hub’s configuration file declares this cloud. To change or remove it, edit that file.',
  again: 'Enter again',
  removeHeading: (cloud: string) => `Remove ${cloud}?`,
  removeText: 'The hub deletes the client ID and the secret of this cloud.',
  /** Why nothing was changed. */
  failures: {
    portal_declared: 'The hub’s configuration file declares this cloud, so it can only be changed there.',
    portal_exists: 'Somebody has just added this cloud. Go back to see it.',
    portal_in_use: 'Appliances still log in at this cloud. Remove them first, and their logins.',
    portal_unknown: 'Somebody has removed this cloud.',
  },
};

/** A title that is no name begins with an article. */
function withinSentence(title: string): string {
  return title.replace(/^(A|Another)\b/, (article) => article.toLowerCase());
}
