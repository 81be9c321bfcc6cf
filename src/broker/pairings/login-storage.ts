import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { type Grant, grantFromTokenResponse, isFromLaterLogin, isFromSameLogin } from '../../core/grants/grant.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import { stepPairing } from '../../core/pairings/pairing-step.ts';
import { type ConfiguredPortal, portalIdentityOf } from '../../core/portals/identity.ts';
import type { TokenResponse } from '../../core/portals/token-outcome.ts';
import type { PairingContext } from './pairing-context.ts';

/** How often storing a grant is retried if another write changes the grant meanwhile. */
const MAX_REPLACE_ATTEMPTS = 10;

/** The tokens of a login that has ended. */
export interface EndedLogin {
  readonly portal: ConfiguredPortal;
  readonly tokens: TokenResponse;
  readonly sent: Instant;
}

/** What became of a login: its grant with the end of its pairing, or the tokens of a connection that was removed. */
export type StoredLogin =
  | {
      readonly kind: 'stored' | 'in_memory';
      readonly grant: Grant;
      readonly paired: Pairing;
      /** Whether the generation of the store was known. */
      readonly isNext: boolean;
    }
  | { readonly kind: 'connection_removed'; readonly grant: Grant };

type LoginContext = Pick<PairingContext, 'environment' | 'store' | 'grants' | 'referenceClock' | 'nameOf'>;

/**
 * Stores the grant of a login together with the end of its pairing. It is from a new login, so it replaces any other
 * grant, also one that a refresh brings meanwhile. If the store can't be written, both are only in memory.
 */
export async function storeLogin(context: LoginContext, pairing: Pairing, login: EndedLogin): Promise<StoredLogin> {
  const { store, environment, grants, nameOf } = context;
  const { connection } = pairing;
  const unwritable = (error: unknown) =>
    environment.log.error('store_unwritable', { connection: nameOf(connection), error: messageOf(error) });
  let refused: number | null = null;
  for (let attempt = 1; attempt <= MAX_REPLACE_ATTEMPTS; attempt++) {
    let isNext = true;
    const generation = await store.generation(connection).catch((error: unknown) => {
      unwritable(error);
      isNext = false;
      return (grants.get(connection)?.grant ?? grants.getSuspended(connection))?.generation ?? 0;
    });
    const grant = grantOf(context, pairing, login, generation);
    // Nobody has written another grant: there is no such connection any more.
    if (generation === refused) return { kind: 'connection_removed', grant };
    const paired = pairedWith(context, pairing, grant);
    try {
      if (await store.completePairing(paired, grant)) return { kind: 'stored', grant, paired, isNext };
    } catch (error) {
      unwritable(error);
      return { kind: 'in_memory', grant, paired, isNext };
    }
    refused = generation;
  }
  throw new Error('the grant was changed by other writes repeatedly');
}

/**
 * Stores a login that was only in memory, unless the store has a grant from the same login or a later one; then the
 * pairing has ended too. If another grant was deleted meanwhile, so is this one; but the store may have had a deleted
 * one that this hub did not know.
 * @param stored its grant, as it could not be stored
 * @returns the grant as it is stored now; null if nothing was written, because the store has this login already, or another one
 * @throws Failure as `Store`
 */
export async function storeLoginLate(
  context: LoginContext,
  pairing: Pairing,
  login: EndedLogin,
  { grant: unsaved, paired, isNext }: Exclude<StoredLogin, { kind: 'connection_removed' }>,
): Promise<Grant | null> {
  const { store } = context;
  const { connection } = pairing;
  if (isNext && (await store.completePairing(paired, unsaved))) return unsaved;
  let refused: number | null = null;
  // Another hub may refresh the other grant between its comparison and the write.
  for (let attempt = 1; attempt <= MAX_REPLACE_ATTEMPTS; attempt++) {
    const other = (await store.grant(connection))?.grant;
    if (other === undefined ? unsaved.generation > 1 : isFromSameLogin(other, unsaved)) return null;
    if (other !== undefined && isFromLaterLogin(other, unsaved)) {
      await store.savePairing(pairedWith(context, pairing, unsaved));
      return null;
    }
    const generation = other?.generation ?? (await store.generation(connection));
    // There is no such connection any more.
    if (generation === refused) return null;
    refused = generation;
    const grant = grantOf(context, pairing, login, generation);
    if (await store.completePairing(pairedWith(context, pairing, grant), grant)) return grant;
  }
  throw new Error('the grant was changed by other writes repeatedly');
}

/** @param generation that of the grant that it replaces */
function grantOf(
  { referenceClock }: LoginContext,
  { id, connection, scope }: Pairing,
  { portal, tokens, sent }: EndedLogin,
  generation: number,
): Grant {
  const portalTime = referenceClock.timeAt(portal.name, sent);
  const login = { pairing: id, at: sent, portalTime, refreshTokenLifetime: tokens.refreshTokenLifetime ?? null };
  const issuer = portalIdentityOf(portal);
  const before = { connection, generation, scope, requestedScope: scope, issuer, login };
  return grantFromTokenResponse(before, tokens.refreshToken, tokens, sent, portalTime);
}

function pairedWith({ environment }: LoginContext, pairing: Pairing, { scope }: Grant): Pairing {
  return stepPairing(pairing, { kind: 'paired', scope }, environment.clock.now()).pairing;
}
