/** Signing in to the installer's page. */
export const signIn = {
  heading: 'Sign in',
  whereToFindCode:
    'Whoever set the hub up may have noted the code. On the hub itself this command shows it, and a one-time address too:',
  label: 'Setup code',
  hint: 'Twelve letters; capitals and dashes do not matter.',
  button: 'Sign in',
  missing: 'Type the setup code first.',
  wrong: 'This is not the setup code of this hub. Compare it letter by letter.',
  /** @param time such as "30 seconds" */
  locked: (time: string) =>
    `Too many wrong codes. The hub looks at no code for another ${time}, not even at the right one; then try again. A one-time address that “latchkey setup-code” shows works meanwhile.`,
  sessionEnded: 'You are no longer signed in. Sign in once more.',
  /** Of a form that was sent. */
  sessionEndedBeforeSubmit:
    'You are no longer signed in, so nothing was changed. Sign in, and you are back on the page that you came from.',
  signedOut: 'You are signed out.',
  linkUsed:
    'This sign-in address has been used, or has run out: each is good once, for ten minutes. Type the setup code, or have the hub make another address.',
  redirecting: 'One moment',
  continueLink: 'Go on',
  csrfFailure: {
    heading: 'Nothing was changed',
    text: 'This form came from another site, or from before you last signed in. Open the page again, and send it once more.',
    link: 'Open the page',
  },
  malformedForm: {
    heading: 'This form cannot be read',
    text: 'Nothing was changed. Open the page again, and send it once more.',
  },
  seconds: (count: number) => (count === 1 ? 'second' : `${count} seconds`),
  minutes: (count: number) => (count === 1 ? 'minute' : `${count} minutes`),
};

/** The browsers that are signed in to the installer's page. */
export const signedInBrowsers = {
  link: 'Signed-in browsers',
  heading: 'Signed-in browsers',
  intro:
    'Sign out what you do not know. Whoever knows the setup code can sign in again: if that may be somebody else, make another code. This command on the hub does that, and signs everybody out:',
  unknown: 'Unknown browser',
  thisBrowser: 'This browser',
  since: 'Signed in',
  lastSeen: 'Last seen',
  notSeenSinceStart: 'before the hub was last started',
  address: 'Address when signing in',
  signOut: 'Sign out',
  signOutOthers: 'Sign out all others',
};
