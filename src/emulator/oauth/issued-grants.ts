import * as v from 'valibot';
import { systemRandom } from '../../system/random.ts';
import { appendBounded, BoundedMap } from '../bounded-collections.ts';
import type { EffectiveSettings } from '../settings/effective-settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { TokenClaims } from './bearer-tokens.ts';
import type { ClientAudit } from './client-audit.ts';
import {
  createTokens,
  type GrantSubject,
  type GrantTokensContext,
  isLogin,
  verifyAccessToken,
} from './grant-tokens.ts';

/** A user's authorization of a client, and the state of its tokens. */
export interface IssuedGrant extends GrantSubject {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** When the newest tokens were issued, in milliseconds since 1970. */
  refreshedAt: number;
  /** The number of the newest token pair, from 1. */
  generation: number;
  revoked: boolean;
  /** Access tokens of generations before this one are revoked. */
  accessFrom: number;
  /** The generations whose access token was revoked on its own; the newest {@link MAX_PRESENTED}. Left out if none. */
  revokedAccess?: number[];
  /** The refresh token in force, if it is older than the newest access token. Left out if it is not. */
  refreshToken?: TokenClaims;
  /** The newest generation whose access token was used; only with the setting `graceEndsOnUse`. */
  accessUsed?: number;
  /** Refreshes in progress. */
  inFlight: number;
  /** The generations whose refresh token was presented; the newest {@link MAX_PRESENTED}. */
  readonly presented: number[];
  /** The tokens issued at the first use of a refresh token; the newest {@link MAX_PRESENTED}. */
  readonly successors: Successor[];
}

/** The tokens issued for the refresh token of a generation. */
interface Successor {
  readonly generation: number;
  readonly claims: TokenClaims;
}

/** What of a grant can be revoked: it with all its tokens, or only the access tokens issued so far. */
export const REVOCABLE = ['grant', 'access_tokens'] as const;

const text = (description: string) => v.pipe(v.string(), v.description(description));

/** A token response (docs/portal.md, 5 and 6; RFC 6749, 5.1). */
export const TokenResponseBody = v.strictObject({
  access_token: text('Authenticates calls to the cloud API'),
  /** Seconds. */
  expires_in: v.pipe(v.number(), v.integer(), v.minValue(0), v.description('Lifetime of the access token')),
  token_type: v.picklist(['bearer', 'DPoP']),
  scope: v.nullable(text('Space-separated names; null if none was requested')),
  refresh_token: text('Valid once, unless a grace is set'),
  /** Seconds. */
  refresh_token_expires_in: v.exactOptional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.description('Remaining lifetime of the login; only with the setting `login_lifetime`'),
    ),
  ),
  id_token: v.exactOptional(
    text('A JWT that identifies the user; only with the scope `openid` or the setting `id_token`'),
  ),
});
export type TokenResponseBody = Readonly<v.InferOutput<typeof TokenResponseBody>>;

/** A valid token. Times are in milliseconds since 1970. */
export interface InspectedToken {
  readonly grant: IssuedGrant;
  /** That of the grant, or less. */
  readonly scope: string | null;
  readonly issuedAt: number;
  /** Null for a refresh token. */
  readonly expiresAt: number | null;
  /** The thumbprint of the key that it is bound to, or undefined. */
  readonly jkt: string | undefined;
}

interface RefreshRejection {
  readonly refused: string;
}

/** Grants kept. Beyond this, the least recently refreshed one is removed, which invalidates its tokens. */
const MAX_GRANTS = 100_000;
/** Presented generations, and tokens issued for them, kept of each grant. */
const MAX_PRESENTED = 64;

/** The dependencies of {@link IssuedGrants}. */
interface GrantContext extends GrantTokensContext {
  readonly now: () => number;
  readonly audit: ClientAudit;
  readonly onChange: () => void;
}

/** The grants and their tokens: issue, refresh token rotation, reuse, revocation. */
export class IssuedGrants {
  readonly #grants = new BoundedMap<IssuedGrant>(MAX_GRANTS);
  readonly #context: GrantContext;

  /** @param saved the grants of the state file, least recently refreshed first */
  constructor(saved: readonly IssuedGrant[], context: GrantContext) {
    this.#context = context;
    for (const grant of saved) this.#grants.set(grant.id, { ...grant, inFlight: 0 });
  }

  /** Creates a grant without tokens; {@link issueTokens} issues the first ones. */
  create(clientId: string, user: string, scope: string | null, oauth2?: GrantSubject['oauth2']): IssuedGrant {
    const now = this.#context.now();
    const grant: IssuedGrant = {
      id: systemRandom.token(12),
      clientId,
      user,
      scope,
      ...(oauth2 && { oauth2 }),
      createdAt: now,
      refreshedAt: now,
      generation: 0,
      revoked: false,
      accessFrom: 0,
      inFlight: 0,
      presented: [],
      successors: [],
    };
    this.#grants.set(grant.id, grant);
    return grant;
  }

  /**
   * Issues the first tokens of a grant. With `oneLoginPerUser` a login revokes the user's other grants at this client.
   * @param jkt the thumbprint of the key that they are bound to, or null
   */
  issueTokens(grant: IssuedGrant, settings: EffectiveSettings, jkt: string | null = null): TokenResponseBody {
    if (settings.oneLoginPerUser && isLogin(grant)) {
      for (const other of this.#grants.values()) {
        if (other !== grant && other.clientId === grant.clientId && other.user === grant.user) other.revoked = true;
      }
    }
    const claims = this.#startGeneration(grant, settings.tokenLifetime, jkt);
    this.#context.onChange();
    return this.#createResponse(grant, claims, settings);
  }

  /**
   * Exchanges the refresh token of an authenticated client for new tokens (RFC 6749, 6). The decision is synchronous,
   * so of two concurrent requests with one token the second finds it used. Within `refreshGraceTime` a used token gets
   * the same tokens again if it proves the same key (with `graceEndsOnUse` not after their first use), and within
   * `refreshGrace` generations it gets new tokens. By `refreshRotation` a refresh may leave the refresh token in
   * force. Otherwise it is refused, and with `onReuse: 'revoke-family'` its grant is revoked (RFC 9700, 4.14.2).
   * Access tokens issued before stay valid until they expire, except with `refreshEndsAccessToken`.
   * @param claims of the refresh token, from {@link verifyRefreshToken}
   * @param wanted `jkt`: the thumbprint of the key that new tokens are bound to, or null; `scope`: that of the new access
   *   token, if it is less than the grant's
   */
  refresh(
    grant: IssuedGrant,
    claims: TokenClaims,
    settings: EffectiveSettings,
    { jkt = null, scope }: { readonly jkt?: string | null; readonly scope?: string | undefined } = {},
  ): TokenResponseBody | RefreshRejection {
    const current = grant.refreshToken?.generation ?? grant.generation;
    const wasKept = grant.refreshToken?.generation === claims.generation;
    if (!wasKept && wasPresented(grant, claims.generation)) this.#context.audit.recordMisuse('reused', grant);
    if (!grant.presented.includes(claims.generation)) appendBounded(grant.presented, claims.generation, MAX_PRESENTED);
    const now = this.#context.now();
    const refused = endOfGrant(grant, settings, now);
    if (refused !== null) return { refused };
    const successor = grant.successors.find(({ generation }) => generation === claims.generation)?.claims;
    const hasSameKey = successor?.jkt === (jkt ?? undefined);
    const wasUsed = settings.graceEndsOnUse && (grant.accessUsed ?? 0) >= (successor?.generation ?? 0);
    if (
      successor !== undefined &&
      hasSameKey &&
      !wasUsed &&
      now < successor.issuedAt + 1000 * settings.refreshGraceTime
    ) {
      return this.#createResponse(grant, { ...successor, scope }, settings, { now });
    }
    if (isUnusedTooLong(grant, claims, settings, now)) return { refused: 'the token has expired' };
    if (current - claims.generation > settings.refreshGrace) {
      if (settings.onReuse === 'revoke-family') this.revoke(grant, 'grant');
      return { refused: 'the token was used before' };
    }
    if (claims.generation === current && !isAccessRevoked(grant, grant.generation)) {
      const newest = { ...claims, issuedAt: grant.refreshedAt };
      this.#context.audit.recordRefresh(
        grant,
        (now - newest.issuedAt) / 1000,
        accessTokenLifetime(grant, newest, settings),
      );
    }
    if (settings.refreshEndsAccessToken) grant.accessFrom = grant.generation + 1;
    if (claims.generation === current && !isReplaced(claims, settings, now)) {
      grant.refreshToken = claims;
      const access = this.#startGeneration(grant, settings.tokenLifetime, jkt);
      this.#context.onChange();
      return this.#createResponse(grant, { ...access, scope }, settings, { refreshToken: claims });
    }
    delete grant.refreshToken;
    const next = this.#startGeneration(grant, settings.tokenLifetime, jkt);
    if (successor === undefined)
      appendBounded(grant.successors, { generation: claims.generation, claims: next }, MAX_PRESENTED);
    this.#context.onChange();
    return this.#createResponse(grant, { ...next, scope }, settings);
  }

  /** The claims of a refresh token, even if it is expired or revoked; null if this emulator did not issue it. */
  verifyRefreshToken(refreshToken: string): TokenClaims | null {
    return this.#context.tokens.verify('refresh_token', refreshToken);
  }

  /** The grant of a refresh token of this client, even if either is expired or revoked; null if it is unknown. */
  findByRefreshToken(clientId: string, claims: TokenClaims | null): IssuedGrant | null {
    const grant = claims === null ? undefined : this.#grants.get(claims.grantId);
    return grant?.clientId === clientId ? grant : null;
  }

  /** What a valid access or refresh token stands for (RFC 7662), or null. */
  inspect(token: string, settings: Settings): InspectedToken | null {
    const access = this.inspectAccessToken(token, settings);
    if (access !== null) return access;
    const claims = this.verifyRefreshToken(token);
    const grant = claims === null ? undefined : this.#grants.get(claims.grantId);
    const now = this.#context.now();
    if (claims === null || grant === undefined || endOfGrant(grant, settings, now) !== null) return null;
    const isCurrent = claims.generation === (grant.refreshToken?.generation ?? grant.generation);
    if (!isCurrent || isUnusedTooLong(grant, claims, settings, now)) return null;
    return { grant, scope: grant.scope, issuedAt: claims.issuedAt, expiresAt: null, jkt: claims.jkt };
  }

  /** What a valid access token stands for, or null. */
  inspectAccessToken(token: string, settings: Settings): InspectedToken | null {
    const claims = verifyAccessToken(this.#context, token);
    const grant = claims === null ? undefined : this.#grants.get(claims.grantId);
    if (claims === null || grant === undefined || grant.revoked || isAccessRevoked(grant, claims.generation))
      return null;
    const lifetime = accessTokenLifetime(grant, claims, settings);
    if (isExpired(claims.issuedAt, lifetime, this.#context.now())) return null;
    const { issuedAt, jkt, scope = grant.scope } = claims;
    return { grant, scope, issuedAt, expiresAt: issuedAt + 1000 * lifetime, jkt };
  }

  /** Why an access token is not valid, for its user. It must be one that {@link inspectAccessToken} does not accept. */
  explainAccessToken(token: string): string {
    const claims = verifyAccessToken(this.#context, token);
    if (claims === null && this.verifyRefreshToken(token) !== null)
      return 'this is a refresh token, not an access token';
    const grant = this.#grants.get(claims?.grantId ?? '');
    if (claims === null || grant === undefined) return 'unknown token: it was not issued here, or was changed';
    if (grant.revoked) return 'the grant was revoked';
    if (isAccessRevoked(grant, claims.generation)) return 'the access token was revoked';
    return 'the access token has expired';
  }

  /** What to say of a refresh token that this emulator has not issued to the client. */
  explainUnknownRefreshToken(token = ''): string {
    const isAccessToken = verifyAccessToken(this.#context, token) !== null;
    return isAccessToken ? 'unknown token: this is an access token, not a refresh token' : 'unknown token';
  }

  /** Records the use of a valid access token, which ends the grace of the refresh token that it was issued for. */
  recordUse(token: string): void {
    const claims = verifyAccessToken(this.#context, token);
    const grant = claims === null ? undefined : this.#grants.get(claims.grantId);
    if (claims === null || grant === undefined) return;
    grant.accessUsed = Math.max(grant.accessUsed ?? 0, claims.generation);
  }

  /**
   * Revokes a token of an authenticated client (RFC 7009, 2.1): a refresh token, used or not, with its whole grant, and
   * an access token on its own. An unknown, expired or revoked token changes nothing.
   * @param isOwn whether the server of the request has issued a grant
   * @returns false if the token was issued to another client; then nothing changes
   */
  revokeToken(clientId: string, token: string, isOwn: (grant: IssuedGrant) => boolean): boolean {
    const refreshClaims = this.verifyRefreshToken(token);
    const claims = refreshClaims ?? verifyAccessToken(this.#context, token);
    const grant = claims === null ? undefined : this.#grants.get(claims.grantId);
    if (claims === null || grant === undefined || !isOwn(grant)) return true;
    if (grant.clientId !== clientId) return false;
    if (refreshClaims !== null) this.revoke(grant, 'grant');
    else if (!isAccessRevoked(grant, claims.generation)) {
      grant.revokedAccess ??= [];
      appendBounded(grant.revokedAccess, claims.generation, MAX_PRESENTED);
      this.#context.onChange();
    }
    return true;
  }

  /** Revokes a grant with all its tokens, or only the access tokens issued so far. */
  revoke(grant: IssuedGrant, what: (typeof REVOCABLE)[number]): void {
    if (what === 'grant') grant.revoked = true;
    else grant.accessFrom = grant.generation + 1;
    this.#context.onChange();
  }

  find(id: string): IssuedGrant | undefined {
    return this.#grants.get(id);
  }

  all(): IssuedGrant[] {
    return this.#grants.values();
  }

  #startGeneration(grant: IssuedGrant, lifetime: number, jkt: string | null): TokenClaims {
    grant.generation += 1;
    grant.refreshedAt = this.#context.now();
    this.#grants.set(grant.id, grant);
    const { id: grantId, generation, refreshedAt: issuedAt } = grant;
    return { grantId, generation, issuedAt, lifetime, ...(jkt !== null && { jkt }) };
  }

  /** The token response for claims issued now or before. `expires_in` is the remaining lifetime of the access token. */
  #createResponse(
    grant: IssuedGrant,
    claims: TokenClaims,
    settings: EffectiveSettings,
    {
      now = claims.issuedAt,
      refreshToken = claims,
    }: { readonly now?: number; readonly refreshToken?: TokenClaims } = {},
  ): TokenResponseBody {
    const lifetime = accessTokenLifetime(grant, claims, settings);
    const remaining = remainingSeconds(claims.issuedAt, lifetime, now);
    const { loginLifetime } = settings;
    const { accessToken, idToken } = createTokens(this.#context, grant, claims, lifetime, settings);
    return {
      access_token: accessToken,
      expires_in: remaining,
      token_type: claims.jkt === undefined ? 'bearer' : 'DPoP',
      scope: claims.scope ?? grant.scope,
      // It keeps the scope of the grant (RFC 6749, 6).
      refresh_token: this.#context.tokens.sign('refresh_token', { ...refreshToken, scope: undefined }),
      ...(loginLifetime !== null && {
        refresh_token_expires_in: remainingSeconds(grant.createdAt, loginLifetime, now),
      }),
      ...(idToken !== null && { id_token: idToken }),
    };
  }
}

/** Why no refresh token of a grant is valid, or null. */
function endOfGrant(
  { revoked, createdAt }: IssuedGrant,
  { grantLifetime, loginLifetime }: Settings,
  now: number,
): string | null {
  if (revoked) return 'the grant was revoked';
  if (isExpired(createdAt, grantLifetime, now)) return 'the grant has expired';
  return isExpired(createdAt, loginLifetime, now) ? 'the login has expired' : null;
}

/** Whether a refresh token has expired. One that is never replaced has its lifetime from its last use. */
function isUnusedTooLong(
  { refreshToken, refreshedAt }: IssuedGrant,
  { generation, issuedAt }: TokenClaims,
  { refreshRotation, refreshLifetime }: Settings,
  now: number,
): boolean {
  const wasKept = refreshToken?.generation === generation;
  return isExpired(wasKept && refreshRotation === 'never' ? refreshedAt : issuedAt, refreshLifetime, now);
}

/** A refresh token is replaced late when this part of its lifetime has passed. */
const LATE_ROTATION_RATIO = 0.7;

/** Whether a refresh replaces the refresh token in force. */
function isReplaced({ issuedAt }: TokenClaims, { refreshRotation, refreshLifetime }: Settings, now: number): boolean {
  if (refreshRotation !== 'late') return refreshRotation === 'always';
  return isExpired(issuedAt, refreshLifetime === null ? null : LATE_ROTATION_RATIO * refreshLifetime, now);
}

/** Lifetime of an access token, in seconds: that of its claims, but not beyond the end of its login. */
function accessTokenLifetime(
  { createdAt }: IssuedGrant,
  { issuedAt, lifetime }: TokenClaims,
  { loginLifetime }: Settings,
): number {
  if (loginLifetime === null) return lifetime;
  return Math.min(lifetime, loginLifetime - (issuedAt - createdAt) / 1000);
}

/** Whether the access token of this generation was revoked. */
function isAccessRevoked({ accessFrom, revokedAccess = [] }: IssuedGrant, generation: number): boolean {
  return generation < accessFrom || revokedAccess.includes(generation);
}

/** Whole seconds until a lifetime, in seconds, is over; 0 if it is. */
function remainingSeconds(since: number, lifetime: number, now: number): number {
  return Math.max(0, Math.floor(lifetime - Math.max(0, now - since) / 1000));
}

/** Whether a lifetime, in seconds, has passed; null never does. */
function isExpired(since: number, lifetime: number | null, now: number): boolean {
  return lifetime !== null && now >= since + 1000 * lifetime;
}

function wasPresented(grant: IssuedGrant, generation: number): boolean {
  return grant.presented.includes(generation) || generation + MAX_PRESENTED < grant.generation;
}
