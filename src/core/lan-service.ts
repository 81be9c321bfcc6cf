import type { Appliance, RegistrantAddress } from './appliances/appliance.ts';
import type { ClientMetadata, RegistrationResult } from './appliances/registration.ts';
import type { Pairing, PairingFailureReason } from './pairings/pairing.ts';
import type { BatchForBrowser, BatchLoginLinkResult } from './pairings/pairing-batch.ts';
import type { ProblemCode } from './reports/problem.ts';
import type { Secret } from './secret.ts';

/** What a browser brought to `/callback/{nonce}`: a code, a refusal (`error`), or neither. */
export type AuthorizationResponse =
  | { readonly kind: 'code'; readonly code: Secret }
  | { readonly kind: 'error'; readonly error: string }
  | { readonly kind: 'nothing' };

/** Who brought a callback. */
export interface CallbackBrowser {
  /** Its IP address. */
  readonly address: string;
  /** What it was given when the hub sent it to the portal, see `LanService.sentMark`; null if it has none. */
  readonly browserBinding: string | null;
}

/** What an appliance asks of a token. */
export interface TokenRequest {
  /** Null where it does not say. */
  readonly scope: string | null;
  /** How long it should last at least, in ms; 0 where it does not say. */
  readonly minTtl: number;
  /** How long it will wait for the answer, in ms; as long as anybody may where left out. */
  readonly timeout?: number;
}

/** Why there is no new token: what is wrong with the grant, or that the portal has not answered yet. */
export type UnavailableReason = Exclude<ProblemCode, 'refused'> | 'no_answer_yet';

/** Why the token at hand is not handed out; `age_unknown` after a boot, where it may have run out. */
export type UnusableTokenReason = 'expired' | 'rejected' | 'age_unknown';

/** What an appliance is answered when it asks for its token. */
export type TokenResult =
  /** `expiresIn` is what is left, in whole seconds, rounded down. */
  | { readonly kind: 'token'; readonly accessToken: Secret; readonly expiresIn: number; readonly scope: string | null }
  | { readonly kind: 'not_paired' }
  /** A person must log in again, and no token at hand lives. */
  | { readonly kind: 'needs_pairing' }
  /** No token for now; `retryAfter` in whole seconds. */
  | {
      readonly kind: 'unavailable';
      readonly retryAfter: number;
      readonly reason: UnavailableReason;
      readonly unusableTokenReason: UnusableTokenReason;
    }
  /** The hub can't narrow or widen a portal's token; `scope` is what the grant has. */
  | { readonly kind: 'other_scope'; readonly scope: string | null };

/** A device flow that has begun (RFC 8628, 3.2); times in whole seconds. */
export interface DeviceAuthorization {
  readonly deviceCode: Secret;
  readonly userCode: string;
  readonly expiresIn: number;
  readonly interval: number;
}

/** What became of asking for a device flow. */
export type DeviceAuthorizationResult =
  | { readonly kind: 'begun'; readonly authorization: DeviceAuthorization }
  /** The hub asks the portal for the scope that the appliance was registered with, and no other. */
  | { readonly kind: 'other_scope'; readonly scope: string | null }
  /** Too often, or too many at once; `retryAfter` in whole seconds. */
  | { readonly kind: 'unavailable'; readonly retryAfter: number };

/** Where a device flow stands (RFC 8628, 3.5). */
export type DevicePollResult =
  | { readonly kind: 'pending' }
  | { readonly kind: 'slow_down' }
  | { readonly kind: 'failed'; readonly reason: PairingFailureReason }
  /** No device_code that this appliance was given. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'paired' };

/** What a user code stands for. */
export interface FoundPairing {
  readonly pairing: Pairing;
  /** The appliance's name. */
  readonly appliance: string;
}

/** What became of a login that was brought back. */
interface CallbackResult extends FoundPairing {
  /**
   * `unconfirmed`: the portal does not tell of this login, and an installer is asked; `too_late`: none has confirmed it while its
   * code lived. Null for any other.
   */
  readonly login: 'unconfirmed' | 'too_late' | null;
  /** Null if the pairing is part of none, or of one that is long over. */
  readonly batch: BatchForBrowser | null;
}

/** What a pairing's short link stands for. */
interface ShortLinkResult extends FoundPairing {
  /** The link to go on to; null where there is none just now, or ever again. */
  readonly authorizeUrl: string | null;
}

/** What became of a person's wish to go on to the portal. */
export type LoginLinkResult =
  | { readonly kind: 'link'; readonly authorizeUrl: string }
  /** The portal can't be reached just now. */
  | { readonly kind: 'unreachable' }
  /** The portal is asked for so many other pairings that it is asked for no more. */
  | { readonly kind: 'too_many' }
  /** The pairing has ended, or is about to. */
  | { readonly kind: 'over' };

/** The true time as one has told it, in ms since 1970. */
export interface TimeReading {
  readonly now: number;
  /** When this run of the hub began. */
  readonly startedAt: number;
}

/** What became of a revocation. */
type RevocationResult =
  | { readonly kind: 'revoked' }
  /** It holds in memory alone, as it can't be written down: a restart might undo it; `retryAfter` in whole seconds. */
  | { readonly kind: 'unavailable'; readonly retryAfter: number };

/** What the home network may ask of the hub. */
export interface LanService {
  /** The appliance with this client_id. What it may do is another question: see {@link Appliance.waitingSince}. */
  findClient(clientId: string): Appliance | undefined;
  /** The true time by all who have told it, whoever is most to be trusted first; empty while the clock may be wrong. */
  timeReadings(): readonly TimeReading[];
  /** Has the portal asked for the time where nobody has told it, and waits some seconds for that; see {@link timeReadings}. */
  confirmTime(): Promise<void>;
  /** Whether an earlier run of the hub may have known this appliance. */
  existedBeforeStart(appliance: Appliance): boolean;
  /** The appliance has proved who it is, whatever becomes of its request. */
  recordAuthentication(appliance: Appliance): void;

  issueToken(appliance: Appliance, request: TokenRequest): Promise<TokenResult>;
  /**
   * The cloud refused this token of the appliance's: it is never handed out again, and a refresh starts. A refresh token of
   * the hub's own is ended instead. Any other token changes nothing.
   */
  revoke(appliance: Appliance, token: string): Promise<RevocationResult>;

  /** @param scope what the appliance asks for; null where it does not say */
  beginDeviceFlow(appliance: Appliance, scope: string | null): Promise<DeviceAuthorizationResult>;
  /** How the appliance's device flow stands; each call is one poll (RFC 8628, 3.5). */
  pollDeviceFlow(appliance: Appliance, deviceCode: string): Promise<DevicePollResult>;
  /** A refresh token of the hub's own for a device flow that has come to its end. */
  createSession(appliance: Appliance, deviceCode: string): Promise<Secret>;
  /** Whether this is a refresh token that the hub gave the appliance. */
  hasSession(appliance: Appliance, refreshToken: string): boolean;

  /** The hub's pin, for whoever is registered: base64url SHA-256 of its CA's public key. */
  readonly caFingerprint: string;
  /** Whether any appliance may register, without an initial access token. */
  readonly isRegistrationOpen: boolean;
  /** Whether this is an initial access token (RFC 7591, 3) that nobody has used yet. */
  isInvite(token: string): boolean;
  /**
   * @param token the initial access token; null where none came along
   * @throws Failure `not_allowed` where the hub takes no more appliances, or as the store
   */
  register(metadata: ClientMetadata, token: string | null, from: RegistrantAddress): Promise<RegistrationResult>;

  /** The pairing that a user code stands for, however it was typed; null for a code nobody was given. */
  findPairingByUserCode(userCode: string): Promise<FoundPairing | null>;
  /** A fresh link for the pairing of a user code, within the time that a person waits. */
  requestLoginLink(userCode: string): Promise<LoginLinkResult>;
  /** The pairing that a short link leads to; null for a key nobody was given. Changes nothing. */
  findPairingByShortKey(key: string): Promise<ShortLinkResult | null>;
  /**
   * Takes what the portal's redirect brought, and waits some seconds for what becomes of it.
   * @param browser with what it was given for its round, see {@link BatchForBrowser}; null if it has none
   * @returns the pairing as it stands then, and its appliance's name; null for a nonce that the hub never gave out
   */
  receiveCallback(
    nonce: string,
    callback: AuthorizationResponse,
    browser: CallbackBrowser & { readonly pass: string | null },
  ): Promise<CallbackResult | null>;
  /**
   * What proves that the hub itself sent a browser to the portal: it is to keep that until it comes back.
   * @param pairing its id
   */
  browserBinding(pairing: string): Secret;
  /**
   * Takes a browser that has brought an accepted code of a round on to the login of the next appliance, within the time that
   * a person waits.
   * @param nonce of one of the round's pairings
   * @param again rather to that of the same appliance
   * @param pass as `browser.pass` of {@link receiveCallback}
   * @throws Failure `not_allowed` where too many pairings are open, or as the store
   */
  continueBatch(nonce: string, again: boolean, pass: string | null): Promise<BatchLoginLinkResult>;
}
