import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { countRefreshSends } from '../reliability/fleet.ts';
import { whoami } from '../reliability/load.ts';
import { HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { HubClient, type HubResponse, parseJsonBody } from './hub-client.ts';
import { expectError } from './oauth-error.ts';

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
});

async function paired(name: string): Promise<CredentialsResponse> {
  const appliance = await hub.addAppliance(name);
  await hub.pair(name, emulator);
  return appliance;
}

const revoke = (by: CredentialsResponse | null, form: Record<string, string>) => client.post('/oauth/revoke', form, by);
const ask = (by: CredentialsResponse) => client.tokenFor(by);
const refreshes = () => countRefreshSends(emulator).length;

async function tokenOf(by: CredentialsResponse): Promise<string> {
  const response = await ask(by);
  expect(response.status).toBe(200);
  return String(parseJsonBody(response)['access_token']);
}

function expectTaken(response: HubResponse): void {
  expect(response).toMatchObject({ status: 200, text: '{}', headers: { 'cache-control': 'no-store' } });
}

describe('an access token that the cloud API rejects', () => {
  it('the hub replaces each rejected token with one refresh, however many appliances revoke and ask at once', async () => {
    const fleet: CredentialsResponse[] = [];
    for (const name of ['heater', 'meter', 'boiler', 'fridge']) fleet.push(await paired(name));
    const before = await Promise.all(fleet.map(tokenOf));
    for (const { id } of emulator.grants()) expect(emulator.revoke(id, 'access_tokens')).toBe(true);
    const spared = await paired('spared');
    const others = await tokenOf(spared);
    for (const token of before) expect(await whoami(emulator, token)).toBe(401);
    const refreshesBefore = refreshes();

    const responses = await Promise.all(
      fleet.flatMap((appliance, index) =>
        Array.from({ length: 20 }, async () => {
          expectTaken(await revoke(appliance, { token: before[index] ?? '' }));
          return ask(appliance);
        }),
      ),
    );
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    const tokens = new Set(responses.map((response) => String(parseJsonBody(response)['access_token'])));
    expect(tokens.size).toBe(fleet.length);
    for (const token of tokens) expect(await whoami(emulator, token)).toBe(200);
    expect(refreshes()).toBe(refreshesBefore + fleet.length);
    expect(countRefreshSends(emulator).filter(({ sends }) => sends !== 1)).toEqual([]);
    expect(await hub.appliance('heater')).toMatchObject({ state: 'active', problem: null });
    expect(await tokenOf(spared)).toBe(others);
  });

  it('a token that is rejected soon after a refresh is not issued or refreshed for a minute, except by a person', async () => {
    const oven = await paired('oven');
    expectTaken(await revoke(oven, { token: await tokenOf(oven) }));
    const second = await tokenOf(oven);
    const before = refreshes();
    expectTaken(await revoke(oven, { token: second, token_type_hint: 'access_token' }));
    const none = await ask(oven);
    expect(expectError(none, 503, 'temporarily_unavailable')['error_description']).toMatch(
      /rejected .* at most once a minute$/,
    );
    expect(Number(none.headers['retry-after'])).toSatisfy((s: number) => s >= 1 && s <= 60);
    const status = await hub.appliance('oven');
    expect(status).toMatchObject({ state: 'retrying', expires_in: 0, problem: { code: 'portal_rejected' } });
    expect(status.problem?.message).toMatch(/^An appliance reported that the portal rejects .* within \d+ s$/);
    expect(status.refresh_in).toSatisfy((s: number) => s >= 1 && s <= 60);
    expect(refreshes()).toBe(before);
    expect(await hub.ask((control) => control.request('refresh', { name: 'oven' }))).toMatchObject({
      state: 'active',
      problem: null,
    });
    expect(await whoami(emulator, await tokenOf(oven))).toBe(200);
    expect(refreshes()).toBe(before + 1);
  });
});

describe('other revocation requests', () => {
  it('the revocation endpoint answers 200 and changes nothing if the token is unknown or belongs to another appliance', async () => {
    const lamp = await paired('lamp');
    const fan = await hub.addAppliance('fan');
    const token = await tokenOf(lamp);
    const others = await tokenOf(await paired('dryer'));
    const before = refreshes();
    for (const form of [{ token: others }, { token: 'x', token_type_hint: 'of a kind that nobody knows' }]) {
      expectTaken(await revoke(lamp, form));
      expectTaken(await revoke(fan, form));
    }
    expectTaken(await revoke(fan, { token }));
    expect(await tokenOf(lamp)).toBe(token);
    expect(refreshes()).toBe(before);
  });

  it('the revocation endpoint requires client authentication and a token', async () => {
    const kettle = await paired('kettle');
    const token = await tokenOf(kettle);
    expectError(await revoke(null, { token }), 401, 'invalid_client');
    expectError(await revoke({ ...kettle, client_secret: 'wrong' }, { token }), 401, 'invalid_client');
    expect(expectError(await revoke(kettle, {}), 400, 'invalid_request')['error_description']).toContain('token');
    expectError(await revoke(kettle, { token: '' }), 400, 'invalid_request');
    expect(await client.https('/oauth/revoke')).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    expect(await tokenOf(kettle)).toBe(token);
  });
});
