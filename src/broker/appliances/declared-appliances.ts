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
import { type Appliances, hasDamagedEntry } from './appliances.ts';

/** What the configuration declares. */
export interface ApplianceDeclarations {
  readonly appliances: readonly DeclaredAppliance[];
  /** The configuration's file, for messages. */
  readonly file: string;
}

/** What declaring appliances takes. */
interface ReconcileContext {
  readonly appliances: Appliances;
  /** Which portal this name stands for; undefined where the configuration has none of that name. */
  identityOf(portal: string): PortalIdentity | undefined;
  readonly random: Pick<Random, 'uuid'>;
  readonly log: Log;
}

/**
 * Brings the appliances in line with the configuration, which is done at every start and before their grants are loaded.
 * One of a declared name that was there before is taken over with its grant, unless its row was damaged or changed; one that is declared no longer stays with its
 * grant, and nobody can ask for its tokens. A store that can't be written keeps nothing from being served. The grant of one
 * that goes to another portal is kept, and rests until it comes back (docs/decisions/portals-of-grants.md).
 * @returns the ids of those that went to another portal: a pairing that is open at the one before is to be ended
 * @throws Failure `config_invalid` where a client_id is another appliance's
 */
export async function reconcileAppliances(
  { appliances: declarations, file }: ApplianceDeclarations,
  context: ReconcileContext,
): Promise<string[]> {
  const { appliances, log } = context;
  const names = new Set(declarations.map(({ name }) => name));
  for (const declaration of declarations) assertClientIdFree(declaration, names, file, context);
  const holders = new Map(declarations.map(({ clientId, name }) => [clientId, name]));
  for (const appliance of appliances.list()) {
    const { name, origin, clientId, id } = appliance;
    // Two may change places: each gives up what is another's from now on before any takes it.
    const freed = (holders.get(clientId) ?? name) === name ? appliance : { ...appliance, clientId: id };
    const isGone = origin === 'declared' && !names.has(name);
    await upsert(isGone ? { ...freed, origin: 'added', credentials: { kind: 'none' } } : freed, context);
    if (isGone) {
      log.warn('appliance_undeclared', {
        appliance: name,
        what_to_do: `declare it again, or latchkey appliance remove ${name}, or rotate-secret ${name}`,
      });
    }
  }
  const moved: string[] = [];
  for (const declaration of declarations) {
    const id = await applyDeclaration(declaration, context);
    if (id !== null) moved.push(id);
  }
  return moved;
}

/** Says of which declared appliances the scope was changed since they were paired: their grants stay at work meanwhile. */
export function warnAboutChangedScopes(appliances: Appliances, grants: Grants, log: Log): void {
  for (const appliance of appliances.list()) {
    const grant = grants.get(appliance.id)?.grant;
    if (!hasScopeChanged(appliance, grant)) continue;
    const { name, scope } = appliance;
    log.warn('scope_changed', { appliance: name, scope, what_to_do: `latchkey pair ${name}` });
  }
}

/** @returns its id where it went to another portal */
async function applyDeclaration(declaration: DeclaredAppliance, context: ReconcileContext): Promise<string | null> {
  const { appliances, random, log } = context;
  const { name, clientId, scope, credentials } = declaration;
  const portal = appliances.resolvePortal(declaration.portal);
  const known = appliances.find(name);
  // Its row may be another's by now, with another one's grant.
  if (known !== undefined && hasDamagedEntry(known)) return null;
  const declared = { name, clientId, scope, portal, credentials, origin: 'declared', waitingSince: null } as const;
  if (known === undefined) {
    await upsert({ ...declared, id: random.uuid(), softwareId: null }, context);
    log.info('appliance_declared', { appliance: name, client_id: clientId, existed: false });
    return null;
  }
  // Where the configuration has its portal no longer, only the grant tells whether this is the same one by another name.
  const [before, after] = [context.identityOf(known.portal), context.identityOf(portal)];
  const moves = before !== undefined && after !== undefined && !samePortal(before, after);
  await upsert({ ...known, ...declared }, context);
  if (known.origin !== 'declared') {
    log.info('appliance_declared', { appliance: name, client_id: clientId, existed: true });
  }
  if (moves) log.warn('appliance_moved', { appliance: name, before: known.portal, portal });
  return moves ? known.id : null;
}

async function upsert(appliance: Appliance, { appliances, log }: ReconcileContext): Promise<void> {
  const known = appliances.byId(appliance.id);
  if (isDeepStrictEqual(known, appliance)) return;
  const written = await tryWrite(async () => {
    if (known !== undefined) await appliances.update(appliance.id, () => appliance);
    else if (!(await appliances.insert(appliance))) {
      throw new Failure(
        'unexpected',
        `${appliance.name} can't be declared: its name or client_id is in the store already`,
      );
    }
  });
  if (written) return;
  log.warn('declaration_not_stored', { appliance: appliance.name });
  appliances.setInMemory(appliance);
}

/** @returns false where the store can't be written for now */
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
  // One that is declared, or was, gives its client_id up.
  if (declared.has(holder.name) || holder.origin === 'declared' || holder.credentials.kind === 'none') return;
  throw new Failure(
    'config_invalid',
    `${file}: appliances.${name}.client_id: found ${JSON.stringify(clientId)}, which is the client_id of the appliance ${holder.name}; allowed is another`,
  );
}

/**
 * Takes along the appliances whose portal has another name in the configuration by now: which one it is their grants tell.
 * One that was never paired waits for its portal's name to come back. A pairing that is open goes along.
 */
export async function migrateRenamedPortals(
  appliances: Appliances,
  portals: Pick<ConnectedPortals, 'nameOf'>,
  store: Pick<Store, 'grant' | 'pairings' | 'savePairing'>,
  log: Log,
): Promise<void> {
  let kept: readonly Pairing[] | undefined;
  for (const appliance of appliances.list()) {
    if (appliances.hasPortal(appliance.portal)) continue;
    const issuer = (await store.grant(appliance.id))?.grant.issuer;
    const portal = issuer && portals.nameOf(issuer);
    if (portal === undefined) continue;
    const renamed = { ...appliance, portal };
    kept ??= await store.pairings();
    const open = kept.filter((pairing) => pairing.appliance === appliance.id && pairing.step.kind !== 'ended');
    // The pairings first: what is cut short between the two is done at the next start.
    await movePairings(open, appliance.portal, portal, store)
      .then(() => appliances.update(appliance.id, (current) => ({ ...current, portal })))
      .catch((error: unknown) => {
        if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
        appliances.setInMemory(renamed);
      });
    log.info('portal_renamed', { appliance: appliance.name, before: appliance.portal, portal });
  }
}

/** @throws Failure as the store */
async function movePairings(
  pairings: readonly Pairing[],
  before: string,
  portal: string,
  store: Pick<Store, 'savePairing'>,
): Promise<void> {
  for (const pairing of pairings) if (pairing.portal === before) await store.savePairing({ ...pairing, portal });
}
