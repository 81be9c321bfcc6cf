import { expect, onTestFinished, test } from 'vitest';
import { PortalClients } from '../../src/broker/portal-clients.ts';
import { Secret } from '../../src/core/secret.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { MINUTE, SECOND } from '../core/samples.ts';
import { eventually } from '../support/hub-process.ts';
import { httpResponse, startRawServer } from '../support/raw-server.ts';
import { BrokerHarness } from './broker-harness.ts';

const DELAY = 10 * SECOND;
const LOCATION = { portal: 'home', secretFile: '/x/home.secret' };

/** A portal that knows one secret, and a hub that starts with others. */
async function startPortal() {
  const { harness } = await BrokerHarness.startPaired();
  const { environment, run } = harness;
  const requests: string[] = [];
  let isBlocked = false;
  const server = await startRawServer((socket, { body }) => {
    const secret = new URLSearchParams(body).get('client_secret') ?? '';
    requests.push(secret);
    const status = isBlocked ? 403 : secret === 'right' ? 400 : 401;
    const error = { 400: 'invalid_grant', 401: 'invalid_client', 403: undefined }[status];
    socket.end(httpResponse(status, JSON.stringify({ error })));
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return {
    requests,
    time: harness.time,
    store: run.store,
    block: (isOn: boolean) => {
      isBlocked = isOn;
    },
    /** The clients of a hub that has just started. */
    clients(secret: string): PortalClients {
      const portal = new HelperPortal({
        baseUrl: server.origin,
        frontendUrl: server.origin,
        clientId: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01',
        clientSecret: new Secret(secret),
        credentialLocation: LOCATION,
        ca: [],
      });
      const client = { digest: secret, credentialLocation: LOCATION, probeClient: () => portal.probeClient() };
      const clients = new PortalClients(environment, run.store, new Map([['home', client]]));
      onTestFinished(() => clients[Symbol.dispose]());
      clients.start(DELAY);
      return clients;
    },
  };
}

test('a portal is asked once for each client secret, and a wrong one is reported until another login shows better', async () => {
  const portal = await startPortal();
  const wrong = portal.clients('wrong');
  await portal.time.pass(DELAY + SECOND);
  await eventually(async () => wrong.rejected.length > 0);
  expect(wrong.rejected).toMatchObject([
    { portal: 'home', message: expect.stringMatching(/portals\.home\.client_id, or .*\/x\/home\.secret, and run/) },
  ]);
  await portal.time.pass(100 * MINUTE);
  expect(portal.requests).toEqual(['wrong']);

  const right = portal.clients('right');
  await portal.time.pass(DELAY + SECOND);
  await eventually(async () => {
    await portal.time.pass(SECOND);
    return (await portal.store.settings.get('accepted client of home')) === 'right';
  });
  expect(right.rejected).toEqual([]);
  portal.clients('right');
  await portal.time.pass(100 * MINUTE);
  expect(portal.requests).toEqual(['wrong', 'right']);
  wrong.accept('home');
  expect(wrong.rejected).toEqual([]);
});

test('a portal that has accepted the hub, and then rejects a login, is asked again after a restart', async () => {
  const portal = await startPortal();
  const setting = (wanted: string) =>
    eventually(async () => (await portal.store.settings.get('accepted client of home')) === wanted);
  const before = portal.clients('wrong');
  before.accept('home');
  await setting('wrong');
  before.reject('home');
  expect(before.rejected).toHaveLength(1);
  await setting('');
  const after = portal.clients('wrong');
  await portal.time.pass(DELAY + SECOND);
  await eventually(async () => after.rejected.length > 0);
});

test('a portal that a firewall hides is asked again later, and one whose login works is not asked', async () => {
  const portal = await startPortal();
  portal.block(true);
  portal.clients('wrong');
  await portal.time.pass(DELAY + SECOND);
  await eventually(async () => portal.requests.length === 1);
  portal.block(false);
  await eventually(async () => {
    await portal.time.pass(MINUTE);
    return portal.requests.length > 1;
  });
  const paired = portal.clients('another');
  paired.accept('home');
  await portal.time.pass(DELAY + SECOND);
  expect(portal.requests).not.toContain('another');
});
