/** The first page of the installer. */
export const overview = {
  title: 'Overview',
  noAppliances: 'There are no appliances yet.',
  oneConnected: (appliance: string) => `${appliance} is connected.`,
  allConnected: (count: number) =>
    count === 2 ? 'Both appliances are connected.' : `All ${count} appliances are connected.`,
  severalAppliances: (count: number) => `${count} appliances`,
  /** The hub's health in one sentence: about an appliance, a login, or so many appliances. */
  headlines: {
    needsLogin: (about: string, count: number) => `${about} ${count === 1 ? 'needs' : 'need'} a new login.`,
    needsApproval: (about: string, count: number) => `${about} ${isOrAre(count)} waiting for your approval.`,
    clientRejected: (about: string) => `${about}: The portal does not accept the hub’s credentials.`,
    needsAttention: (about: string, count: number) => `${about} ${count === 1 ? 'needs' : 'need'} attention.`,
    notConnected: (about: string, count: number) => `${about} ${isOrAre(count)} not connected yet.`,
    waitsForLogin: (about: string, count: number) => `${about} ${isOrAre(count)} waiting for somebody to log in.`,
    waitsForPortal: (about: string, count: number) => `${about} ${isOrAre(count)} waiting for the portal.`,
    waitsForAccess: (about: string, count: number) => `${about} ${isOrAre(count)} waiting for new access.`,
    notRefreshed: (about: string, _count: number) =>
      `The access of ${about} could not be refreshed; the hub keeps trying.`,
    /** The logins work, but the appliances do not use them. */
    refused: (about: string, count: number) => `${about} ${count === 1 ? 'asks' : 'ask'} with wrong credentials.`,
    neverServed: (about: string, count: number) =>
      count === 1
        ? `${about} is logged in, but has not fetched its access yet.`
        : `${about} are logged in, but have not fetched their access yet.`,
    silent: (about: string, count: number) =>
      count === 1
        ? `${about} has not fetched its access for a week or longer.`
        : `${about} have not fetched their access for a week or longer.`,
  },
  /** Of a login that appliances share. */
  needsRenewal: (login: string) => `The login “${login}” must be renewed.`,
  needsRenewalFor: (login: string, appliances: string) =>
    `The login “${login}” must be renewed. This affects ${appliances}.`,
  hubNeedsAttention: 'The hub itself needs attention.',
  hubWarning: 'There is a warning about the hub.',
  hubConditions: 'What to do',
  appliances: 'Appliances',
  addFirst: 'Add the first one, then connect it.',
  connectAll: 'Connect all',
  connectAllHint: 'At each portal, one login is usually enough.',
  connectByCode: 'Connect with the code of an appliance',
  scopeByPortal: 'decided by the portal',
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
  noticesSent: 'Notices, for example that a login must be renewed, are also sent as the hub’s configuration says.',
  noticesHere:
    'Notices, for example that a login must be renewed, are shown only on this page. The person who looks after the hub can have them sent, too: docs/notices.md of Latchkey says how.',
  address: 'Address',
  noAddress: 'none',
  /** A hub of several that work together. */
  siteHub: (name: string) => `The hub ${name}`,
  thisHub: 'this hub',
  lastSeen: 'last seen',
  pin: 'Security code, by which appliances recognise this hub; it is not secret',
};

function isOrAre(count: number): string {
  return count === 1 ? 'is' : 'are';
}
