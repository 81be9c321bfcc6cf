import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import { type Grant, grantFromTokenResponse, isFromLaterLogin, isFromSameLogin } from '../../core/grants/grant.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import { stepPairing } from '../../core/pairings/pairing-step.ts';
import { type ConfiguredPortal, portalIdentityOf } from '../../core/portals/identity.ts';
import type { LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse, Portal } from '../../core/portals/portal.ts';
import type { TokenOutcome, TokenResponse } from '../../core/portals/token-outcome.ts';
import type { GrantSlot, Store } from '../../core/store.ts';
import type { Grants } from '../grants/grants.ts';
import type { ConnectedPortal, Environment, PairingTimes } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/** A code lives 30 to 60 s; sending it is retried no longer than this, in ms. */
const CODE_LIFETIME_MS = 60_000;
const BACKOFF = { base: 1000, cap: 5000 };
/** How often a code is sent while something before the portal refuses the hub: a person waits for the cause. */
const MAX_BLOCKED = 3;

/** What all pairings share. */
export interface PairingContext {
  readonly environment: Environment;
  readonly store: Store;
  /** See {@link NewsLook.take}. */
  readonly lookForNews: () => Promise<boolean>;
  readonly grants: Grants;
  readonly referenceClock: ReferenceClock;
  readonly times: PairingTimes;
  /** See {@link Connections.writeUnwritten}. */
  readonly writeUnwritten: () => Promise<void>;
  readonly nameOf: (connection: string) => string;
  readonly portalOf: (portal: string) => ConnectedPortal | undefined;
}

/** The outcome of a code exchange; `sent` is when its last attempt began. */
interface ExchangeResult {
  readonly outcome: TokenOutcome;
  readonly sent: Instant;
}

/**
 * Exchanges a code once. It retries only if the code was certainly not sent, if the portal asked for a later retry, or
 * if something before it refused the hub.
 * @param writeAhead saves that the code is about to be sent, because it must not be sent again after a crash
 * @param signal aborted when no further attempt is wanted
 * @returns null if the code was not sent, because the exchange is no longer wanted or could not be written ahead
 */
export async function exchangeCode(
  { clock, timers, random }: Environment,
  portal: Portal,
  request: { readonly link: LoginLink; readonly response: CodeResponse; readonly scope: string | null },
  { writeAhead, signal }: { readonly writeAhead: () => Promise<boolean>; readonly signal: AbortSignal },
): Promise<ExchangeResult | null> {
  const since = clock.now().uptime;
  let isWritten = false;
  let blocked = 0;
  for (let attempt = 1; !signal.aborted; attempt++) {
    const problem = await portal.prepareTokenRequest(signal);
    if (problem === null && !signal.aborted) isWritten ||= await writeAhead();
    if (signal.aborted || (problem === null && !isWritten)) break;
    const sent = clock.now();
    const outcome = problem ?? (await portal.exchangeCode(request.link, request.response, request.scope));
    const isBlocked = outcome.kind === 'blocked' && outcome.redirect === undefined && ++blocked < MAX_BLOCKED;
    if (outcome.kind !== 'not_sent' && outcome.kind !== 'deferred' && !isBlocked) return { outcome, sent };
    const retryAfter = outcome.kind === 'deferred' ? (outcome.retryAfter ?? 0) : 0;
    const delay = Math.max(retryAfter, backoffDelay(BACKOFF, attempt, random.fraction()));
    if (clock.now().uptime - since + delay > CODE_LIFETIME_MS) return { outcome, sent };
    if (!signal.aborted) await timers.sleep(delay, signal);
  }
  return null;
}

/** The tokens of a login that has ended. */
export interface EndedLogin {
  readonly portal: ConfiguredPortal;
  readonly tokens: TokenResponse;
  readonly sent: Instant;
}

/** What became of a login: its grant with the end of its pairing, or the tokens of a connection that was removed. */
type StoredLogin =
  | {
      readonly kind: 'stored' | 'in_memory';
      readonly grant: Grant;
      readonly paired: Pairing;
    }
  | { readonly kind: 'connection_removed'; readonly grant: Grant };

/**
 * Stores the grant of a login together with the end of its pairing. It is from a new login, so it replaces any other
 * grant, also one that a refresh brings meanwhile. If the store can't be written, both are only in memory.
 */
export async function storeLogin(context: PairingContext, pairing: Pairing, login: EndedLogin): Promise<StoredLogin> {
  const { store, environment, grants, nameOf } = context;
  const { connection } = pairing;
  let end: ReturnType<typeof endOf> | null = null;
  const decide = ({ generation }: Pick<GrantSlot, 'generation'>): ReturnType<typeof endOf> => {
    end = endOf(context, pairing, login, generation);
    return end;
  };
  try {
    const saved = await store.saveLogin(connection, decide);
    const { grant, pairing: paired } = end ?? decide({ generation: 0 });
    return saved === null ? { kind: 'connection_removed', grant } : { kind: 'stored', grant, paired };
  } catch (error) {
    environment.log.error('store_unwritable', { connection: nameOf(connection), error: messageOf(error) });
    const held = grants.get(connection)?.grant ?? grants.getSuspended(connection);
    const { grant, pairing: paired } = end ?? decide({ generation: held?.generation ?? 0 });
    return { kind: 'in_memory', grant, paired };
  }
}

/**
 * Stores a login that was only in memory, unless the store has a grant from the same login or a later one; then the
 * pairing has ended too. If another grant was deleted meanwhile, so is this one; but the store may have had a deleted
 * one that this hub did not know.
 * @param unsaved its grant, as it could not be stored
 * @returns the grant as it is stored now; null if nothing was written, because the store has this login already, or another one
 * @throws Failure as `Store`
 */
export function storeLoginLate(
  context: PairingContext,
  pairing: Pairing,
  login: EndedLogin,
  unsaved: Grant,
): Promise<Grant | null> {
  return context.store.saveLogin(pairing.connection, ({ generation, grant: other }) => {
    if (other === null && unsaved.generation > 1 && generation !== unsaved.generation - 1) return null;
    if (other !== null && isFromSameLogin(other, unsaved)) return null;
    if (other !== null && isFromLaterLogin(other, unsaved))
      return { grant: null, pairing: pairedWith(context, pairing, unsaved) };
    return endOf(context, pairing, login, generation);
  });
}

/** @param generation that of the grant that it replaces */
function endOf(
  context: PairingContext,
  pairing: Pairing,
  { portal, tokens, sent }: EndedLogin,
  generation: number,
): { readonly grant: Grant; readonly pairing: Pairing } {
  const { id, connection, scope } = pairing;
  const portalTime = context.referenceClock.timeAt(portal.name, sent);
  const login = { pairing: id, at: sent, portalTime, refreshTokenLifetime: tokens.refreshTokenLifetime ?? null };
  const issuer = portalIdentityOf(portal);
  const before = { connection, generation, scope, requestedScope: scope, issuer, login };
  const grant = grantFromTokenResponse(before, tokens.refreshToken, tokens, sent, portalTime);
  return { grant, pairing: pairedWith(context, pairing, grant) };
}

function pairedWith({ environment }: PairingContext, pairing: Pairing, { scope }: Grant): Pairing {
  return stepPairing(pairing, { kind: 'paired', scope }, environment.clock.now()).pairing;
}
