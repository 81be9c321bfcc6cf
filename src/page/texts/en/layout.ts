/** The footer of every page. */
export const footer = {
  hub: 'Latchkey hub',
  hubNamed: (name: string) => `Latchkey hub “${name}”`,
};

/** The parts that all pages of the installer share. */
export const installer = {
  skipLink: 'Skip to the content',
  signOut: 'Sign out',
  offline: 'The hub does not respond. This page keeps trying. If this continues, check the hub’s power and network.',
  overview: 'Overview',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied',
};

/** The pages for an address that a person has typed. */
export const landing = {
  httpsOnly:
    'This hub’s page has a secure address (https). The browser warns once, because the hub issued its own certificate. Choose “Advanced” (or “Details”) there and continue.',
  openSecurePage: 'Open the secure page',
  notFound: 'Page not found',
  notFoundText: 'Check the address.',
};

/** The page of a short link while the portal has not sent a login link. */
export const shortLink = {
  waitingForPortal: 'One moment',
  waitingForPortalText: 'The hub is requesting the login link from the portal. This page continues automatically.',
};
