import { expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { countRefreshSends } from '../reliability/fleet.ts';
import { whoami } from '../reliability/load.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { HubClient, parseJsonBody } from './hub-client.ts';
import { expectError } from './oauth-error.ts';

const SCOPE = 'Monitoring RemoteControl';

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
});

/** Adds a connection of this name and two appliances that use it, and pairs it once. */
async function shared(name: string): Promise<[CredentialsResponse, CredentialsResponse]> {
  await hub.addConnection(name, SCOPE);
  const first = await hub.addAppliance(`${name}-thermostat`, null, null, name);
  const second = await hub.addAppliance(`${name}-dashboard`, null, null, name);
  await hub.pair(name, emulator);
  return [first, second];
}

const ask = (by: CredentialsResponse, form: Record<string, string> = {}) => client.tokenFor(by, form);

async function tokenOf(by: CredentialsResponse): Promise<string> {
  const response = await ask(by);
  expect(response.status).toBe(200);
  return String(parseJsonBody(response)['access_token']);
}

async function revoke(by: CredentialsResponse, token: string): Promise<void> {
  const response = await client.post('/oauth/revoke', { token }, by);
  expect(response).toMatchObject({ status: 200, text: '{}' });
}

const refreshes = () => countRefreshSends(emulator).length;

it('the appliances of one connection get the same token, after one login and for one grant at the portal', async () => {
  const grants = emulator.grants().length;
  const [thermostat, dashboard] = await shared('family');
  const responses = await Promise.all([thermostat, dashboard, thermostat].map((by) => ask(by)));
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
  const tokens = new Set(responses.map((response) => parseJsonBody(response)['access_token']));
  expect(tokens.size).toBe(1);
  expect(await whoami(emulator, String([...tokens][0]))).toBe(200);
  expect(emulator.grants().length).toBe(grants + 1);
  expect(responses.map((response) => parseJsonBody(response)['scope'])).toEqual([SCOPE, SCOPE, SCOPE]);
});

it('all appliances of a connection get the next token after one of them revokes it, with one refresh', async () => {
  const [thermostat, dashboard] = await shared('cloud');
  const token = await tokenOf(thermostat);
  const before = refreshes();
  await revoke(thermostat, token);
  const next = await Promise.all(Array.from({ length: 20 }, (_, n) => tokenOf(n % 2 === 0 ? thermostat : dashboard)));
  expect(new Set(next).size).toBe(1);
  expect(next[0]).not.toBe(token);
  expect(await whoami(emulator, next[0] ?? '')).toBe(200);

  // The other appliance noticed later that the old token is refused.
  await revoke(dashboard, token);
  expect(await tokenOf(dashboard)).toBe(next[0]);
  expect(await tokenOf(thermostat)).toBe(next[0]);
  expect(refreshes()).toBe(before + 1);
});

it('several appliances that revoke in turn cause no second refresh within a minute', async () => {
  const [thermostat, dashboard] = await shared('busy');
  await revoke(thermostat, await tokenOf(thermostat));
  const second = await tokenOf(thermostat);
  const before = refreshes();
  await revoke(dashboard, second);
  for (const by of [thermostat, dashboard]) {
    const refused = await ask(by);
    expectError(refused, 503, 'temporarily_unavailable');
    expect(Number(refused.headers['retry-after'])).toSatisfy((s: number) => s >= 1 && s <= 60);
  }
  expect(refreshes()).toBe(before);
  expect(await hub.connection('busy')).toMatchObject({ state: 'retrying', problem: { code: 'portal_rejected' } });
});

it('invalid_scope names the scope of the connection to each of its appliances', async () => {
  const [thermostat, dashboard] = await shared('scoped');
  for (const by of [thermostat, dashboard]) {
    const refused = await ask(by, { scope: 'Monitoring' });
    const { error_description } = expectError(refused, 400, 'invalid_scope');
    expect(error_description).toContain(`scope ${SCOPE}: omit the scope parameter`);
    expect((await ask(by, { scope: 'RemoteControl Monitoring' })).status).toBe(200);
  }
});

it('the credentials of one appliance can be replaced or removed without an effect on the others', async () => {
  const [thermostat, dashboard] = await shared('lasting');
  const token = await tokenOf(dashboard);
  const rotated = await hub.ask((control) => control.rotateSecret(thermostat.name, false));
  rememberSecrets([rotated.client_secret]);
  expectError(await ask(thermostat), 401, 'invalid_client');
  expect(await tokenOf(rotated)).toBe(token);
  await hub.ask((control) => control.removeAppliance(thermostat.name));
  expectError(await ask(rotated), 401, 'invalid_client');
  expect(await tokenOf(dashboard)).toBe(token);
  expect(await whoami(emulator, token)).toBe(200);
});

it('a connection that is unpaired and paired again serves the same credentials', async () => {
  const [thermostat, dashboard] = await shared('renewed');
  const token = await tokenOf(dashboard);
  await hub.ask((control) => control.unpair('renewed'));
  for (const by of [thermostat, dashboard]) expectError(await ask(by), 400, 'invalid_grant');
  await hub.pair('renewed', emulator);
  const next = await tokenOf(thermostat);
  expect(next).not.toBe(token);
  expect(await tokenOf(dashboard)).toBe(next);
});
