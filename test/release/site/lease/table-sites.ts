import { randomUUID } from 'node:crypto';
import type { Grant } from '../../../../src/core/grants/grant.ts';
import { Secret } from '../../../../src/core/secret.ts';
import type { GrantStore } from '../../../../src/core/store.ts';
import type { SiteDatabase } from '../../../../src/store/postgres/database/database.ts';
import { SiteClocks } from '../../../../src/store/postgres/link/clocks.ts';
import { SiteGrants } from '../../../../src/store/postgres/tables/grants.ts';
import { instantAt, sampleGrant } from '../../../core/samples.ts';
import type { TableDefect } from '../../../site/lease/grant-table.ts';
import { ModelConnections, ModelDatabase } from '../../../site/lease/model-database.ts';
import { addressOf, openSiteStore } from '../../../site/site-harness.ts';
import { addAppliance, WALLBOX } from '../../../store/test-store.ts';
import type { PostgresServer } from '../../../support/postgres/server.ts';

const { connection } = WALLBOX;

/** The two hubs of one implementation, and what happens to its database. */
export interface TableSite extends AsyncDisposable {
  readonly hubs: readonly [GrantStore, GrantStore];
  /** The lease of the open attempt ends then, in ms from now. */
  setLeaseEnd(remaining: number): Promise<void>;
  /** How many transactions have changed something. */
  changes(): Promise<number>;
  /** Remembers the row, or brings back the one that was remembered, as a promotion does that loses commits. */
  remember(): Promise<void>;
  loseCommits(): Promise<void>;
  /** The last switch to another server has settled. */
  settle(): Promise<void>;
}

/** A hub on the model of which every call is executed and answered at once. */
async function modelHub(database: ModelDatabase, hubId: string): Promise<GrantStore> {
  const connections = new ModelConnections(database, hubId, randomUUID());
  const clock = { now: () => instantAt(database.time) };
  const clocks = new SiteClocks(clock, (work) => connections.read(work));
  const bootTimes = [{ boot: 'boot-1', bootedAt: database.now }];
  await clocks.load({ all: async () => bootTimes as never, run: async () => 0 });
  const context = {
    clocks,
    clock,
    hubId,
    sealing: { seal: (_: string, text: string) => text, open: (_: string, text: string) => text },
  };
  const site = new SiteGrants({ ...context, database: connections as unknown as SiteDatabase });
  const now = async <Result>(work: Promise<Result>): Promise<Result> => {
    const settled = work.finally(() => undefined);
    for (let turns = 0; turns < 50; turns++) {
      await Promise.resolve();
      for (const call of [...connections.calls]) {
        await call.execute();
        call.answer();
      }
    }
    return settled;
  };
  return new Proxy(site, {
    get: (object, name) => {
      const member: unknown = Reflect.get(object, name, object);
      return typeof member !== 'function' ? member : (...call: unknown[]) => now(Reflect.apply(member, object, call));
    },
  });
}

/** @param defects deliberate ones of the model */
export async function modelSite(defects: readonly TableDefect[] = []): Promise<TableSite> {
  const database = new ModelDatabase(new Set(defects));
  let changes = 0;
  database.onCommit((_hub, isNews) => {
    changes += isNews ? 1 : 0;
  });
  let remembered = database.table;
  const change = (changes: object) => {
    const rows = [...database.table].map(([id, row]) => [id, { ...row, ...changes }] as const);
    database.commit(new Map(rows), '', false);
  };
  return {
    hubs: [await modelHub(database, 'A'), await modelHub(database, 'B')],
    setLeaseEnd: async (remaining) => {
      if (database.row(connection)?.leased_until !== null) change({ leased_until: database.now + remaining });
    },
    changes: async () => changes,
    remember: async () => {
      remembered = database.table;
    },
    loseCommits: async () => {
      database.commit(remembered, '', false);
      database.unconfirm();
    },
    settle: async () => database.settle(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Two hubs on PostgreSQL. */
export async function postgresSite(server: PostgresServer): Promise<TableSite> {
  await using opening = new AsyncDisposableStack();
  const database = await server.createDatabase();
  const address = addressOf(database.url);
  const first = opening.use(await openSiteStore(address, 'A'));
  const second = opening.use(await openSiteStore(address, 'B'));
  await addAppliance(first, WALLBOX);
  const sql = (text: string) => server.sql(database, text);
  const countChanges = async () =>
    Number(await sql('SELECT count(*) FROM latchkey.changes WHERE cardinality(news) > 0'));
  const before = await countChanges();
  const stores = opening.move();
  return {
    hubs: [first.grants, second.grants],
    setLeaseEnd: async (remaining) => {
      const until = `clock_timestamp() + ${remaining} * interval '1 ms'`;
      await sql(`UPDATE latchkey.grants SET leased_until = ${until} WHERE leased_until IS NOT NULL`);
    },
    changes: async () => (await countChanges()) - before,
    remember: async () => {
      await sql('DROP TABLE IF EXISTS remembered; CREATE TABLE remembered AS TABLE latchkey.grants');
    },
    loseCommits: async () => {
      await sql('BEGIN; DELETE FROM latchkey.grants; INSERT INTO latchkey.grants TABLE remembered; COMMIT');
      await sql('UPDATE latchkey.grants SET confirmed = false');
      await sql('UPDATE latchkey.site SET switched_at = clock_timestamp()');
    },
    settle: async () => {
      await sql('UPDATE latchkey.site SET switched_at = NULL');
    },
    [Symbol.asyncDispose]: () => stores.disposeAsync(),
  };
}

/** What a call shows, without what differs between two runs. */
function shown(result: unknown): unknown {
  if (!(result instanceof Map)) {
    return typeof result === 'object' && result !== null && 'kind' in result ? result.kind : result;
  }
  return [...result.values()].map(({ stored, hasLostWrites }) => {
    const { generation, accessToken, doubt, refused, accessTokenRejectedAt: rejected } = stored.grant as Grant;
    const { token, leasedUntil } = stored.attempt ?? {};
    return {
      generation,
      token: accessToken.reveal(),
      doubt: doubt === null ? null : [doubt.kind, doubt.sends],
      hasLostWrites,
      refused: refused !== null,
      rejected: rejected !== null,
      attempt: token,
      isLeased: leasedUntil !== undefined,
    };
  });
}

/** A call of a hub. The value stands for what the hub says. */
export type Step = readonly [
  what: 'find' | 'begin' | 'end' | 'reject' | 'replace' | 'forget' | 'put back',
  hub: 0 | 1,
  value: number,
];
/** Something that happens to the database. */
export type Event = readonly [
  what: 'end lease' | 'shorten lease' | 'remember' | 'lose commits' | 'settle',
  hub?: undefined,
  value?: undefined,
];

/** A grant as a hub may hold it. */
function held(generation: number, sends: number): Grant {
  const doubt = sends === 0 ? null : { lostAt: instantAt(1), sends };
  return { ...sampleGrant({ connection, generation, doubt }), accessToken: new Secret(`token-${generation}`) };
}

async function take(site: TableSite, step: Step | Event, generation: number): Promise<unknown> {
  if (step[0] === 'end lease') return site.setLeaseEnd(-2000);
  if (step[0] === 'shorten lease') return site.setLeaseEnd(30_000);
  if (step[0] === 'remember') return site.remember();
  if (step[0] === 'lose commits') return site.loseCommits();
  if (step[0] === 'settle') return site.settle();
  const [what, name, value] = step as Step;
  const hub = site.hubs[name];
  const grant = held(Math.max(1, generation - (value === 3 ? 1 : 0)), value % 3);
  switch (what) {
    case 'find':
      return hub.find(value === 0 ? null : new Set([connection]));
    case 'begin':
      return hub.beginAttempt(grant, { token: `hash-${value}`, at: instantAt(2) });
    case 'end':
      return hub.endAttempt({ ...grant, refused: value === 2 ? instantAt(3) : null });
    case 'reject':
      return hub.rejectAccessToken(connection, grant.generation, instantAt(4));
    case 'replace':
      return hub.replace({ ...held(grant.generation + 1, 0), refreshToken: new Secret(`token-of-${name}`) });
    case 'forget':
      return hub.forget(connection, grant.generation);
    default:
      return hub.reconcile([grant]);
  }
}

/**
 * Makes steps at a site whose first hub has stored a grant. After each one, the first hub reads what the table has.
 * @returns what each step has shown, and at last what the second hub finds, and how many transactions there were
 */
export async function resultsOf(site: TableSite, steps: readonly (Step | Event)[]): Promise<unknown[]> {
  await site.hubs[0].replace(held(1, 0));
  await site.remember();
  const results: unknown[] = [];
  let generation = 1;
  for (const step of steps) {
    results.push([...step, shown(await take(site, step, generation))]);
    const [stored] = shown(await site.hubs[0].find(null)) as { generation: number }[];
    generation = stored?.generation ?? generation;
  }
  return [...results, shown(await site.hubs[1].find(null)), await site.changes()];
}
