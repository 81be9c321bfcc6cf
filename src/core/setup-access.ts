import type { Secret } from './secret.ts';

/** One browser's time on the installer's page. */
export interface PageSession {
  /** What the browser proves itself by, in its cookie. */
  readonly cookie: Secret;
  /** What every form of the page carries beside the cookie, so that no other site's form counts. */
  readonly csrf: string;
  /** Seconds that it lasts at most. */
  readonly lifetime: number;
}

/** What became of a setup code that somebody typed. */
export type SignIn =
  | { readonly kind: 'signed_in'; readonly session: PageSession }
  | { readonly kind: 'wrong' }
  /** Too many wrong ones: nothing is looked at for `retryAfter` whole seconds, not even the right one. */
  | { readonly kind: 'locked'; readonly retryAfter: number };

/** Who may see the installer's page: whoever knows the hub's setup code, or comes with a one-time address. */
export interface SetupAccess {
  /**
   * @param code as it was typed
   * @param from the address of the device, as its socket has it
   */
  signIn(code: string, from: string): Promise<SignIn>;
  /** Takes the token of a one-time sign-in address, which is used up by that. */
  redeem(token: string): Promise<PageSession | null>;
  /** The session of a cookie; null where there is none, or no more. */
  session(cookie: string): PageSession | null;
  signOut(session: PageSession): Promise<void>;
}

/** What a person at the hub is told, to get to the installer's page. */
export interface SetupCode {
  /** As it is to be typed. */
  readonly code: Secret;
  /** The address of the page. */
  readonly page: string;
  /** A one-time address that signs a browser in; good for `signInExpiresIn` seconds. */
  readonly signIn: Secret;
  readonly signInExpiresIn: number;
}

/** The setup code, as people at the hub deal with it. */
export interface SetupCodes {
  setupCode(): Promise<SetupCode>;
  /** Makes another code; whoever is signed in is no longer. */
  rotateSetupCode(): Promise<SetupCode>;
}
