import type { Grant } from '../../src/core/grants/grant.ts';
import type { Pairing } from '../../src/core/pairings/pairing.ts';
import type { Store } from '../../src/core/store.ts';

/** The generation of the last grant of a connection, as in `GrantSlot`. */
export async function generationOf(store: Pick<Store, 'saveLogin'>, connection: string): Promise<number> {
  let generation = 0;
  await store.saveLogin(connection, (stored) => {
    ({ generation } = stored);
    return null;
  });
  return generation;
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
