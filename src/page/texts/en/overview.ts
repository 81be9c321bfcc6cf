/** The first page of the installer. */
export const overview = {
  title: 'Overview',
  /** The hub's health, in one sentence. */
  noAppliances: 'There are no appliances yet.',
  oneConnected: (appliance: string) => `${appliance} is connected.`,
  allConnected: (count: number) =>
    count === 2 ? 'Both appliances are connected.' : `All ${count} appliances are connected.`,
  /** The logins work, but the appliances do not use them. */
  refused: {
    one: (appliance: string) => `${appliance} asks with wrong credentials.`,
    several: (count: number) => `${count} appliances ask with wrong credentials.`,
  },
  neverServed: {
    one: (appliance: string) => `${appliance} is logged in, but has not fetched its access yet.`,
    several: (count: number) => `${count} appliances are logged in, but have not fetched their access yet.`,
  },
  silent: {
    one: (appliance: string) => `${appliance} has not fetched its access for a week or longer.`,
    several: (count: number) => `${count} appliances have not fetched their access for a week or longer.`,
  },
  needsLogin: (appliance: string) => `${appliance} needs a new login.`,
  needsFirstLogin: (appliance: string) => `${appliance} is not connected yet.`,
  needsApproval: (appliance: string) => `${appliance} is waiting for your approval.`,
  needsAttention: (appliance: string) => `${appliance} needs attention.`,
  severalNeedAttention: (count: number) => `${count} appliances need attention.`,
  severalNotConnected: (count: number) => `${count} appliances are not connected yet.`,
  waitsForLogin: (appliance: string) => `${appliance} is waiting for the login.`,
  severalWaitForLogin: (count: number) => `${count} appliances are waiting for the login.`,
  waitsForPortal: (appliance: string) => `${appliance} is waiting for the portal.`,
  severalWaitForPortal: (count: number) => `${count} appliances are waiting for the portal.`,
  waitsForAccess: (appliance: string) => `${appliance} is waiting for new access.`,
  severalWaitForAccess: (count: number) => `${count} appliances are waiting for new access.`,
  notRefreshed: (appliance: string) => `The access of ${appliance} could not be refreshed; the hub keeps trying.`,
  severalNotRefreshed: (count: number) =>
    `The access of ${count} appliances could not be refreshed; the hub keeps trying.`,
  /** The same about a login that several appliances share. */
  login: {
    needsRenewal: (login: string) => `The login “${login}” must be renewed.`,
    needsRenewalFor: (login: string, appliances: string) =>
      `The login “${login}” must be renewed. This affects ${appliances}.`,
    needsAttention: (login: string) => `The login “${login}” needs attention.`,
    notConnected: (login: string) => `The login “${login}” is not connected yet.`,
    waitsForPerson: (login: string) => `Somebody has to log in for “${login}”.`,
    waitsForPortal: (login: string) => `The login “${login}” is waiting for the portal.`,
    waitsForAccess: (login: string) => `The login “${login}” is waiting for new access.`,
    notRefreshed: (login: string) => `The access of the login “${login}” could not be refreshed; the hub keeps trying.`,
  },
  hubNeedsAttention: 'The hub itself needs attention.',
  hubWarning: 'There is a warning about the hub.',
  hubConditions: 'What to do',
  appliances: 'Appliances',
  addFirst: 'Add the first one, then connect it.',
  add: 'Add an appliance',
  connectAll: 'Connect all',
  connectAllHint: 'One login is usually enough for all of them.',
  connectByCode: 'Connect with the code of an appliance',
  scope: 'Permissions',
  scopeByPortal: 'decided by the portal',
  portal: 'Portal',
  account: 'Account',
  registered: 'Asked to join',
  tokenCounts: 'Got its access',
  tokens: (today: number, last14Days: number) => `${today} × today, ${last14Days} × in 14 days`,
  connect: 'Connect',
  connectAgain: 'Log in again',
  showLink: 'Show the login link',
  /** The same if the hub has several portals. */
  at: {
    connect: (portal: string) => `Connect at “${portal}”`,
    connectAgain: (portal: string) => `Log in at “${portal}” again`,
    showLink: (portal: string) => `Show the login link of “${portal}”`,
  },
  decide: 'Allow or refuse',
  approve: 'Approve',
  reject: 'Refuse',
  registration: 'Appliances that ask to join',
  registrationHint:
    'Some appliances can ask the hub to add them. Allow this for ten minutes: each appliance that asks appears here and waits for your approval.',
  registrationOpen: 'New appliances are allowed to join. This ends',
  registrationOpenHint: 'Start the set-up on the appliance now. It appears here and waits for your approval.',
  severalRegistered: (count: number) =>
    `${count} appliances have asked to join since you allowed it. Compare the codes: approve an appliance only if it shows the same code as this page.`,
  openRegistration: 'Let appliances join for 10 minutes',
  closeRegistration: 'Stop letting appliances join',
  about: 'About this hub',
  address: 'Address',
  noAddress: 'none',
  /** A hub of several that work together. */
  siteHub: (name: string) => `The hub ${name}`,
  thisHub: 'this hub',
  lastSeen: 'last seen',
  pin: 'Security code, by which appliances recognise this hub; it is not secret',
};
