// The model of the table of grants does what PostgreSQL does.
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Grant } from '../../../src/core/grants/grant.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { SiteDatabase } from '../../../src/store/postgres/connection/database.ts';
import { SiteClocks } from '../../../src/store/postgres/link/clocks.ts';
import type { PostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { SiteGrants } from '../../../src/store/postgres/tables/grants.ts';
import { instantAt, sampleGrant } from '../../core/samples.ts';
import { addAppliance, WALLBOX } from '../../store/test-store.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { addressOf, openSiteStore, siteServer } from '../site-harness.ts';
import { ModelConnections, ModelDatabase } from './model-database.ts';

const { connection } = WALLBOX;

/** The calls that both implementations have. */
type Calls = Pick<PostgresStore, 'beginAttempt' | 'endAttempt' | 'markTokenRejected' | 'replaceGrant' | 'putBack'> &
  Pick<PostgresStore, 'findGrants'>;

/** The two hubs of one implementation, and what happens to its database. */
interface Site {
  readonly hubs: readonly [Calls, Calls];
  /** The lease of the open attempt ends. */
  endLease(): Promise<void>;
  /** Remembers the row, or brings back the one that was remembered, as a promotion does that loses commits. */
  remember(): Promise<void>;
  loseCommits(): Promise<void>;
  /** The last switch to another server has settled. */
  settle(): Promise<void>;
}

/** A hub on the model of which every call is executed and answered at once. */
async function modelHub(database: ModelDatabase, hubId: string): Promise<Calls> {
  const connections = new ModelConnections(database, hubId, randomUUID());
  const clock = { now: () => instantAt(database.time) };
  const clocks = new SiteClocks(clock, (work) => connections.read(work));
  const zeros = [{ boot: 'boot-1', zero: database.now }];
  await clocks.load({ all: async () => zeros as never, run: async () => 0 });
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
  return {
    beginAttempt: (...call) => now(site.beginAttempt(...call)),
    endAttempt: (...call) => now(site.endAttempt(...call)),
    markTokenRejected: (...call) => now(site.rejectAccessToken(...call)),
    replaceGrant: (...call) => now(site.replace(...call)),
    putBack: (...call) => now(site.putBack(...call)),
    findGrants: (...call) => now(site.findMany(...call)),
  };
}

async function modelSite(): Promise<Site> {
  const database = new ModelDatabase();
  let remembered = database.table;
  const change = (changes: object) => {
    const rows = [...database.table].map(([id, row]) => [id, { ...row, ...changes }] as const);
    database.commit(new Map(rows), '', false);
  };
  return {
    hubs: [await modelHub(database, 'A'), await modelHub(database, 'B')],
    endLease: async () => {
      if (database.row(connection)?.leased_until !== null) change({ leased_until: database.now - 2000 });
    },
    remember: async () => {
      remembered = database.table;
    },
    loseCommits: async () => {
      database.commit(remembered, '', false);
      database.unvouch();
    },
    settle: async () => database.settle(),
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
      ...{
        generation,
        token: accessToken.reveal(),
        doubt: doubt === null ? null : [doubt.kind, doubt.sends],
        hasLostWrites,
      },
      ...{
        refused: refused !== null,
        rejected: rejected !== null,
        attempt: token,
        isLeased: leasedUntil !== undefined,
      },
    };
  });
}

type Step = readonly [what: 'find' | 'begin' | 'end' | 'reject' | 'replace' | 'put back', hub: 0 | 1, value: number];
type Event = readonly [what: 'end lease' | 'remember' | 'lose commits' | 'settle', hub?: undefined, value?: undefined];

/** A grant as a hub may hold it. */
function held(generation: number, sends: number): Grant {
  const doubt = sends === 0 ? null : { lostAt: instantAt(1), sends };
  return { ...sampleGrant({ connection, generation, doubt }), accessToken: new Secret(`token-${generation}`) };
}

async function take(site: Site, step: Step | Event, generation: number): Promise<unknown> {
  if (step[0] === 'end lease') return site.endLease();
  if (step[0] === 'remember') return site.remember();
  if (step[0] === 'lose commits') return site.loseCommits();
  if (step[0] === 'settle') return site.settle();
  const [what, name, value] = step as Step;
  const hub = site.hubs[name];
  const grant = held(Math.max(1, generation - (value === 3 ? 1 : 0)), value % 3);
  switch (what) {
    case 'find':
      return hub.findGrants(value === 0 ? null : new Set([connection]));
    case 'begin':
      return hub.beginAttempt(grant, { token: `hash-${value}`, at: instantAt(2) });
    case 'end':
      return hub.endAttempt({ ...grant, refused: value === 2 ? instantAt(3) : null });
    case 'reject':
      return hub.markTokenRejected(connection, grant.generation, instantAt(4));
    case 'replace':
      return hub.replaceGrant(held(grant.generation + 1, 0));
    default:
      return hub.putBack([grant]);
  }
}

const steps = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.tuple(
        fc.constantFrom('find', 'begin', 'end', 'reject', 'replace', 'put back'),
        fc.constantFrom(0, 1),
        fc.nat({ max: 3 }),
      ),
    },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('end lease', 'remember', 'lose commits', 'settle')) },
  ),
  { minLength: 40, maxLength: 40 },
) as fc.Arbitrary<(Step | Event)[]>;

test('the model of the table answers random calls of two hubs as PostgreSQL does', async () => {
  const server = await siteServer();
  const property = fc.asyncProperty(steps, async (list) => {
    const database = await server.createDatabase();
    const address = addressOf(database.url);
    await using first = await openSiteStore(address, 'A');
    await using second = await openSiteStore(address, 'B');
    await addAppliance(first, WALLBOX);
    const sql = (text: string) => server.sql(database, text);
    const real: Site = {
      hubs: [first, second],
      endLease: async () => {
        const until = `clock_timestamp() - interval '2 s'`;
        await sql(`UPDATE latchkey.grants SET leased_until = ${until} WHERE leased_until IS NOT NULL`);
      },
      remember: async () => {
        await sql('DROP TABLE IF EXISTS remembered; CREATE TABLE remembered AS TABLE latchkey.grants');
      },
      loseCommits: async () => {
        await sql('BEGIN; DELETE FROM latchkey.grants; INSERT INTO latchkey.grants TABLE remembered; COMMIT');
        await sql('UPDATE latchkey.grants SET vouched = false');
        await sql('UPDATE latchkey.site SET switched_at = clock_timestamp()');
      },
      settle: async () => {
        await sql('UPDATE latchkey.site SET switched_at = NULL');
      },
    };
    const model = await modelSite();
    for (const site of [real, model]) expect(await site.hubs[0].replaceGrant(held(1, 0))).toBe(true);
    for (const site of [real, model]) await site.remember();
    let generation = 1;
    for (const [index, step] of list.entries()) {
      const results = [await take(real, step, generation), await take(model, step, generation)].map(shown);
      expect(results[0], `${index}: ${step.join(' ')}`).toEqual(results[1]);
      const [stored] = shown(await real.hubs[0].findGrants(null)) as { generation: number }[];
      await model.hubs[0].findGrants(null);
      generation = stored?.generation ?? generation;
    }
    const ends = await Promise.all([real, model].map(async ({ hubs }) => shown(await hubs[1].findGrants(null))));
    expect(ends[0]).toEqual(ends[1]);
  });
  await fc.assert(property, {
    numRuns: IS_LONG_FORM ? 300 : 16,
    interruptAfterTimeLimit: IS_LONG_FORM ? 3_600_000 : 10_000,
  });
}, 7_200_000);
