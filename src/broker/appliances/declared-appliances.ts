import { isDeepStrictEqual } from 'node:util';
import type { Appliance, DeclaredAppliance } from '../../core/appliances/appliance.ts';
import { Failure } from '../../core/failure.ts';
import { hasScopeChanged } from '../../core/grants/grant.ts';
import type { Log } from '../../core/log.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import { type PortalIdentity, samePortal } from '../../core/portal.ts';
import type { Random } from '../../core/random.ts';
import type { Store } from '../../core/store.ts';
import type { Grants } from '../grants/grants.ts';
import type { ConnectedPortals } from '../ports.ts';
import { type Appliances, hasUnreadableCredentials } from './appliances.ts';

/** The appliances that the configuration declares. */
export interface ApplianceDeclarations {
  readonly appliances: readonly DeclaredAppliance[];
  /** The path of the configuration file, for messages. */
  readonly file: string;
}

/** What reconciling needs. */
interface ReconcileContext {
  readonly appliances: Appliances;
  /** The identity of a configured portal; undefined if the configuration has none of this name. */
  identityOf(portal: string): PortalIdentity | undefined;
  readonly random: Pick<Random, 'uuid'>;
  readonly log: Log;
}

/**
 * Makes the stored appliances match the configuration, at every start and before their grants are loaded. A stored
 * appliance with a declared name is adopted with its grant, unless its row was damaged or changed. An appliance that is
 * no longer declared keeps its grant but loses its credentials, so its tokens can't be requested. If the store can't be
 * written, the appliances are served from memory. If an appliance moves to another portal, its grant is kept but
 * suspended until it moves back (docs/decisions/portals-of-grants.md).
 * @returns the ids of the appliances that moved to another portal: their open pairings at the old one must end
 * @throws Failure `config_invalid` if a client_id belongs to another appliance
 */
export async function reconcileAppliances(
  { appliances: declarations, file }: ApplianceDeclarations,
  context: ReconcileContext,
): Promise<string[]> {
  const { appliances, log } = context;
  const names = new Set(declarations.map(({ name }) => name));
  for (const declaration of declarations) assertClientIdFree(declaration, names, file, context);
  const nameByClientId = new Map(declarations.map(({ clientId, name }) => [clientId, name]));
  for (const appliance of appliances.list()) {
    const { name, origin, clientId, id } = appliance;
    // Two appliances may swap client_ids: each releases what another one declares before any takes it.
    const released = (nameByClientId.get(clientId) ?? name) === name ? appliance : { ...appliance, clientId: id };
    const isGone = origin === 'declared' && !names.has(name);
    await upsert(isGone ? { ...released, origin: 'added', credentials: { kind: 'none' } } : released, context);
    if (isGone) {
      log.warn('appliance_undeclared', {
        appliance: name,
        what_to_do: `declare it again, or latchkey appliance remove ${name}, or rotate-secret ${name}`,
      });
    }
  }
  const movedIds: string[] = [];
  for (const declaration of declarations) {
    const id = await applyDeclaration(declaration, context);
    if (id !== null) movedIds.push(id);
  }
  return movedIds;
}

/** Logs the declared appliances whose scope was changed since they were paired. Their grants remain in use. */
export function warnAboutChangedScopes(appliances: Appliances, grants: Grants, log: Log): void {
  for (const appliance of appliances.list()) {
    const grant = grants.get(appliance.id)?.grant;
    if (!hasScopeChanged(appliance, grant)) continue;
    const { name, scope } = appliance;
    log.warn('scope_changed', { appliance: name, scope, what_to_do: `latchkey pair ${name}` });
  }
}

/** @returns its id if it moved to another portal */
async function applyDeclaration(declaration: DeclaredAppliance, context: ReconcileContext): Promise<string | null> {
  const { appliances, random, log } = context;
  const { name, clientId, scope, credentials } = declaration;
  const portal = appliances.resolvePortal(declaration.portal);
  const existing = appliances.find(name);
  // Its row may have been swapped with another one's, and so may its grant.
  if (existing !== undefined && hasUnreadableCredentials(existing)) return null;
  const declared = { name, clientId, scope, portal, credentials, origin: 'declared', waitingSince: null } as const;
  if (existing === undefined) {
    await upsert({ ...declared, id: random.uuid(), softwareId: null }, context);
    log.info('appliance_declared', { appliance: name, client_id: clientId, existed: false });
    return null;
  }
  // If the old portal is no longer configured, only the grant shows whether the new one is the same portal renamed.
  const [before, after] = [context.identityOf(existing.portal), context.identityOf(portal)];
  const moves = before !== undefined && after !== undefined && !samePortal(before, after);
  await upsert({ ...existing, ...declared }, context);
  if (existing.origin !== 'declared') {
    log.info('appliance_declared', { appliance: name, client_id: clientId, existed: true });
  }
  if (moves) log.warn('appliance_moved', { appliance: name, before: existing.portal, portal });
  return moves ? existing.id : null;
}

async function upsert(appliance: Appliance, { appliances, log }: ReconcileContext): Promise<void> {
  const existing = appliances.byId(appliance.id);
  if (isDeepStrictEqual(existing, appliance)) return;
  const written = await tryWrite(async () => {
    if (existing !== undefined) await appliances.update(appliance.id, () => appliance);
    else if (!(await appliances.insert(appliance))) {
      throw new Failure(
        'unexpected',
        `${appliance.name} can't be declared: the store already has an appliance with its name or client_id`,
      );
    }
  });
  if (written) return;
  log.warn('declaration_not_stored', { appliance: appliance.name });
  appliances.setInMemory(appliance);
}

/** @returns false if the store can't be written at the moment */
async function tryWrite(write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === 'store_unwritable') return false;
    throw error;
  }
}

/** @throws Failure `config_invalid` */
function assertClientIdFree(
  { name, clientId }: DeclaredAppliance,
  declared: ReadonlySet<string>,
  file: string,
  { appliances }: ReconcileContext,
): void {
  const holder = appliances.byClientId(clientId);
  if (holder === undefined || holder.name === name) return;
  // A declared or formerly declared appliance releases its client_id.
  if (declared.has(holder.name) || holder.origin === 'declared' || holder.credentials.kind === 'none') return;
  throw new Failure(
    'config_invalid',
    `${file}: appliances.${name}.client_id: found ${JSON.stringify(clientId)}, which is already the client_id of the appliance ${holder.name}; use another one`,
  );
}

/**
 * Moves the appliances of portals that were renamed in the configuration; their grants identify the portal. An
 * appliance that was never paired stays with the old name until the configuration has it again. Open pairings move
 * along.
 */
export async function migrateRenamedPortals(
  appliances: Appliances,
  portals: Pick<ConnectedPortals, 'nameOf'>,
  store: Pick<Store, 'grant' | 'pairings' | 'savePairing'>,
  log: Log,
): Promise<void> {
  let storedPairings: readonly Pairing[] | undefined;
  for (const appliance of appliances.list()) {
    if (appliances.hasPortal(appliance.portal)) continue;
    const issuer = (await store.grant(appliance.id))?.grant.issuer;
    const portal = issuer && portals.nameOf(issuer);
    if (portal === undefined) continue;
    const renamed = { ...appliance, portal };
    storedPairings ??= await store.pairings();
    const open = storedPairings.filter(
      (pairing) => pairing.appliance === appliance.id && pairing.step.kind !== 'ended',
    );
    // Pairings first: if the hub is interrupted in between, the next start repeats both.
    await movePairings(open, appliance.portal, portal, store)
      .then(() => appliances.update(appliance.id, (current) => ({ ...current, portal })))
      .catch((error: unknown) => {
        if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
        appliances.setInMemory(renamed);
      });
    log.info('portal_renamed', { appliance: appliance.name, before: appliance.portal, portal });
  }
}

/** @throws Failure as {@link Store} */
async function movePairings(
  pairings: readonly Pairing[],
  before: string,
  portal: string,
  store: Pick<Store, 'savePairing'>,
): Promise<void> {
  for (const pairing of pairings) if (pairing.portal === before) await store.savePairing({ ...pairing, portal });
}
