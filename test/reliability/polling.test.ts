import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { Secret } from '../../src/core/secret.ts';
import { systemRandom } from '../../src/system/random.ts';
import { BrokerHarness, pairingResult, UNKNOWN_BROWSER } from '../broker/broker-harness.ts';
import { HubProcess, stateParameterOf } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { countCodeSends, fetchPage } from './fleet.ts';

const MINUTE = 60_000;

/** Passes the parameters of the portal's redirect to the hub, as the browser does. */
function follow({ run: { pairings } }: BrokerHarness, location: string) {
  const { pathname, searchParams } = new URL(location);
  const nonce = pathname.split('/').at(-1) ?? '';
  const error = searchParams.get('error');
  if (error !== null) return pairings.receiveCallback(nonce, { kind: 'error', error }, UNKNOWN_BROWSER);
  return pairings.receiveCallback(
    nonce,
    { kind: 'code', code: new Secret(searchParams.get('code') ?? '') },
    UNKNOWN_BROWSER,
  );
}

it.each<[string, (home: BrokerHarness, run: PairingRun) => Promise<unknown>]>([
  ['expired', (home) => home.time.pass(15 * MINUTE)],
  ['cancelled', (home, { pairing }) => home.run.pairings.end(pairing.connection, 'cancelled')],
  ['replaced', async (home) => (await home.beginPairing('wallbox')).fail('cancelled')],
  ['refused_by_user', async (home, run) => follow(home, await home.login(run, true))],
  ['paired', async (home, run) => follow(home, await home.login(run))],
])('the portal is not polled any more after a pairing ended as %s', async (result, end) => {
  await using home = await BrokerHarness.start({
    emulator: { codeUrlAfterExchange: 'served' },
    redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}`,
  });
  await home.addAppliance('wallbox');
  const run = await home.beginPairing('wallbox');
  const { step } = run.pairing;
  const state = stateParameterOf(step.kind === 'waiting' ? step.link.authorizeUrl : undefined);
  await home.time.pass(MINUTE);
  expect(home.emulator.polls(state).length).toBeGreaterThanOrEqual(6);
  await end(home, run);
  await home.time.settle();
  expect(pairingResult(run.pairing.step)).toBe(result);
  const polls = home.emulator.polls(state).length;
  await home.time.pass(10 * MINUTE);
  expect(home.emulator.polls(state)).toHaveLength(polls);
});

it('a code that arrives by polling and by redirect at the same moment is exchanged once', async () => {
  const secret = systemRandom.token(24);
  // One client per appliance, so that a poll identifies the appliance.
  const clients = Array.from({ length: 9 }, () => ({ id: systemRandom.uuid(), secret }));
  const redirects = new Map<string, string>();
  const pages: Promise<string>[] = [];
  await using emulator = await startPortal({
    clients,
    codeUrlAfterExchange: 'served',
    intercept: {
      async answering({ endpoint, client }, status) {
        const location = redirects.get(client ?? '');
        if (endpoint !== 'code/get' || status !== 200 || location === undefined) return;
        redirects.delete(client ?? '');
        // The redirect is some ms before the poll's response, at the same time, or after it.
        const ahead = [6, 3, 1, 0, 0, 0, -1, -3, -6][clients.findIndex(({ id }) => id === client)] ?? 0;
        pages.push(sleep(Math.max(0, -ahead)).then(() => fetchPage(location)));
        await sleep(Math.max(0, ahead));
      },
    },
  });
  const toml = clients.flatMap(({ id }, index) => [
    `[portals.p${index}]`,
    `base_url = "${emulator.baseUrl}"`,
    `frontend_url = "${emulator.frontendUrl}"`,
    `client_id = "${id}"`,
    'client_secret_file = "portal.secret"',
  ]);
  await using hub = await HubProcess.start({ emulator, toml: toml.join('\n'), here: true });
  for (const [index, { id }] of clients.entries()) {
    await hub.addAppliance(`appliance-${index}`, 'Monitoring', `p${index}`);
    const state = stateParameterOf(await hub.beginPairing(`appliance-${index}`));
    const { location } = await emulator.login({ state, user: 'demo' });
    redirects.set(id, location);
  }
  for (const index of clients.keys()) await hub.until(`appliance-${index}`, ({ state }) => state === 'active');
  for (const page of await Promise.all(pages)) expect(page).toContain('is connected');
  expect(pages).toHaveLength(clients.length);
  expect(countCodeSends(emulator)).toEqual(clients.map(() => 1));
  expect(emulator.observations.codesRepeated).toBe(0);
  expect(emulator.grants()).toHaveLength(clients.length);
  for (const index of clients.keys()) {
    expect(await hub.appliance(`appliance-${index}`)).toMatchObject({ state: 'active', problem: null });
  }
});
