import { isDeepStrictEqual } from 'node:util';
import type { Appliance, DeclaredAppliance } from '../../core/appliances/appliance.ts';
import { Failure } from '../../core/failure.ts';
import { hasUnreadableCredentials } from '../appliances/appliances.ts';
import { withConnections } from '../connections/connection-changes.ts';
import { declareConnection, type ReconcileContext, writeIfPossible } from './declared-connections.ts';

/**
 * Makes the stored appliances match the configuration, at every start, after the declared connections and before the
 * grants are loaded. A stored appliance with a declared name is adopted, unless its row was damaged or changed; so is a
 * connection of its name if it is declared without one. With a damaged connection nothing of it changes. An appliance
 * that is no longer declared keeps its connection but loses its credentials, so its tokens can't be requested; on a site
 * only if this hub declared it before. If the store can't be written, the appliances are served from memory.
 * @param file the path of the configuration file, for messages
 * @returns the ids of the connections that moved to another portal: their open pairings at the old one must end
 * @throws Failure `config_invalid` if a client_id belongs to another appliance
 */
export async function reconcileAppliances(
  declarations: readonly DeclaredAppliance[],
  file: string,
  context: ReconcileContext,
): Promise<string[]> {
  const { appliances, own, log } = context;
  const names = new Set(declarations.map(({ name }) => name));
  for (const declaration of declarations) assertClientIdFree(declaration, names, file, context);
  const nameByClientId = new Map(declarations.map(({ clientId, name }) => [clientId, name]));
  for (const appliance of appliances.list()) {
    const { name, origin, clientId, id } = appliance;
    // Two appliances may swap client_ids: each releases what another one declares before any takes it.
    const released = (nameByClientId.get(clientId) ?? name) === name ? appliance : { ...appliance, clientId: id };
    const isGone = origin === 'declared' && !names.has(name) && own.includes(`appliances/${name}`);
    await upsert(isGone ? { ...released, origin: 'added', credentials: { kind: 'none' } } : released, context);
    if (isGone) {
      log.warn('appliance_undeclared', {
        appliance: name,
        what_to_do: `declare it again, or latchkey appliance remove ${name}, or rotate-secret ${name}`,
      });
    }
  }
  const movedIds: string[] = [];
  // An appliance may use the own connection of another one, in any order in the file.
  const byConnection = declarations.toSorted(
    (a, b) => Math.sign(a.connections.length) - Math.sign(b.connections.length),
  );
  for (const declaration of byConnection) movedIds.push(...(await applyDeclaration(declaration, context)));
  return movedIds;
}

/** @returns the id of its own connection, if that moved to another portal */
async function applyDeclaration(declaration: DeclaredAppliance, context: ReconcileContext): Promise<string[]> {
  const { appliances, connections, random, log } = context;
  const { name, clientId, credentials, ignoresScope, connections: names } = declaration;
  const existing = appliances.find(name);
  // Its row, or that of the connection, may have been swapped with another one's.
  if (existing !== undefined && hasUnreadableCredentials(existing)) return [];
  if ((names.length === 0 ? [name] : names).every((used) => connections.find(used)?.damaged)) return [];
  const id = existing?.id ?? random.uuid();
  const own = names.length === 0 ? await declareOwnConnection(declaration, id, existing, context) : null;
  const ids = own === null ? names.map((used) => connections.get(used).id) : [own.id];
  const declared = { id, name, clientId, connection: id, credentials, origin: 'declared', waiting: null } as const;
  const { ignoresScope: _, ...appliance } = { title: name, softwareId: null, ...existing, ...declared };
  await upsert(withConnections({ ...appliance, ...(ignoresScope && { ignoresScope }) }, ids), context);
  if (existing?.origin !== 'declared') {
    log.info('appliance_declared', { appliance: name, client_id: clientId, existed: existing !== undefined });
  }
  return own?.hasMoved ? [own.id] : [];
}

/** Declares the connection of an appliance that is declared without one. */
async function declareOwnConnection(
  { name, portal, scope }: DeclaredAppliance,
  appliance: string,
  existing: Appliance | undefined,
  context: ReconcileContext,
): ReturnType<typeof declareConnection> {
  const id = existing === undefined ? appliance : context.random.uuid();
  return declareConnection({ name, portal, scope }, id, context);
}

async function upsert(appliance: Appliance, context: ReconcileContext): Promise<void> {
  const { appliances } = context;
  const existing = appliances.byId(appliance.id);
  if (isDeepStrictEqual(existing, appliance)) return;
  await writeIfPossible(
    `the appliance ${appliance.name}`,
    existing === undefined ? { addedAppliances: [appliance] } : { updatedAppliances: [appliance] },
    context,
  );
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
