/** The browsers that are signed in to the installer's page. */
export const browsers = {
  link: 'Signed-in browsers',
  heading: 'Signed-in browsers',
  intro:
    'Sign out what you do not know. Whoever knows the setup code can sign in again: if that may be somebody else, make another code. This command on the hub does that, and signs everybody out:',
  unknown: 'Unknown browser',
  thisOne: 'This browser',
  since: 'Signed in',
  lastSeen: 'Last seen',
  notSeen: 'before the hub was last started',
  address: 'Address when signing in',
  signOut: 'Sign out',
  signOutOthers: 'Sign out all others',
};
