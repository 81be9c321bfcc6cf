import { describe, expect, test } from 'vitest';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../../core/samples.ts';
import { HUB_A, HUB_B, openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import { addAppliance, ownConnection, WALLBOX } from '../../store/test-store.ts';
import { completePairing } from '../../support/stored-grants.ts';

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
  await a.grants.replace(sampleGrant());
  for (const hub of [a, b]) {
    await hub.registry.connections();
    await hub.registry.appliances();
    await hub.grants.all();
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
    expect(await a.registry.save({ updatedAppliances: [one] })).toBe(true);
    expect(await b.registry.save({ updatedAppliances: [two] })).toBe(false);
    expect(await b.registry.appliances()).toEqual([one]);
    expect(await b.registry.save({ updatedAppliances: [two] })).toBe(true);
    expect(await b.registry.save({ updatedAppliances: [one] })).toBe(true);
    expect(await a.registry.save({ updatedAppliances: [two] })).toBe(false);
    const renamed = { ...ownConnection(WALLBOX), name: 'renamed' };
    expect(await a.registry.save({ updatedConnections: [renamed] })).toBe(true);
    expect(await a.registry.save({ updatedConnections: [renamed] })).toBe(true);
    expect(await b.registry.save({ updatedConnections: [renamed] })).toBe(false);
  });

  test('the late tokens of an attempt that another hub has counted as lost are kept, with the doubt', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    const next = (generation: number) => sampleGrant({ generation });
    await a.grants.beginAttempt(next(1), attempt);
    await sql("UPDATE grants SET leased_until = clock_timestamp() - interval '1 min';");
    await b.grants.get(id);
    const doubt = { lostAt: instantAt(2), sends: 2 };
    expect(await b.grants.endAttempt({ ...next(1), doubt, refused: instantAt(3) })).toBe(true);
    expect(await a.grants.replace(next(2))).toBe(true);
    expect((await a.grants.get(id))?.grant).toMatchObject({ generation: 2, doubt: { sends: 2 }, refused: null });
    // Another one in time, and a new login, end it.
    await a.grants.beginAttempt({ ...next(2), doubt }, attempt);
    expect(await a.grants.replace(next(3))).toBe(true);
    expect((await a.grants.get(id))?.grant.doubt).toBeNull();
  });

  test('late tokens keep the doubt while another hub sends the refresh token again', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    const next = (generation: number) => sampleGrant({ generation });
    await a.grants.beginAttempt(next(1), attempt);
    await sql("UPDATE grants SET leased_until = clock_timestamp() - interval '1 min';");
    await b.grants.get(id);
    const doubt = { lostAt: instantAt(2), sends: 1 };
    expect(await b.grants.endAttempt({ ...next(1), doubt })).toBe(true);
    expect(await b.grants.beginAttempt({ ...next(1), doubt }, attempt)).toMatchObject({ kind: 'begun' });
    expect(await a.grants.replace(next(2))).toBe(true);
    expect((await a.grants.get(id))?.grant).toMatchObject({ generation: 2, doubt: { sends: 1 } });
  });

  test('a hub that has read, but not applied yet, that the portal refuses a token does not send it', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    await a.grants.beginAttempt(sampleGrant(), attempt);
    expect(await a.grants.endAttempt({ ...sampleGrant(), refused: instantAt(3) })).toBe(true);
    await b.grants.all();
    expect(await b.grants.beginAttempt(sampleGrant(), attempt)).toEqual({ kind: 'superseded' });
    expect(await b.grants.beginAttempt({ ...sampleGrant(), refused: instantAt(3) }, attempt)).toMatchObject({
      kind: 'begun',
    });
  });

  test('tokens that could not be written do not bring back a grant that was deleted', async () => {
    await using hubs = await startHubs();
    const { a, sql, database } = hubs;
    await a.grants.beginAttempt(sampleGrant(), attempt);
    // A promoted standby has not got that.
    await sql('UPDATE grants SET attempt = NULL, attempt_id = NULL, holder = NULL, leased_until = NULL, revision = 1;');
    await using other = await openSiteStore(siteAddress(database), 'latchkey-0000000c');
    await other.grants.forget(id, 1);
    await a.grants.reconcile([sampleGrant({ generation: 2 })]);
    expect(await other.grants.get(id)).toBeNull();
  });
});

describe('attempts', () => {
  test('the attempt of a hub that is gone is ended by another one when its lease has ended, and not before', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    const grant = sampleGrant();
    expect(await a.grants.beginAttempt(grant, attempt)).toMatchObject({ kind: 'begun' });
    await b.grants.get(id);
    expect(await b.grants.endAttempt(grant)).toBe(false);
    expect(await b.grants.beginAttempt(grant, attempt)).toMatchObject({ kind: 'under_way' });
    await sql('UPDATE grants SET leased_until = clock_timestamp();');
    await b.grants.get(id);
    const doubt = { lostAt: instantAt(9), sends: 1 };
    expect(await b.grants.endAttempt({ ...grant, doubt })).toBe(true);
    expect(await b.grants.beginAttempt({ ...grant, doubt }, attempt)).toMatchObject({ kind: 'begun' });
    // The first hub was only paused, and the second one is gone now.
    expect(await a.grants.endAttempt(grant)).toBe(false);
    await a.grants.get(id);
    expect(await a.grants.endAttempt({ ...grant, doubt })).toBe(false);
    await sql('UPDATE grants SET leased_until = clock_timestamp();');
    await a.grants.get(id);
    expect(await a.grants.endAttempt({ ...grant, doubt })).toBe(true);
    expect(await a.grants.beginAttempt({ ...grant, doubt }, attempt)).toMatchObject({ kind: 'begun' });
  });

  test('of hubs that begin at once, one does', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    for (let generation = 1; generation <= 10; generation += 1) {
      await Promise.all([a.grants.all(), b.grants.all()]);
      const grant = sampleGrant({ generation });
      const starts = await Promise.all([a, b].map((hub) => hub.grants.beginAttempt(grant, attempt)));
      expect(starts.filter(({ kind }) => kind === 'begun')).toHaveLength(1);
      const winner = starts[0]?.kind === 'begun' ? a : b;
      expect(await winner.grants.replace(sampleGrant({ generation: generation + 1 }))).toBe(true);
    }
  });
});

describe('pairings', () => {
  test('a pairing is run by the hub that began it, until another one takes it', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    expect(await a.pairings.save(waiting)).toBe(true);
    expect(await b.pairings.save({ ...waiting, scope: 'Another' })).toBe(false);
    await b.pairings.all();
    expect(await b.pairings.save({ ...waiting, scope: 'Another' })).toBe(false);
    expect(await b.pairings.take(waiting.id, false)).toBeNull();
    expect(await a.pairings.keep([waiting.id, 'unknown'])).toEqual(['unknown']);
    expect(await b.pairings.take(waiting.id, true)).toEqual(waiting);
    expect(await a.pairings.keep([waiting.id])).toEqual([waiting.id]);
    expect(await a.pairings.save({ ...waiting, scope: 'Another' })).toBe(false);
    expect(await b.pairings.save(exchanging)).toBe(true);
    expect(await a.pairings.take(waiting.id, true)).toBeNull();
    await sql('UPDATE pairings SET owned_until = clock_timestamp();');
    expect(await a.pairings.take(waiting.id, false)).toEqual(exchanging);
    expect(await b.pairings.save(waiting)).toBe(false);
    expect(await a.pairings.take('unknown', true)).toBeNull();
  });

  test('the tokens of a pairing are kept, although another hub has taken the pairing', async () => {
    await using hubs = await startHubs();
    const { a, b, sql } = hubs;
    await a.pairings.save(exchanging);
    await sql('UPDATE pairings SET owned_until = clock_timestamp();');
    await b.pairings.take(exchanging.id, false);
    const paired = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
    expect(await completePairing(a, paired, sampleGrant({ generation: 2 }))).toBe(true);
    expect(await b.grants.get(id)).toMatchObject({ grant: { generation: 2 } });
    expect(await b.pairings.all()).toEqual([paired]);
  });
});

describe('settings and leases', () => {
  test('the settings of a hub are its own', async () => {
    await using hubs = await startHubs();
    const { a, b } = hubs;
    await a.settings.save({ hub_id: 'a', leaf: 'the leaf of a', setup_code: 'of all' });
    expect([await b.settings.get('hub_id'), await b.settings.get('leaf')]).toEqual([b.site.hubId, null]);
    expect(await b.settings.replace({ leaf: null }, { leaf: 'the leaf of b' })).toBe(true);
    expect(await a.settings.get('leaf')).toBe('the leaf of a');
    expect(await b.settings.get('setup_code')).toBe('of all');
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
