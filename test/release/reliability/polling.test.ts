import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { systemRandom } from '../../../src/system/random.ts';
import { countCodeSends, fetchPage } from '../../reliability/fleet.ts';
import { HubProcess, stateParameterOf } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

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
