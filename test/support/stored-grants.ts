import type { Grant } from '../../src/core/grants/grant.ts';
import type { Pairing } from '../../src/core/pairings/pairing.ts';
import type { GrantSlot, Store } from '../../src/core/store.ts';

/** What a store has for the grant of a connection. */
export async function slotOf(store: Pick<Store, 'saveLogin'>, connection: string): Promise<GrantSlot> {
  let slot: GrantSlot = { generation: 0, grant: null };
  await store.saveLogin(connection, (stored) => {
    slot = stored;
    return null;
  });
  return slot;
}

/** The generation of the last grant of a connection, see {@link GrantSlot}. */
export async function generationOf(store: Pick<Store, 'saveLogin'>, connection: string): Promise<number> {
  return (await slotOf(store, connection)).generation;
}

/** Writes the end of a login, unless another generation than the one before `grant` is stored. */
export async function completePairing(
  store: Pick<Store, 'saveLogin'>,
  pairing: Pairing,
  grant: Grant,
): Promise<boolean> {
  const saved = await store.saveLogin(grant.connection, ({ generation }) =>
    generation === grant.generation - 1 ? { grant, pairing } : null,
  );
  return saved !== null;
}
