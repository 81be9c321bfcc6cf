import type { Secret } from './secret.ts';

/** One browser's time on the installer's page. */
export interface PageSession {
  /** What the browser proves itself by, in its cookie. */
  readonly cookie: Secret;
  /** What every form of the page carries beside the cookie, so that no other site's form counts. */
  readonly csrfToken: string;
  /** Seconds that it lasts at most. */
  readonly lifetime: number;
}

/** Who signs in. */
export interface BrowserInfo {
  /** The address of the device, as its socket has it. */
  readonly address: string;
  /** As `browserName` has it. */
  readonly browser: string | null;
}

/** A browser that is signed in, as the page lists it. Times in ms since 1970, by the wall clock of now. */
export interface SignedInBrowser extends BrowserInfo {
  /** What it is signed out by; it opens nothing. */
  readonly id: string;
  readonly signedInAt: number;
  /** Null where it has not come since the hub was started. */
  readonly lastSeenAt: number | null;
  /** Whether it is the one that asks. */
  readonly isCurrent: boolean;
}

/** What became of a setup code that somebody typed. */
export type SignInResult =
  | { readonly kind: 'signed_in'; readonly session: PageSession }
  | { readonly kind: 'wrong' }
  /** Too many wrong ones: nothing is looked at for `retryAfter` whole seconds, not even the right one. */
  | { readonly kind: 'locked'; readonly retryAfter: number };

/** Who may see the installer's page: whoever knows the hub's setup code, or comes with a one-time address. */
export interface SetupAccess {
  /**
   * @param code as it was typed
   * @param browserCookie see {@link browserCookie}; null where the browser has none
   */
  signIn(code: string, from: BrowserInfo, browserCookie: string | null): Promise<SignInResult>;
  /** Takes the token of a one-time sign-in address, which is used up by that. */
  redeemSignInToken(token: string, from: BrowserInfo): Promise<PageSession | null>;
  /** The session of a cookie; null where there is none, or no more. */
  findSession(cookie: string): PageSession | null;
  signOut(session: PageSession): Promise<void>;
  /** Who is signed in: this browser first, then those that signed in last. @param session of who asks */
  listBrowsers(session: PageSession): readonly SignedInBrowser[];
  /** Signs a browser out; one that is not signed in any more is none to do. @param id as {@link listBrowsers} tells it */
  signOutBrowser(id: string): Promise<void>;
  /** Signs out all but the one that asks. */
  signOutOthers(session: PageSession): Promise<void>;
  /**
   * What a browser that has just signed in proves by, next time, that it has: it then has tries of its own, which no wrong codes of
   * others use up. It opens nothing, and outlives the session.
   * @param present what it has brought; null where it has none
   */
  browserCookie(present: string | null): Secret;
}

/** What a person at the hub is told, to get to the installer's page. */
export interface SetupCode {
  /** As it is to be typed. */
  readonly code: Secret;
  /** The address of the page. */
  readonly pageUrl: string;
  /** A one-time address that signs a browser in; good for `signInExpiresIn` seconds. */
  readonly signInUrl: Secret;
  readonly signInExpiresIn: number;
}

/** The setup code, as people at the hub deal with it. */
export interface SetupCodeAdministration {
  setupCode(): Promise<SetupCode>;
  /** Makes another code; whoever is signed in is no longer. */
  rotateSetupCode(): Promise<SetupCode>;
}

/** The first one that fits counts: browsers name those that they want to be taken for, too. */
const BROWSERS: readonly (readonly [name: string, mark: RegExp])[] = [
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /(?:Chrome|CriOS)\//],
  ['Safari', /\bSafari\//],
];
const OPERATING_SYSTEMS: readonly (readonly [name: string, mark: RegExp])[] = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMacintosh\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
];

/**
 * Roughly which browser it is, such as "Firefox, Android"; null where nobody can tell. Of what the browser says nothing else is in it.
 * @param userAgent as the browser sends it (RFC 9110, 10.1.5)
 */
export function browserName(userAgent: string | undefined): string | null {
  const nameIn = (names: typeof BROWSERS) => names.find(([, mark]) => mark.test(userAgent ?? ''))?.[0] ?? [];
  return [nameIn(BROWSERS), nameIn(OPERATING_SYSTEMS)].flat().join(', ') || null;
}
