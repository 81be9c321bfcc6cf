import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ApplianceResponse } from '../../../src/control/messages.ts';
import type { NamedCheckResult } from '../../../src/doctor/check-result.ts';
import { logIn } from '../../reliability/fleet.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { jsonOn, startOn } from '../command.ts';

const ID = '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01';
const OTHER = '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90';
const SECRET = 'the-client-secret-of-the-portal';

/** A portal with one client, and a hub with these credentials. */
async function startWithCredentials(parts: AsyncDisposableStack, clientId: string, clientSecret: string) {
  rememberSecrets([SECRET, clientSecret]);
  const emulator = parts.use(await startPortal({ clients: [{ id: ID, secret: SECRET }] }));
  const { baseUrl, frontendUrl } = emulator;
  const hub = parts.use(
    await HubProcess.start({ emulator: { baseUrl, frontendUrl, clientId, clientSecret }, here: true }),
  );
  await hub.addAppliance('wallbox', 'Monitoring');
  return { emulator, hub };
}

function failureOf(hub: HubProcess): Promise<NonNullable<ApplianceResponse['pairing_failed']>> {
  return eventually(async () => (await hub.appliance('wallbox')).pairing_failed);
}

test('an unknown client_id is reported at every place until a reload of the corrected configuration', async () => {
  await using parts = new AsyncDisposableStack();
  const { hub } = await startWithCredentials(parts, OTHER, SECRET);
  const words = /the portal does not know this client_id; correct portals\.home\.client_id/;

  const pair = await startOn(hub, 'pair', 'wallbox', '--json').ended;
  expect(pair).toMatchObject({ status: 1, stderr: expect.stringMatching(words) });
  const message = expect.stringMatching(words);
  expect(JSON.parse(pair.stdout)).toEqual({ event: 'failed', reason: 'misconfigured' });
  expect(hub.events('pairing_rejected')).toMatchObject([
    { detail: expect.stringMatching(/does not know this client_id: check portals\.home\.client_id \(.*HTTP 404\)/) },
  ]);
  expect(hub.events('redirect_address_rejected')).toEqual([]);

  const failed = { reason: 'misconfigured', message, at: expect.stringMatching(/^20\d\d-.*Z$/) };
  expect(await hub.appliance('wallbox')).toMatchObject({ state: 'unpaired', problem: null, pairing_failed: failed });
  const { checks } = await jsonOn<{ checks: NamedCheckResult[] }>(hub, 'doctor');
  expect(checks.find(({ name }) => name === 'appliance.wallbox')).toMatchObject({
    result: 'warn',
    detail: expect.stringMatching(/does not know this client_id\. Correct portals\.home\.client_id/),
  });

  const file = join(hub.directory, 'latchkey.toml');
  await writeFile(file, (await readFile(file, 'utf8')).replace(OTHER, ID));
  expect((await startOn(hub, 'reload').ended).status).toBe(0);
  expect(await hub.appliance('wallbox')).not.toHaveProperty('pairing_failed');
  expect((await startOn(hub, 'pair', 'wallbox', '--no-wait').ended).status).toBe(0);
});

test('a client secret that the portal does not accept is reported with the file that contains it', async () => {
  await using parts = new AsyncDisposableStack();
  const { emulator, hub } = await startWithCredentials(parts, ID, 'another-secret-of-before');
  const file = join(hub.directory, 'portal.secret');
  await logIn(emulator, await hub.beginPairing('wallbox'));
  const { reason, message } = await failureOf(hub);
  expect(reason).toBe('misconfigured');
  expect(message).toContain(`correct portals.home.client_id, or the client secret in ${file}, run "latchkey reload"`);
  expect(hub.events('code_exchange_failed')).toMatchObject([{ detail: expect.stringContaining(file) }]);

  expect((await startOn(hub, 'unpair', 'wallbox').ended).status).toBe(0);
  expect(await hub.appliance('wallbox')).not.toHaveProperty('pairing_failed');
});
