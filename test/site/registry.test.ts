// Connections, appliances, sessions and invites that several hubs of a site change, on a real PostgreSQL server.
import { expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { sampleGrant } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { expectSoon, type SiteBroker, startSite } from './site-brokers.ts';
import { useSiteServer } from './site-harness.ts';

useSiteServer();

const OWN_CONNECTION = { connection: null, scope: 'Monitoring', portal: null };
const METADATA = { clientName: 'wallbox', scope: null, softwareId: null, keys: null };
const PHONE = { address: '192.168.1.20', shares: ['192.168.1.20'] };

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

test('a session of one hub is known at the other, and ends there when it is revoked', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await expectSoon(() => namesAt(b), ['wallbox']);
  const appliance = a.broker.appliances.get('wallbox');
  const token = (await a.service.createSession(appliance, 'a device code')).reveal();
  await expectSoon(() => b.service.hasSession(appliance, token), true);
  const other = (await b.service.createSession(appliance, 'another device code')).reveal();
  expect(await b.service.revoke(appliance, token)).toEqual({ kind: 'revoked' });
  await expectSoon(() => [token, other].map((one) => a.service.hasSession(appliance, one)), [false, true]);
  await a.administration.removeAppliance('wallbox');
  await expectSoon(() => b.service.hasSession(appliance, other), false);
});

test('changes of one appliance at two hubs at once are both made', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await a.administration.addConnection('shared', 'Monitoring', null);
  await expectSoon(() => [namesAt(b), b.broker.connections.find('shared')?.name], [['wallbox'], 'shared']);
  const [{ clientId, clientSecret }] = await Promise.all([
    a.administration.rotateSecret('wallbox', false),
    b.administration.moveAppliance('wallbox', 'shared'),
  ]);
  for (const hub of [a, b]) {
    const found = () => hub.service.findClient(clientId);
    const shared = hub.broker.connections.find('shared')?.id;
    await expectSoon(() => [secretOf(found()), found()?.connection], [sha256(clientSecret.reveal()), shared]);
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
  await a.administration.addAppliance('wallbox', { connection: 'shared', scope: null, portal: null });
  await expectSoon(() => namesAt(b), ['wallbox']);
  const { id } = a.broker.connections.get('shared');
  const appliance = a.broker.appliances.get('wallbox');
  await a.store.replaceGrant(sampleGrant({ connection: id }));
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
  expect(await a.service.pollDeviceFlow(appliance, deviceCode)).toEqual({ kind: 'unknown' });
  expect(a.broker.connections.ofAppliance(a.broker.appliances.get('wallbox')).name).toBe('wallbox');
});
