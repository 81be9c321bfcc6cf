import { describe, expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { KnownRevisions } from '../../../src/store/postgres/tables/revisions.ts';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../../core/samples.ts';
import { HUB_A, HUB_B, openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import {
  addAppliance,
  HEATER,
  ownConnection,
  removeAppliance,
  sampleSession,
  WALLBOX,
} from '../../store/test-store.ts';
import { PostgresProxy } from '../../support/postgres/proxy.ts';

const siteServer = useSiteServer();
const { id } = WALLBOX;
const attempt = { token: 'hash', at: instantAt(1) };
const waiting = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
const exchanging = samplePairing({ kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(4) });

/** Two hubs of a site with a paired appliance. */
async function startHubs() {
  const server = await siteServer();
  const database = await server.createDatabase();
  const parts = new AsyncDisposableStack();
  const a = parts.use(await openSiteStore(siteAddress(database), HUB_A));
  const b = parts.use(await openSiteStore(siteAddress(database), HUB_B));
  await addAppliance(a, WALLBOX);
  await a.replaceGrant(sampleGrant());
  for (const hub of [a, b]) {
    await hub.connections();
    await hub.appliances();
    await hub.grants();
  }
  const sql = (statements: string) => server.sql(database, `SET search_path = latchkey; ${statements}`);
  return { a, b, sql, database, server, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

describe('connections and appliances', () => {
  test('a hub changes nothing that another hub has changed since it has read it', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    const [one, two] = ['one', 'two'].map((name) => ({ ...WALLBOX, name }));
    if (one === undefined || two === undefined) throw new Error('unreachable');
    expect(await a.saveRegistry({ updatedAppliances: [one] })).toBe(true);
    expect(await b.saveRegistry({ updatedAppliances: [two] })).toBe(false);
    expect(await b.appliances()).toEqual([one]);
    expect(await b.saveRegistry({ updatedAppliances: [two] })).toBe(true);
    expect(await b.saveRegistry({ updatedAppliances: [one] })).toBe(true);
    expect(await a.saveRegistry({ updatedAppliances: [two] })).toBe(false);
    const renamed = { ...ownConnection(WALLBOX), name: 'renamed' };
    expect(await a.saveRegistry({ updatedConnections: [renamed] })).toBe(true);
    expect(await a.saveRegistry({ updatedConnections: [renamed] })).toBe(true);
    expect(await b.saveRegistry({ updatedConnections: [renamed] })).toBe(false);
  });

  test('the late outcome of an attempt that another hub has ended changes nothing', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    await a.beginAttempt(sampleGrant(), attempt);
    await sql("UPDATE grants SET leased_until = clock_timestamp() - interval '1 min';");
    await b.grant(id);
    const doubt = { lostAt: instantAt(2), sends: 2 };
    expect(await b.endAttempt({ ...sampleGrant(), doubt })).toBe(true);
    await a.grant(id);
    expect(await a.endAttempt(sampleGrant())).toBe(false);
    expect((await a.grant(id))?.grant.doubt?.sends).toBe(2);
  });

  test('a hub that has read, but not applied yet, that the portal refuses a token does not send it', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    await a.beginAttempt(sampleGrant(), attempt);
    expect(await a.endAttempt({ ...sampleGrant(), refused: instantAt(3) })).toBe(true);
    await b.grants();
    expect(await b.beginAttempt(sampleGrant(), attempt)).toEqual({ kind: 'superseded' });
    expect(await b.beginAttempt({ ...sampleGrant(), refused: instantAt(3) }, attempt)).toMatchObject({ kind: 'begun' });
  });

  test('tokens that could not be written do not bring back a grant that was deleted', async () => {
    await using hubs = await startHubs();
    const { a, sql, database } = hubs;
    await a.beginAttempt(sampleGrant(), attempt);
    // A promoted standby has not got that.
    await sql('UPDATE grants SET attempt = NULL, attempt_id = NULL, holder = NULL, leased_until = NULL, revision = 1;');
    await using other = await openSiteStore(siteAddress(database), 'latchkey-0000000c');
    expect(await other.forgetGrant(id, 1)).toBe(true);
    await a.reconcile([sampleGrant({ generation: 2 })]);
    expect(await other.grant(id)).toBeNull();
  });

  test('rows that were damaged are not damaged any more when another hub has removed them', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    await sql(
      "UPDATE appliances SET sealed = 'x'; UPDATE connections SET sealed = 'x'; UPDATE grants SET sealed = 'x';",
    );
    for (const hub of [a, b]) {
      await hub.connections();
      await hub.appliances();
      await hub.grants();
    }
    const damaged = () => [...b.damagedAppliances, ...b.damagedGrants];
    expect(damaged()).toEqual([id, id]);
    await a.forgetGrant(id, 1);
    await b.findGrants(new Set([id]));
    await removeAppliance(a, id);
    await b.findAppliances(new Set([id]));
    expect(damaged()).toEqual([]);
  });

  test('of two hubs that add the same name, or use the same invite, at once, one does', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    const invite = { hash: 'h', name: null, scope: null, portal: 'home', begun: instantAt(3), lifetime: 1 };
    await a.saveInvite(invite);
    const other = { ...HEATER, id: '99999999-9999-4999-8999-999999999999', clientId: 'another', name: 'another' };
    const added = [addAppliance(a, HEATER, 'h'), addAppliance(b, { ...other, connection: other.id }, 'h')];
    expect((await Promise.all(added)).toSorted()).toEqual([false, true]);
    const [first, second] = [ownConnection(HEATER), { ...ownConnection(HEATER), id: other.id }].map((connection) => ({
      addedConnections: [{ ...connection, name: 'a shared one', id: `${connection.id}-shared` }],
    }));
    const saved = await Promise.all([a.saveRegistry(first ?? {}), b.saveRegistry(second ?? {})]);
    expect(saved.toSorted()).toEqual([false, true]);
  });

  test('hubs that add sessions to an appliance and remove it at once do not lock each other out', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    for (let round = 0; round < 15; round += 1) {
      await addAppliance(a, HEATER);
      await a.saveSession(sampleSession(HEATER, 'the same'));
      const results = await Promise.all([
        b.saveSession({ ...sampleSession(HEATER, 'the same'), hash: 'another' }),
        a.saveSession({ ...sampleSession(HEATER, 'the same'), hash: 'a third' }),
        removeAppliance(a, HEATER.id),
        b.addHistory(new Map([[HEATER.id, [{ kind: 'paired', why: null, first: 1, last: 1, count: 1 }]]])),
        a.replaceGrant(sampleGrant({ connection: HEATER.id })),
      ]);
      expect(results[2]).toBe(true);
    }
    expect(await a.sessions()).toEqual([]);
    expect([a.writeProblem, b.writeProblem]).toEqual([null, null]);
  });

  test('what a hub has written is not followed by what a read that began before has found', async () => {
    const revisions = new KnownRevisions();
    const table = new Map([['a', 1]]);
    const rows = () => [...table].map(([row, revision]) => ({ id: row, revision }));
    const read = (while_: () => void, ids: ReadonlySet<string> | null = null) => {
      let queries = 0;
      const query = async () => {
        queries += 1;
        const found = rows();
        if (queries === 1) while_();
        return found;
      };
      return revisions.read(ids, query, (row) => row.id);
    };
    const write = (row: string, revision: number) => {
      table.set(row, revision);
      revisions.wrote(row, revision);
    };
    expect(await read(() => write('a', 2))).toEqual([{ id: 'a', revision: 2 }]);
    expect(await read(() => write('b', 1))).toHaveLength(2);
    expect(await read(() => write('a', 3), new Set(['b']))).toContainEqual({ id: 'a', revision: 2 });
    const remove = () => {
      table.delete('b');
      revisions.removed('b');
    };
    expect(await read(remove)).toEqual([{ id: 'a', revision: 3 }]);
    // The database may have lost a write, and then there is nothing newer to be read.
    table.set('a', 1);
    expect(await read(() => undefined)).toEqual([{ id: 'a', revision: 1 }]);
    expect(revisions.get('a')).toBe(1);
  });
});

describe('attempts', () => {
  test('the attempt of a hub that is gone is ended by another one when its lease has ended, and not before', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    const grant = sampleGrant();
    expect(await a.beginAttempt(grant, attempt)).toMatchObject({ kind: 'begun' });
    await b.grant(id);
    expect(await b.endAttempt(grant)).toBe(false);
    expect(await b.beginAttempt(grant, attempt)).toMatchObject({ kind: 'under_way' });
    await sql('UPDATE grants SET leased_until = clock_timestamp();');
    await b.grant(id);
    const doubt = { lostAt: instantAt(9), sends: 1 };
    expect(await b.endAttempt({ ...grant, doubt })).toBe(true);
    expect(await b.beginAttempt({ ...grant, doubt }, attempt)).toMatchObject({ kind: 'begun' });
    // The first hub was only paused, and the second one is gone now.
    expect(await a.endAttempt(grant)).toBe(false);
    await a.grant(id);
    expect(await a.endAttempt({ ...grant, doubt })).toBe(false);
    await sql('UPDATE grants SET leased_until = clock_timestamp();');
    await a.grant(id);
    expect(await a.endAttempt({ ...grant, doubt })).toBe(true);
    expect(await a.beginAttempt({ ...grant, doubt }, attempt)).toMatchObject({ kind: 'begun' });
  });

  test('of hubs that begin at once, one does', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    for (let generation = 1; generation <= 10; generation += 1) {
      await Promise.all([a.grants(), b.grants()]);
      const grant = sampleGrant({ generation });
      const starts = await Promise.all([a, b].map((hub) => hub.beginAttempt(grant, attempt)));
      expect(starts.filter(({ kind }) => kind === 'begun')).toHaveLength(1);
      const winner = starts[0]?.kind === 'begun' ? a : b;
      expect(await winner.replaceGrant(sampleGrant({ generation: generation + 1 }))).toBe(true);
    }
  });

  test('tokens that a slow answer brings are kept, although another hub has counted it as lost', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    await a.beginAttempt(sampleGrant(), attempt);
    await sql('UPDATE grants SET leased_until = clock_timestamp();');
    await b.grant(id);
    expect(await b.endAttempt({ ...sampleGrant(), doubt: { lostAt: instantAt(9), sends: 1 } })).toBe(true);
    await b.beginAttempt(sampleGrant(), attempt);
    expect(await a.replaceGrant(sampleGrant({ generation: 2 }))).toBe(true);
    expect(await b.replaceGrant(sampleGrant({ generation: 2 }))).toBe(false);
    expect(await b.grant(id)).toMatchObject({ attempt: null, grant: { generation: 2, doubt: null } });
  });
});

describe('pairings', () => {
  test('a pairing is run by the hub that began it, until another one takes it', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    expect(await a.savePairing(waiting)).toBe(true);
    expect(await b.savePairing({ ...waiting, scope: 'Another' })).toBe(false);
    await b.pairings();
    expect(await b.savePairing({ ...waiting, scope: 'Another' })).toBe(false);
    expect(await b.takePairing(waiting.id, false)).toBeNull();
    expect(await a.keepPairings([waiting.id, 'unknown'])).toEqual(['unknown']);
    expect(await b.takePairing(waiting.id, true)).toEqual(waiting);
    expect(await a.keepPairings([waiting.id])).toEqual([waiting.id]);
    expect(await a.savePairing({ ...waiting, scope: 'Another' })).toBe(false);
    expect(await b.savePairing(exchanging)).toBe(true);
    expect(await a.takePairing(waiting.id, true)).toBeNull();
    await sql('UPDATE pairings SET owned_until = clock_timestamp();');
    expect(await a.takePairing(waiting.id, false)).toEqual(exchanging);
    expect(await b.savePairing(waiting)).toBe(false);
    expect(await a.takePairing('unknown', true)).toBeNull();
  });

  test('the tokens of a pairing are kept, although another hub has taken the pairing', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    await a.savePairing(exchanging);
    await sql('UPDATE pairings SET owned_until = clock_timestamp();');
    await b.takePairing(exchanging.id, false);
    const paired = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
    expect(await a.completePairing(paired, sampleGrant({ generation: 2 }))).toBe(true);
    expect(await b.grant(id)).toMatchObject({ grant: { generation: 2 } });
    expect(await b.pairings()).toEqual([paired]);
  });
});

describe('settings and leases', () => {
  test('of hubs that create the same settings at once, one does', async () => {
    await using hubs = await startHubs();
    const created = [hubs.a, hubs.b].map((hub) =>
      hub.replaceSettings({ ca_key: null, ca_certificate: null }, { ca_key: hub.hubId, ca_certificate: hub.hubId }),
    );
    const results = await Promise.all(created);
    expect(results.toSorted()).toEqual([false, true]);
    const winner = results[0] ? HUB_A : HUB_B;
    for (const hub of [hubs.a, hubs.b]) {
      expect([await hub.setting('ca_key'), await hub.setting('ca_certificate')]).toEqual([winner, winner]);
    }
  });

  test('the changes that hubs make of a setting at once are all kept', async () => {
    await using hubs = await startHubs();
    const increment = async (hub: PostgresStore): Promise<void> => {
      const stored = await hub.setting('page_sessions');
      const values = { page_sessions: String(Number(stored ?? 0) + 1) };
      if (!(await hub.replaceSettings({ page_sessions: stored }, values))) await increment(hub);
    };
    await Promise.all(Array.from({ length: 20 }, (_, index) => increment(index % 2 === 0 ? hubs.a : hubs.b)));
    expect(await hubs.a.setting('page_sessions')).toBe('20');
  });

  test('the settings of a hub are its own', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    await a.saveSettings({ hub_id: 'a', leaf: 'the leaf of a', setup_code: 'of all' });
    expect([await b.setting('hub_id'), await b.setting('leaf')]).toEqual([null, null]);
    expect(await b.replaceSettings({ leaf: null }, { leaf: 'the leaf of b' })).toBe(true);
    expect(await a.setting('leaf')).toBe('the leaf of a');
    expect(await b.setting('setup_code')).toBe('of all');
  });

  test('some work is done by one hub, and by another one when its lease has ended', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    expect([await a.holdLease('notices'), await b.holdLease('notices')]).toEqual([true, false]);
    expect([await b.holdLease('cleanup'), await a.holdLease('notices')]).toEqual([true, true]);
    await sql("UPDATE leases SET until = clock_timestamp() WHERE work = 'notices';");
    expect([await b.holdLease('notices'), await a.holdLease('notices')]).toEqual([true, false]);
  });
});

test('more writes at once than there are connections wait for each other, and are no outage', async () => {
  await using hubs = await startHubs();
  await using proxy = await PostgresProxy.start(hubs.server);
  await using slow = await openSiteStore(siteAddress(hubs.database, proxy), 'latchkey-0000000c');
  proxy.delay(15);
  // Each takes four round trips: more than the pool of connections waits for one.
  const writes = Array.from({ length: 300 }, (_, index) => slow.saveSetting(`setting-${index}`, 'value'));
  await Promise.all(writes);
  expect(slow.writeProblem).toBeNull();
  proxy.delay(0);
}, 400_000);
