// How a hub takes over what other hubs have changed, and how it looks for it, on a real PostgreSQL server.
import { expect, test } from 'vitest';
import { NewsLook } from '../../src/broker/site/news.ts';
import { utcDay } from '../../src/core/clock.ts';
import { Failure } from '../../src/core/failure.ts';
import { sampleGrant } from '../core/samples.ts';
import { FakeTime } from '../support/fake-time.ts';
import { rememberSecrets } from '../support/logs.ts';
import { withMethods } from '../support/store-calls.ts';
import { expectSoon, IN_AN_HOUR, startSite, startSiteBroker, withoutNotifications } from './site-brokers.ts';
import { useSiteServer } from './site-harness.ts';

useSiteServer();

const OWN_CONNECTION = { connections: [], scope: null, portal: null };

test('an error in one part keeps no other part from its news, and everything is read again after a moment', async () => {
  await using site = await startSite();
  const { a } = site;
  let isFailing = true;
  await using c = await startSiteBroker(site.address, 'latchkey-0000000c', (store) =>
    withMethods(store, {
      sessions: withMethods(store.sessions, {
        async all(appliances) {
          if (appliances !== undefined && isFailing) throw new Failure('store_unreadable', 'not now');
          return store.sessions.all(appliances);
        },
      }),
    }),
  );
  const { clientId } = await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await expectSoon(() => c.service.findClient(clientId)?.name, 'wallbox');
  const appliance = a.broker.appliances.get('wallbox');
  const token = (await a.service.createSession(appliance, 'a device code', 'wallbox', IN_AN_HOUR))?.reveal() ?? '';
  await a.administration.addConnection('shared', null, null);
  await expectSoon(() => c.broker.connections.find('shared')?.name, 'shared');
  expect(c.service.findSession(appliance, token)).toBeUndefined();
  expect(c.logged).toContainEqual({
    event: 'site_news_not_applied',
    fields: { part: 'sessions', error: 'not now' },
  });
  isFailing = false;
  await expectSoon(() => c.service.findSession(appliance, token)?.connection, 'wallbox');
});

test('a hub that no notification reaches looks for what its appliances have got at another hub', async () => {
  await using site = await startSite();
  const { a } = site;
  await using c = await startSiteBroker(site.address, 'latchkey-0000000c', withoutNotifications);
  const { clientId } = await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  const appliance = a.broker.appliances.get('wallbox');
  const flow = await a.service.beginDeviceFlow(appliance, null);
  if (flow.kind !== 'begun') throw new Error('no device flow');
  const deviceCode = flow.authorization.deviceCode.reveal();
  rememberSecrets([deviceCode]);
  expect(c.service.findClient(clientId)).toBeUndefined();
  expect(await c.service.pollDeviceFlow(appliance, deviceCode, IN_AN_HOUR)).toEqual({ kind: 'pending' });
  expect(c.service.findClient(clientId)).toEqual(appliance);
  const request = { name: null, scope: null, portal: null, connection: null, ttl: 600 };
  const { token } = await a.administration.invite(request);
  const metadata = { clientName: 'heater', scope: null, softwareId: null, keys: null };
  expect(await c.service.register(metadata, token.reveal(), '192.168.1.20')).toMatchObject({ kind: 'registered' });
});

test('the status shows the tokens that all hubs have issued', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  const { id, connection } = a.broker.appliances.get('wallbox');
  await expectSoon(() => b.broker.appliances.byId(id)?.id, id);
  const { obtained: _, ...grant } = sampleGrant();
  const obtained = a.broker.environment.clock.now();
  await a.store.grants.replace({ ...grant, connection, obtained });
  const request = { scope: null, minTtl: 0 };
  for (const { broker, service } of [a, b]) {
    await broker.grants.resumeStored(connection);
    broker.referenceClock.recordNtpTime();
    expect(await service.issueToken(broker.appliances.get('wallbox'), request)).toMatchObject({ kind: 'token' });
  }
  await b.service.issueToken(b.broker.appliances.get('wallbox'), request);
  for (const { broker } of [a, b, a]) await broker.usageRecorder.share();
  for (const { broker } of [a, b]) {
    expect(broker.usageRecorder.usageOf(id)).toMatchObject({ today: 3, last14Days: 3, last: expect.any(Number) });
  }
  await b.service.issueToken(b.broker.appliances.get('wallbox'), request);
  expect(b.broker.usageRecorder.usageOf(id)).toMatchObject({ today: 4 });
  await b.broker.usageRecorder.share();
  expect((await b.store.usage.own()).get(id)?.days).toEqual([{ day: utcDay(obtained.wall), count: 3 }]);
  // Of each connection, the last token at any of them.
  const last = obtained.wall;
  const [earlier, later] = [
    { last: last - 1000, days: [] },
    { last, days: [] },
  ] as const;
  await a.store.usage.save(new Map([[id, { ...later, connections: { x: earlier, y: later } }]]));
  await b.store.usage.save(new Map([[id, { ...later, connections: { x: later, y: earlier } }]]));
  await using c = await startSiteBroker(site.address, 'latchkey-0000000c');
  for (const used of ['x', 'y']) expect(c.broker.usageRecorder.usageOf(id, obtained, used)).toMatchObject({ last });
});

test('an event that one hub has recorded is in the history at the other, and is emitted once', async () => {
  await using site = await startSite();
  const { a, b } = site;
  await a.administration.addAppliance('wallbox', OWN_CONNECTION);
  await expectSoon(() => b.broker.appliances.find('wallbox')?.name, 'wallbox');
  const { connection } = a.broker.appliances.get('wallbox');
  const obtained = a.broker.environment.clock.now();
  await a.store.grants.replace(sampleGrant({ connection, obtained }));
  for (const { broker } of [a, b]) await broker.grants.resumeStored(connection);
  await a.administration.unpair('wallbox');
  await expectSoon(() => b.broker.grants.get(connection), undefined);
  await a.broker.historyRecorder[Symbol.asyncDispose]();
  expect((await b.administration.history('wallbox')).map(({ kind }) => kind)).toEqual(['unpaired']);
  expect([a.emitted, b.emitted].map((events) => events.map(({ kind }) => kind))).toEqual([['unpaired'], []]);
});

test('requests with unknown credentials share one look a second, which begins after they have arrived', async () => {
  const time = new FakeTime();
  const looks: number[] = [];
  const catchUp = async () => looks.push(time.uptime) > 0;
  const look = new NewsLook({ catchUp, writeProblem: null }, { clock: time, timers: time });
  const begun = time.uptime;
  expect(await look.take()).toBe(true);
  const all = Array.from({ length: 100 }, () => look.take());
  await time.pass(999);
  expect(looks).toEqual([begun]);
  await time.pass(1);
  expect(await Promise.all(all)).not.toContain(false);
  expect(looks).toEqual([begun, begun + 1000]);
});

test('a request with unknown credentials waits at most three seconds for a database that does not answer', async () => {
  const time = new FakeTime();
  const hanging = { catchUp: () => new Promise<boolean>(() => undefined), writeProblem: null };
  const look = new NewsLook(hanging, { clock: time, timers: time }).take();
  await time.pass(3000);
  expect(await look).toBe(true);
  const alone = new NewsLook({ catchUp: async () => false, writeProblem: null }, { clock: time, timers: time });
  expect(await alone.take()).toBe(false);
});
