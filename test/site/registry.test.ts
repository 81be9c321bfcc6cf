// Connections, appliances, sessions and invites that several hubs of a site change, on a real PostgreSQL server.
import { Client } from 'pg';
import { expect, test } from 'vitest';
import type { Declarations } from '../../src/broker/declarations/declared-connections.ts';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import { Secret } from '../../src/core/secret.ts';
import { ALL_NEWS, LEAF_SETTING } from '../../src/core/site.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { sampleGrant } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { withMethods } from '../support/store-calls.ts';
import { expectSoon, IN_AN_HOUR, type SiteBroker, startSite, startSiteBroker } from './site-brokers.ts';
import { addressOf, siteServer, useSiteServer } from './site-harness.ts';

useSiteServer();

const OWN_CONNECTION = { connections: [], scope: 'Monitoring', portal: null };
const SECRET = { kind: 'secret', hash: 'the-hash' } as const;

/** Changes the database of a site without the store key. */
async function runOnSite({ url }: { readonly url: string }, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url, options: '-c search_path=latchkey' });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

const METADATA = { clientName: 'wallbox', scope: null, softwareId: null, keys: null };
const PHONE = '192.168.1.20';

/** The stored hash of an appliance's secret. */
function secretOf(appliance: Appliance | undefined): string | undefined {
  return appliance?.credentials.kind === 'secret' ? appliance.credentials.hash : undefined;
}

const namesAt = ({ broker }: SiteBroker) => broker.appliances.list().map(({ name }) => name);

test('an appliance that was added, rotated or removed at one hub is accepted or refused at the other', async () => {
  await using site = await startSite();
  const { a, b } = site;
  const added = await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await expectSoon(() => secretOf(b.service.findClient(added.clientId)), sha256(added.clientSecret.reveal()));
  expect(b.broker.connections.find('wallbox')).toEqual(a.broker.connections.find('wallbox'));
  const rotated = await b.administration.rotateSecret('wallbox', false);
  await expectSoon(() => secretOf(a.service.findClient(added.clientId)), sha256(rotated.clientSecret.reveal()));
  await a.administration.removeAppliance('wallbox');
  await expectSoon(() => b.service.findClient(added.clientId), undefined);
  expect(b.broker.connections.list()).toEqual([]);
  expect(a.logged.filter(({ event }) => event === 'secret_rotated')).toEqual([]);
  expect(b.logged.filter(({ event }) => event === 'appliance_removed')).toEqual([]);
});

test('connections whose names were swapped in the database of a site give no appliance a token', async () => {
  const database = await (await siteServer()).createDatabase();
  const address = addressOf(database.url);
  const declarations: Declarations = {
    connections: ['ours', 'theirs'].map((name) => ({ name, scope: null, portal: null })),
    appliances: [
      { name: 'heater', clientId: 'heater', connections: ['ours'], scope: null, portal: null, credentials: SECRET },
    ],
    file: '/etc/l.toml',
  };
  const start = () => startSiteBroker(address, 'latchkey-0000000a', undefined, { declarations });
  const tokenAt = async ({ broker, service }: SiteBroker) => {
    const result = await service.issueToken(broker.appliances.get('heater'), { scope: null, minTtl: 0 });
    return result.kind === 'token' ? result.accessToken.reveal() : result.kind;
  };
  {
    await using hub = await start();
    const { broker, store } = hub;
    for (const { id, name } of broker.connections.list()) {
      const accessToken = new Secret(`the-access-token-of-${name}`);
      await store.grants.replace(
        sampleGrant({ connection: id, accessToken, obtained: broker.environment.clock.now(), portalTime: Date.now() }),
      );
      await broker.grants.resumeStored(id);
    }
    expect(await tokenAt(hub)).toBe('the-access-token-of-ours');
  }
  await runOnSite(
    database,
    "UPDATE connections SET name = 'before' WHERE name = 'ours'",
    "UPDATE connections SET name = 'ours' WHERE name = 'theirs'",
    "UPDATE connections SET name = 'theirs' WHERE name = 'before'",
  );
  for (let starts = 0; starts < 2; starts++) {
    await using hub = await start();
    expect(await tokenAt(hub)).toBe('not_paired');
    const damaged = hub.logged.filter(({ event }) => event === 'connection_damaged');
    expect(damaged.map(({ fields }) => fields['connection'])).toEqual(['ours', 'theirs']);
  }
});

test('a running hub of a site stops issuing tokens of a connection whose row was changed without the store key', async () => {
  await using site = await startSite();
  const { a, database } = site;
  await a.administration.addConnection('shared', null, null);
  await runOnSite(database, "UPDATE connections SET scope = 'Everything'");
  await a.broker.applyNews(ALL_NEWS);
  expect(a.broker.connections.get('shared')).toMatchObject({ damaged: true });
  await expect(a.administration.pair('shared')).rejects.toThrow(/damaged/);
});

test('a setting of one hub of a site is unreadable in the row of another hub, and as one of the site', async () => {
  await using site = await startSite();
  const { a, b, database } = site;
  await a.store.settings.save({ [LEAF_SETTING]: 'the key of a' });
  await b.store.settings.save({ [LEAF_SETTING]: 'the key of b' });
  expect(await b.store.settings.get(LEAF_SETTING)).toBe('the key of b');
  await runOnSite(
    database,
    `UPDATE hub_settings SET sealed = (SELECT sealed FROM hub_settings WHERE hub = '${a.store.site.hubId}')
     WHERE hub = '${b.store.site.hubId}'`,
    'INSERT INTO settings (name, sealed) SELECT name, sealed FROM hub_settings LIMIT 1',
  );
  expect(await b.store.settings.get(LEAF_SETTING)).toBeNull();
  expect(await a.store.settings.get(LEAF_SETTING)).toBe('the key of a');
});

test('another title that an appliance or a connection got at one hub is known at the other', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await a.administration.addConnection('shared', null, null);
  await expectSoon(() => b.broker.connections.list().length, 2);
  await a.administration.renameAppliance('wallbox', 'Heat pump');
  await b.administration.renameConnection('shared', 'Netatmo');
  for (const { broker } of [a, b]) {
    const titles = () => [broker.appliances, broker.connections].flatMap((all) => all.list().map(({ title }) => title));
    await expectSoon(titles, ['Heat pump', 'Netatmo', 'Heat pump']);
  }
});

test('a session of one hub is known at the other, and ends there when it is revoked', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await expectSoon(() => namesAt(b), ['wallbox']);
  const appliance = a.broker.appliances.get('wallbox');
  const token = (await a.service.createSession(appliance, 'a device code', 'wallbox', IN_AN_HOUR))?.reveal() ?? '';
  await expectSoon(() => b.service.findSession(appliance, token)?.connection, 'wallbox');
  const other =
    (await b.service.createSession(appliance, 'another device code', 'wallbox', IN_AN_HOUR))?.reveal() ?? '';
  expect(await b.service.revoke(appliance, token)).toBe('revoked');
  await expectSoon(
    () => [token, other].map((one) => a.service.findSession(appliance, one)?.connection),
    [undefined, 'wallbox'],
  );
  await a.administration.removeAppliance('wallbox');
  await expectSoon(() => b.service.findSession(appliance, other), undefined);
});

test('changes of one appliance at two hubs at once are both made', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await a.administration.addConnection('shared', 'Monitoring', null);
  await expectSoon(() => [namesAt(b), b.broker.connections.find('shared')?.name], [['wallbox'], 'shared']);
  const [{ clientId, clientSecret }] = await Promise.all([
    a.administration.rotateSecret('wallbox', false),
    b.administration.moveAppliance('wallbox', ['shared']),
  ]);
  for (const hub of [a, b]) {
    const found = () => hub.service.findClient(clientId);
    const shared = hub.broker.connections.find('shared')?.id;
    await expectSoon(() => [secretOf(found()), found()?.connection], [sha256(clientSecret.reveal()), shared]);
  }
});

test('a change that waits for news of another hub starts from what they bring', async () => {
  await using site = await startSite();
  const { a, address } = site;
  const [reading, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isHeld = false;
  await using c = await startSiteBroker(address, 'latchkey-0000000c', (store) =>
    withMethods(store, {
      registry: withMethods(store.registry, {
        async connections() {
          const found = await store.registry.connections();
          if (!isHeld) return found;
          reading.resolve();
          await goOn.promise;
          return found;
        },
      }),
    }),
  );
  await a.administration.addConnection('shared', 'Monitoring', null);
  const { clientId } = await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await expectSoon(() => namesAt(c), ['wallbox']);
  isHeld = true;
  const rotated = await a.administration.rotateSecret('wallbox', false);
  await reading.promise;
  const moved = c.administration.moveAppliance('wallbox', ['shared']);
  goOn.resolve();
  await moved;
  const shared = a.broker.connections.find('shared')?.id;
  for (const hub of [a, c]) {
    const found = () => hub.service.findClient(clientId);
    await expectSoon(() => [secretOf(found()), found()?.connection], [sha256(rotated.clientSecret.reveal()), shared]);
  }
});

test('a name that two hubs give at once is given once, and a hub says who has it', async () => {
  await using site = await startSite();
  const { a, b } = site;
  const results = await Promise.allSettled(
    [a, b].map(({ administration }) => administration.addAppliance('wallbox', OWN_CONNECTION)),
  );
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(results.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'appliance_exists' } });
  for (const hub of [a, b]) await expectSoon(() => namesAt(hub), ['wallbox']);
});

test('an invite of one hub is good for one registration, whichever hub it is used at', async () => {
  await using site = await startSite();
  const { a, b } = site;
  const request = { name: 'wallbox', scope: null, portal: null, connection: null, ttl: 600 };
  const { token } = await a.administration.invite(request);
  await expectSoon(() => b.service.isInvite(token.reveal()), true);
  const registered = await Promise.all([a, b].map(({ service }) => service.register(METADATA, token.reveal(), PHONE)));
  expect(registered.map(({ kind }) => kind).toSorted()).toEqual(['registered', 'token_refused']);
  for (const { service } of [a, b]) await expectSoon(() => service.isInvite(token.reveal()), false);
});

test('a connection that was removed at one hub is removed at the other with its grant and its pairings', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addConnection('shared', 'Monitoring', null);
  await a.administration.addAppliance('wallbox', { connections: ['shared'], scope: null, portal: null });
  await expectSoon(() => namesAt(b), ['wallbox']);
  const { id } = a.broker.connections.get('shared');
  const appliance = a.broker.appliances.get('wallbox');
  await a.store.grants.replace(sampleGrant({ connection: id }));
  await a.broker.grants.resumeStored(id);
  const flow = await a.service.beginDeviceFlow(appliance, null);
  const deviceCode = flow.kind === 'begun' ? flow.authorization.deviceCode.reveal() : '';
  rememberSecrets([deviceCode]);
  const read = ({ broker }: SiteBroker) => [
    broker.grants.get(id)?.grant.generation,
    broker.pairings.newestFor(id)?.isOpen,
  ];
  for (const hub of [a, b]) await expectSoon(() => read(hub), [1, true]);
  await b.administration.removeConnection('shared', true);
  await expectSoon(() => a.broker.connections.byId(id), undefined);
  await expectSoon(() => read(a), [undefined, undefined]);
  expect(await a.service.pollDeviceFlow(appliance, deviceCode, IN_AN_HOUR)).toEqual({ kind: 'unknown' });
  expect(a.broker.connections.ofAppliance(a.broker.appliances.get('wallbox')).name).toBe('wallbox');
});
