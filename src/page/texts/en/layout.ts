/** What stands around every page. */
export const footer = {
  hub: 'Latchkey hub',
  hubNamed: (name: string) => `Latchkey hub “${name}”`,
};

/** What stands around every page of the installer's. */
export const layout = {
  skipLink: 'Skip to the content',
  signOut: 'Sign out',
  offline: 'The hub does not answer. This page goes on trying.',
  overview: 'Overview',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied',
};

/** Where people come who have typed an address. */
export const landing = {
  httpsOnly:
    'The page of this hub is on a secure address. The browser warns of its certificate once: it is the hub’s own.',
  openSecurePage: 'Go there',
  notFound: 'There is nothing here',
  notFoundText: 'Check the address.',
};

/** Where the QR code on a small terminal leads, when there is no link to go on to. */
export const shortLink = {
  waitingForPortal: 'One moment',
  waitingForPortalText: 'The hub is asking the portal for the login. This page goes on by itself.',
};
