import type { Appliance } from './appliances/appliance.ts';
import type { ClientMetadata, RegistrationResult } from './appliances/registration.ts';
import type { ConnectionState } from './connections/connection-status.ts';
import type { Named } from './name.ts';
import type { ReceivedResponse } from './pairings/authorization-response.ts';
import type { Pairing, PairingFailureReason } from './pairings/pairing.ts';
import type { BatchForBrowser, BatchLoginLinkResult } from './pairings/pairing-batch.ts';
import type { ShownLink } from './portals/login-link.ts';
import type { ProblemCode } from './reports/problem.ts';
import type { Secret } from './secret.ts';

/** The longest time from a request of an appliance or a browser to its response, in ms: clients often time out after 10 s. */
export const MAX_RESPONSE_TIME = 9500;

/** The browser that brought an authorization response. */
export interface CallbackBrowser {
  /** Its IP address. */
  readonly address: string;
  /** The proof that the hub sent it to the portal, see {@link LanService.browserToken}; null if it has none. */
  readonly browserToken: string | null;
}

/** A token request of an appliance. */
export interface TokenRequest {
  /** The name of the connection whose token is wanted; left out if the request does not say. */
  readonly connection?: string;
  /** Null if the request has none. */
  readonly scope: string | null;
  /** Shortest remaining lifetime that the appliance accepts, in ms; 0 if the request does not say. */
  readonly minTtl: number;
  /** When the response is due, on the boot clock in ms; {@link MAX_RESPONSE_TIME} from now if left out. */
  readonly deadline?: number;
}

/**
 * Why there is no new token: the problem of the grant; `no_answer_yet` if the portal has not responded yet; or
 * `replaced_recently` if the hub may not replace a rejected token again yet.
 */
export type UnavailableReason = Exclude<ProblemCode, 'refused'> | 'no_answer_yet' | 'replaced_recently';

/** Why the hub does not issue the current access token; `age_unknown`: after a boot, it may have expired. */
export type UnusableTokenReason = 'expired' | 'rejected' | 'age_unknown';

/** The result of a token request. */
export type TokenResult =
  /** `expiresIn`: remaining lifetime in whole seconds, rounded down. */
  | {
      readonly kind: 'token';
      readonly accessToken: Secret;
      readonly expiresIn: number;
      readonly scope: string | null;
      /** The portal's ID token, if the scope has `openid` and the portal gave one; left out otherwise. */
      readonly idToken?: Secret;
    }
  /**
   * `needs_pairing`: a person must log in again, and the current access token is not valid. `connection`: its name, if it is
   * not that of the appliance alone.
   */
  | { readonly kind: 'not_paired' | 'needs_pairing'; readonly connection?: string }
  /** No token at the moment; `retryAfter` in whole seconds. */
  | {
      readonly kind: 'unavailable';
      readonly retryAfter: number;
      readonly reason: UnavailableReason;
      readonly unusableTokenReason: UnusableTokenReason;
    }
  /**
   * The request goes beyond the scope of the grant, `scope`, and the hub can't change that of a portal's token.
   */
  | { readonly kind: 'other_scope'; readonly scope: string | null }
  /** The appliance uses several connections and the request names none, or it does not use the one that it names. */
  | { readonly kind: 'other_connection'; readonly connections: readonly string[] };

/** A device flow that has begun (RFC 8628, 3.2); times in whole seconds. */
export interface DeviceAuthorization {
  readonly deviceCode: Secret;
  readonly userCode: string;
  readonly expiresIn: number;
  readonly interval: number;
}

/** The result of a device authorization request. */
export type DeviceAuthorizationResult =
  | { readonly kind: 'begun'; readonly authorization: DeviceAuthorization }
  /** The request goes beyond the scope of the connection, which is the only one that the hub requests from the portal. */
  | { readonly kind: 'other_scope'; readonly scope: string | null }
  | Extract<TokenResult, { readonly kind: 'other_connection' }>
  /** Too many requests, or too many open device flows; `retryAfter` in whole seconds. */
  | { readonly kind: 'unavailable'; readonly retryAfter: number };

/** The state of a device flow (RFC 8628, 3.5). */
export type DevicePollResult =
  | { readonly kind: 'pending' }
  | { readonly kind: 'slow_down' }
  | { readonly kind: 'failed'; readonly reason: PairingFailureReason }
  /** The hub did not issue this device code to this appliance. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'paired'; readonly connection: string };

/** What a refresh token of the hub is for. */
interface FoundSession {
  /** The name of the connection; left out if it is not known which of several. */
  readonly connection?: string;
}

/** A connection as the appliances that use it see it. */
interface UsedConnection extends Named {
  /** The preset of its portal; null if that has none. */
  readonly cloud: string | null;
  readonly state: ConnectionState;
}

/** A connection that a pairing is about, and the appliances that get its tokens. */
export interface PairedConnection {
  /** Its name. */
  readonly connection: string;
  readonly title: string;
  /** The appliances that use it. */
  readonly users: readonly Named[];
  /** As in {@link ConnectionStatus}. */
  readonly own?: true;
}

/** A pairing with its connection. */
interface FoundPairing extends PairedConnection {
  readonly pairing: Pairing;
}

/** The device flow of a user code. */
export interface FoundDeviceFlow extends FoundPairing {
  /** The appliance that has begun it. */
  readonly appliance: Named;
  /**
   * Whether an installer can let the appliance use the grant that the connection has, so that nobody needs to log in at
   * the portal.
   */
  readonly isApprovable: boolean;
  /**
   * Whether a login at the portal would replace one that several appliances use, so that only an installer may begin it.
   */
  readonly needsInstaller: boolean;
}

/**
 * Why an authorization response was not used: its link was used before (`used`), another portal sent it
 * (`foreign_issuer`), or it is about another pairing than the one that it was pasted for (`other_pairing`).
 */
export type RejectedResponseReason = 'used' | 'foreign_issuer' | 'other_pairing';

/** The result of an authorization response. */
interface CallbackResult extends FoundPairing {
  /** Null if it was used, now or before, or if its address only names its pairing: then anybody could have sent it. */
  readonly rejected: RejectedResponseReason | null;
  /**
   * `unconfirmed`: the portal does not report this login, so an installer must confirm it; `too_late`: no installer
   * confirmed it before its code expired. Null otherwise.
   */
  readonly login: 'unconfirmed' | 'too_late' | null;
  /** Null if the pairing is part of no batch, or of one that ended long ago. */
  readonly batch: BatchForBrowser | null;
}

/** The pairing of a short link. */
interface ShortLinkResult extends FoundPairing {
  /** The pairing link to redirect to; null if there is none at the moment, or if the pairing has ended. */
  readonly link: ShownLink | null;
}

/** The result of a request for the portal's login link. */
export type LoginLinkResult =
  | ({ readonly kind: 'link' } & ShownLink)
  /** The portal is unreachable at the moment. */
  | { readonly kind: 'unreachable' }
  /** The pairing has ended, or ends soon. */
  | { readonly kind: 'over' };

/** The true time according to one source, in ms since 1970. */
export interface TimeReading {
  readonly now: number;
  /** When this run of the hub began. */
  readonly startedAt: number;
}

/** The result of a revocation. */
type RevocationResult =
  | 'revoked'
  /** It is only in memory, because the store can't be written: a restart might undo it. */
  | 'unwritten';

/** The operations that the hub offers to the LAN. */
export interface LanService {
  /** The appliance with this client_id. It may not be approved yet, see {@link Appliance.waiting}. */
  findClient(clientId: string): Appliance | undefined;
  /**
   * On a site: looks for what other hubs have changed a moment ago, such as an appliance that is unknown here. Takes
   * some seconds at most.
   * @param deadline when the response is due at the latest, on the boot clock in ms
   * @returns whether it has looked, so that another try may end differently
   */
  lookForNews(deadline: number): Promise<boolean>;
  /** The true time according to each source, the most trustworthy first; empty while the clock may be wrong. */
  timeReadings(): readonly TimeReading[];
  /**
   * If no source has confirmed the time, asks the portal for it and waits some seconds for the response; see
   * {@link timeReadings}.
   * @param deadline as in {@link lookForNews}
   */
  confirmTime(deadline: number): Promise<void>;
  /** Whether an earlier run of the hub may have known this appliance. */
  existedBeforeStart(appliance: Appliance): boolean;
  /** Records that the appliance has authenticated, whatever the result of its request is. */
  recordAuthentication(appliance: Appliance): void;
  /**
   * Records that somebody has asked in the name of this appliance with wrong credentials.
   * @param reason why they were refused, as part of a sentence
   * @param address that the request came from
   */
  recordRefusal(appliance: Appliance, reason: string, address: string): void;

  issueToken(appliance: Appliance, request: TokenRequest): Promise<TokenResult>;
  /**
   * Revokes a token of the appliance. If it is the access token, the cloud has refused it: the hub never issues it
   * again, and starts a refresh. If it is a refresh token of the hub, its session ends. Any other token changes
   * nothing.
   */
  revoke(appliance: Appliance, token: string): Promise<RevocationResult>;

  /**
   * @param scope the requested scope; null if the request has none
   * @param connection as in {@link TokenRequest}
   */
  beginDeviceFlow(appliance: Appliance, scope: string | null, connection?: string): Promise<DeviceAuthorizationResult>;
  /**
   * The state of the appliance's device flow; each call is one poll (RFC 8628, 3.5).
   * @param deadline as in {@link lookForNews}
   * @returns null if the hub has not loaded the device flows by then
   */
  pollDeviceFlow(appliance: Appliance, deviceCode: string, deadline: number): Promise<DevicePollResult | null>;
  /**
   * Issues a refresh token of the hub for a device flow that has succeeded.
   * @param connection the name of the connection that it was for
   * @param deadline as in {@link lookForNews}
   * @returns null if it is not stored by then; the next call returns the same one
   */
  createSession(appliance: Appliance, deviceCode: string, connection: string, deadline: number): Promise<Secret | null>;
  /** What the hub issued this refresh token for; undefined if it issued none such to the appliance. */
  findSession(appliance: Appliance, refreshToken: string): FoundSession | undefined;

  /** The hub, as appliances see it. */
  readonly hub: Readonly<Record<'id' | 'name' | 'version', string>>;
  /** The connections that the appliance uses. */
  describeConnections(appliance: Appliance): readonly UsedConnection[];

  /** The CA pin, for the registration response: base64url SHA-256 of the CA's public key. */
  readonly caFingerprint: string;
  /** Whether this is an unused initial access token (RFC 7591, 3). */
  isInvite(token: string): boolean;
  /**
   * @param token the initial access token; null if the request has none
   * @param address see {@link Appliance.waiting}
   * @throws Failure `not_allowed` if the hub accepts no more appliances, or as {@link Store}
   */
  register(metadata: ClientMetadata, token: string | null, address: string): Promise<RegistrationResult>;

  /** The pairing of a user code, as it was typed; null for a code that the hub did not issue. */
  findPairingByUserCode(userCode: string): Promise<FoundDeviceFlow | null>;
  /** A new link for the pairing of a user code; resolves within the time that a person waits. */
  requestLoginLink(userCode: string): Promise<LoginLinkResult>;
  /**
   * Lets the appliance of a user code use the grant that its connection has, if {@link FoundDeviceFlow.isApprovable}.
   * Only for an installer.
   * @param user the installer's name, if it is known
   * @throws Failure as {@link Store}
   */
  approveDeviceFlow(userCode: string, user?: string): Promise<void>;
  /** Ends the device flow of a user code as refused. Only for an installer. */
  refuseDeviceFlow(userCode: string): Promise<void>;
  /** The pairing of a short link; null for a key that the hub did not issue. Changes nothing. */
  findPairingByShortKey(key: string): Promise<ShortLinkResult | null>;
  /**
   * Handles the portal's redirect, and waits some seconds for the result.
   * @param browser `batchToken`: see {@link BatchForBrowser}; null if it has none
   * @returns the pairing after that, and its connection; null for a nonce or a state that the hub did not issue, or no
   * longer knows
   */
  receiveResponse(
    received: ReceivedResponse,
    browser: CallbackBrowser & { readonly batchToken: string | null },
  ): Promise<CallbackResult | null>;
  /**
   * A proof that the hub sent a browser to the portal. The browser keeps it until the portal redirects it back.
   * @param pairing its id
   */
  browserToken(pairing: string): Secret;
  /**
   * The login link of the batch's next appliance, for a browser that has brought an accepted code of the batch.
   * Resolves within the time that a person waits.
   * @param nonce of one of the batch's pairings
   * @param again whether to log in for the same appliance again instead
   * @param batchToken as `browser.batchToken` of {@link receiveResponse}
   * @throws Failure `not_allowed` if the connection is damaged, or as {@link Store}
   */
  continueBatch(nonce: string, again: boolean, batchToken: string | null): Promise<BatchLoginLinkResult>;
}
