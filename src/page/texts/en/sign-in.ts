/** Signing in to the installer's page. */
export const signIn = {
  heading: 'Sign in',
  whereToFindCode:
    'The person who set the hub up may have noted the code. A phone that is still signed in shows it on the overview, under “About this hub”. On the hub itself, this command shows the code and a one-time address:',
  label: 'Setup code',
  /** For anybody who scans the label of an appliance. */
  labelScanned:
    'This label leads to the page of the hub that connects this appliance. To see how it is, or to connect it again, you need the setup code: ask the person who set the hub up.',
  hint: 'Sixteen letters; capitals and dashes do not matter.',
  button: 'Sign in',
  missing: 'Type the setup code first.',
  wrong: 'This is not the setup code of this hub. Compare it letter by letter.',
  tooShort: (count: number) => `This is too short: the setup code has sixteen letters, and you typed ${count}.`,
  tooLong: (count: number) => `This is too long: the setup code has sixteen letters, and you typed ${count}.`,
  locked:
    'Too many wrong codes from this address. Wait ten seconds, then try again. Until then the hub accepts no code, not even the right one. A one-time address from “sudo latchkey setup-code” still works.',
  sessionEnded: 'You are no longer signed in. Sign in again.',
  /** After a form was sent. */
  sessionEndedBeforeSubmit:
    'You are no longer signed in, so nothing was changed. After you sign in, the page that you came from opens again.',
  signedOut: 'You are signed out.',
  linkUsed:
    'This one-time address no longer works. Each one works once, for ten minutes, and until the hub is restarted. Type the setup code, or get a new address with the command below.',
  redirecting: 'One moment',
  continueLink: 'Continue',
  csrfFailure: {
    heading: 'Nothing was changed',
    text: 'The page that you used is older than your last sign-in, or belongs to another website. Open the page again and repeat what you did.',
    link: 'Open the page',
  },
  malformedForm: {
    heading: 'What you sent could not be read',
    text: 'Nothing was changed. Open the page again and repeat what you did.',
  },
};

/** The page that shows the setup code, and the way to it. */
export const setupCode = {
  heading: 'Setup code',
  show: 'Show the setup code',
  hint: 'You stay signed in for twelve hours. With the setup code you sign in again, or on another phone.',
  writeDown: (page: string) =>
    `Write this code down, and keep it safe. With it, you sign in again when you are signed out, or on another phone: open ${page} there. Anybody who knows the code can do everything on this page.`,
  replace:
    'If a stranger may know the code, make a new one. This command on the hub does that, and signs everybody out:',
};

/** The list of browsers that are signed in to the installer's page. */
export const browsers = {
  heading: 'Signed-in browsers',
  intro:
    'Sign out every browser that you do not recognise. Anybody who knows the setup code can sign in again. If a stranger may know it, make a new code: this command on the hub does that, and signs everybody out:',
  unknown: 'Unknown browser',
  thisBrowser: 'This browser',
  since: 'Signed in',
  lastSeen: 'Last seen',
  notSeenSinceStart: 'before the last start of the hub',
  address: 'Address at sign-in',
  signOut: 'Sign out',
  signOutOthers: 'Sign out all others',
};
