import type { Secret } from './secret.ts';

/** The session of somebody who is signed in to the hub's page. */
export interface PageSession {
  /** Every form of the page sends this token, so that the forms of other sites are rejected. */
  readonly csrfToken: string;
}

/** The session of a browser that has signed in with the setup code or a one-time address. */
export interface BrowserSession extends PageSession {
  /** The cookie by which the browser authenticates. */
  readonly cookie: Secret;
  /** The longest time that the session lasts, in seconds. */
  readonly lifetime: number;
}

/** A browser that signs in. */
export interface BrowserInfo {
  /** The address of the device, as reported by its socket. */
  readonly address: string;
  /** The result of {@link browserName}. */
  readonly browser: string | null;
}

/** A signed-in browser in the page's list. Times in ms since 1970, by the current wall clock. */
export interface SignedInBrowser extends BrowserInfo {
  /** Identifies the browser for signing it out. It is no credential. */
  readonly id: string;
  readonly signedInAt: number;
  /** Null if it was not seen since the hub was started. */
  readonly lastSeenAt: number | null;
  /** Whether it is the browser that makes the request. */
  readonly isCurrent: boolean;
}

/** The result of a sign-in with a typed setup code. */
export type SignInResult =
  | { readonly kind: 'signed_in'; readonly session: BrowserSession }
  | { readonly kind: 'wrong' }
  /** Too many wrong codes from this address: for `retryAfter` whole seconds the hub checks none, not even the right one. */
  | { readonly kind: 'locked'; readonly retryAfter: number };

/** Access to the hub's page, by the setup code or a one-time address. */
export interface SetupAccess {
  /** @param code as it was typed */
  signIn(code: string, from: BrowserInfo): Promise<SignInResult>;
  /** Signs in with the token of a one-time address, and invalidates the token. Null if the token is not valid. */
  redeemSignInToken(token: string, from: BrowserInfo): Promise<BrowserSession | null>;
  /** The setup code, for a browser that is signed in, which the log names. Null if the session of the cookie has ended. */
  showSetupCode(cookie: string, to: BrowserInfo): Promise<Secret | null>;
  /** The session of a cookie; null if there is none, or it has ended. */
  findSession(cookie: string): BrowserSession | null;
  signOut(session: BrowserSession): Promise<void>;
  /** The signed-in browsers: this one first, then the others, the last sign-in first. @param session of this browser */
  listBrowsers(session: BrowserSession): readonly SignedInBrowser[];
  /** Signs a browser out; does nothing if it is not signed in. @param id from {@link listBrowsers} */
  signOutBrowser(id: string): Promise<void>;
  /** Signs out all browsers except the one of this session. */
  signOutOthers(session: BrowserSession): Promise<void>;
  /**
   * The CSRF token of somebody whom a reverse proxy has signed in: the same in each run of the hub, and different for
   * each user.
   * @param user the user's id at the proxy
   */
  proxiedCsrfToken(user: string): string;
}

/** The setup code, and what else a person needs to open the hub's page. */
export interface SetupCode {
  /** In the form in which it is typed. */
  readonly code: Secret;
  /** The address of the page. */
  readonly pageUrl: string;
  /** The same by a name that stays when the hub's address changes, for a label. */
  readonly stablePageUrl: string;
  /** A one-time address that signs a browser in; valid for `signInExpiresIn` seconds. */
  readonly signInUrl: Secret;
  readonly signInExpiresIn: number;
}

/** The operations on the setup code, for people at the hub. */
export interface SetupCodeAdministration {
  setupCode(): Promise<SetupCode>;
  /** Makes a new code, and ends all sessions of the page. */
  rotateSetupCode(): Promise<SetupCode>;
}

/** The first match wins: a browser also names the browsers that it claims to be compatible with. */
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
 * The browser and its operating system, such as "Firefox, Android"; null if both are unknown. It contains nothing else
 * from the header.
 * @param userAgent the `User-Agent` header (RFC 9110, 10.1.5)
 */
export function browserName(userAgent: string | undefined): string | null {
  const nameIn = (names: typeof BROWSERS) => names.find(([, mark]) => mark.test(userAgent ?? ''))?.[0] ?? [];
  return [nameIn(BROWSERS), nameIn(OPERATING_SYSTEMS)].flat().join(', ') || null;
}
