/** What stands around every page of the installer's. */
export const installer = {
  skip: 'Skip to the content',
  signOut: 'Sign out',
  offline: 'The hub does not answer. This page goes on trying.',
  overview: 'Overview',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied',
};
