import type { Appliance } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grant.ts';
import type { Restoration, StateCopy } from '../core/state-copy.ts';
import { type GrantRow, grantRow, readGrant } from './rows.ts';
import type { Salvage } from './salvage.ts';
import type { SqliteStore } from './sqlite-store.ts';

/** How often a state that changes while a copy is being restored is looked at again. */
const MOST_ATTEMPTS = 10;

/**
 * Copies the whole state of the hub, as it is at one moment.
 * @param now ms since 1970
 * @throws Failure `store_unreadable` where the hub's own settings are damaged
 */
export async function copyState(store: SqliteStore, now: number): Promise<StateCopy> {
  const content = await store.content();
  const settings = new Map<string, string>();
  for (const { name, sealed } of content.settings.values()) {
    settings.set(name, await store.sealing.open(`settings/${name}`, sealed));
  }
  const grants: Grant[] = [];
  for (const row of grantRows(content)) grants.push((await readGrant(row, store.sealing)).grant);
  return { made: now, settings, appliances: content.appliances.map(applianceOf), grants };
}

/**
 * Puts a copy in place, all of it or nothing: what makes the hub this hub, the appliances it does not have, and each grant
 * that is newer than the one at hand. Appliances that the copy does not have stay.
 * @throws Failure `appliance_exists` where a name of the copy belongs to another appliance with a grant of its own, or as
 *   the store
 */
export async function restoreState(store: SqliteStore, copy: StateCopy): Promise<Restoration> {
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const content = await store.content();
    const plan = planOf(copy, content);
    const settings = await Promise.all(
      [...copy.settings].map(async ([name, value]) => ({
        name,
        sealed: await store.sealing.seal(`settings/${name}`, value),
      })),
    );
    const grants = await Promise.all(plan.grants.map((grant) => grantRow(grant, store.sealing)));
    const generations = new Map(
      [...content.grants.values()].map(({ appliance, generation }) => [appliance, generation]),
    );
    if (store.putState({ settings, appliances: plan.appliances, unpaired: plan.replaced, grants, generations })) {
      return { restored: plan.restored, kept: plan.kept };
    }
  }
  throw new Failure('unexpected', 'the grants changed again and again while the copy was being restored: try again');
}

interface Plan {
  readonly appliances: readonly Appliance[];
  /** Ids of appliances that were never paired, and whose name one of the copy has. */
  readonly replaced: readonly string[];
  readonly grants: readonly Grant[];
  readonly restored: readonly string[];
  readonly kept: readonly string[];
}

function planOf(copy: StateCopy, content: Salvage): Plan {
  const own = new Map(content.appliances.map((row) => [row.id, row]));
  const byName = new Map(content.appliances.map((row) => [row.name, row.id]));
  const atHand = new Set(grantRows(content).map(({ appliance }) => appliance));
  const replaced: string[] = [];
  for (const { id, name } of copy.appliances) {
    const other = byName.get(name);
    if (own.has(id) || other === undefined) continue;
    if (atHand.has(other)) {
      throw new Failure(
        'appliance_exists',
        `the copy has an appliance ${name}, and this hub has another one of that name with a grant of its own: remove that first ("latchkey appliance remove ${name}"); nothing was changed`,
      );
    }
    replaced.push(other);
  }
  const names = new Map(copy.appliances.map(({ id, name }) => [id, own.get(id)?.name ?? name]));
  const isKept = ({ appliance, generation }: Grant) =>
    atHand.has(appliance) && (content.grants.get(appliance)?.generation ?? 0) >= generation;
  const nameOf = ({ appliance }: Grant) => names.get(appliance) ?? appliance;
  const taken = copy.grants.filter((grant) => !isKept(grant));
  return {
    appliances: copy.appliances.filter(({ id }) => !own.has(id)),
    replaced,
    grants: taken.map((grant) => fromCopy(grant, content.grants.get(grant.appliance)?.generation ?? 0, copy.made)),
    restored: taken.map(nameOf),
    kept: copy.grants.filter(isKept).map(nameOf),
  };
}

/** The grant may have been used since the copy was made, by this hub or another one. */
function fromCopy(grant: Grant, generation: number, made: number): Grant {
  const lostAt = { boot: '', uptime: 0, wall: made };
  return {
    ...grant,
    generation: Math.max(generation + 1, grant.generation),
    doubt: grant.doubt ?? { kind: 'copy', lostAt, sends: 0 },
  };
}

function grantRows({ grants, unreadable }: Salvage): GrantRow[] {
  return [...grants.values()].flatMap(({ tokens, ...rest }) =>
    tokens === null || unreadable.has(`grants/${rest.appliance}`) ? [] : [{ ...rest, tokens }],
  );
}

function applianceOf({ id, name, scope, portal, secret_hash }: Salvage['appliances'][number]): Appliance {
  return { id, name, scope, portal, secretHash: secret_hash };
}
