import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { HubClient, type HubResponse, parseJsonBody } from './hub-client.ts';
import { expectError, expectNoStore } from './oauth-error.ts';

/** The access token's lifetime, in seconds. */
const LIFETIME = 4;

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ tokenLifetime: LIFETIME }));
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
});

/** A new appliance that has started the device flow. */
async function beginForNew(name: string) {
  const appliance = await hub.addAppliance(name, 'Monitoring');
  return { appliance, ...(await begin(appliance)) };
}

async function begin(appliance: CredentialsResponse) {
  const { deviceCode, userCode } = await client.beginDeviceFlow(appliance);
  const poll = (form: Record<string, string> = {}, by = appliance) => client.poll(by, deviceCode, form);
  return { poll, userCode };
}

/** A person enters the user code on the hub's page, and logs in at the portal or denies access. */
async function logIn(userCode: string, deny = false): Promise<void> {
  await client.logIn(emulator, await client.enterCode(userCode), deny);
}

/** The final response of the flow. */
function pollUntilEnd(poll: () => Promise<HubResponse>): Promise<HubResponse> {
  return eventually(async () => {
    const response = await poll();
    return !['authorization_pending', 'slow_down'].includes(String(parseJsonBody(response)['error'])) && response;
  });
}

/** An appliance that was paired by device flow, and its refresh token. */
async function pairedByItself(name: string) {
  const { appliance, poll, userCode } = await beginForNew(name);
  await logIn(userCode);
  const { refresh_token } = parseJsonBody(await pollUntilEnd(poll));
  rememberSecrets([String(refresh_token)]);
  const refresh = (form: Record<string, string> = {}, by = appliance) =>
    client.tokenFor(by, { grant_type: 'refresh_token', refresh_token: String(refresh_token), ...form });
  return { appliance, poll, refresh, refreshToken: String(refresh_token) };
}

describe('a device code at the token endpoint', () => {
  it('a device code gets a token and a refresh token of the hub after somebody has logged in, and not before', async () => {
    const { appliance, poll, userCode } = await beginForNew('oven');
    expectError(await poll(), 400, 'authorization_pending');
    expectError(await poll(), 400, 'slow_down');
    await logIn(userCode);
    const response = await pollUntilEnd(poll);
    expect(response.status).toBe(200);
    expectNoStore(response);
    expect(parseJsonBody(response)).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: expect.any(Number),
      refresh_token: expect.stringMatching(/^[\w-]{43}$/),
      scope: 'Monitoring',
    });
    expect(emulator.secretsIssued('refresh_token')).not.toContain(parseJsonBody(response)['refresh_token']);
    expectError(await pollUntilEnd(() => poll({ scope: 'Everything' })), 400, 'invalid_scope');
    expectError(await poll({ min_ttl: 'x' }), 400, 'invalid_request');
    const other = await hub.addAppliance('other');
    expectError(await poll({}, other), 400, 'invalid_grant');
    // The response may be lost on the way: the next one has the same refresh token, and nothing more is written for it.
    const again = parseJsonBody(await pollUntilEnd(poll))['refresh_token'];
    expect(again).toBe(parseJsonBody(response)['refresh_token']);
    const used = (refresh_token: unknown) =>
      client.tokenFor(appliance, { grant_type: 'refresh_token', refresh_token: String(refresh_token) });
    expect((await used(again)).status).toBe(200);
    rememberSecrets([String(again)]);
  });

  it('a device code gets access_denied if the person has refused', async () => {
    const { poll, userCode } = await beginForNew('fan');
    await logIn(userCode, true);
    expectError(await pollUntilEnd(poll), 400, 'access_denied');
  });

  it('a device code gets expired_token if a newer device flow replaced it or the pairing was cancelled', async () => {
    const first = await beginForNew('pump');
    const second = await begin(first.appliance);
    expectError(await pollUntilEnd(first.poll), 400, 'expired_token');
    await hub.ask((control) => control.request('unpair', { name: 'pump' }));
    expectError(await pollUntilEnd(second.poll), 400, 'expired_token');
  });
});

describe('a refresh token of the hub', () => {
  it('a refresh token of the hub gets tokens repeatedly, and stays the same', async () => {
    const { refresh, refreshToken } = await pairedByItself('heater');
    const expectToken = (response: HubResponse) => {
      expect(response.status).toBe(200);
      expectNoStore(response);
      expect(parseJsonBody(response)).toEqual({
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: expect.any(Number),
        refresh_token: refreshToken,
        scope: 'Monitoring',
      });
    };
    expectToken(await refresh());
    expectToken(await refresh({ scope: 'Monitoring', min_ttl: '2' }));
    expectError(await refresh({ scope: 'RemoteControl' }), 400, 'invalid_scope');
  });

  it('a refresh token of the hub is valid only for its own appliance and only if it is sent exactly', async () => {
    const { refresh, refreshToken } = await pairedByItself('dryer');
    const other = await pairedByItself('washer');
    expectError(await refresh({}, other.appliance), 400, 'invalid_grant');
    expectError(await refresh({ refresh_token: refreshToken.slice(1) }), 400, 'invalid_grant');
    expectError(await refresh({ refresh_token: `${refreshToken} ` }), 400, 'invalid_grant');
    for (const secret of emulator.secretsIssued('refresh_token').slice(-1)) {
      expectError(await refresh({ refresh_token: secret }), 400, 'invalid_grant');
    }
    expect((await refresh()).status).toBe(200);
  });

  it('a refresh token of the hub ends when its own appliance revokes it, with any token_type_hint, and no other can', async () => {
    const { appliance, poll, refresh, refreshToken } = await pairedByItself('fridge');
    const otherClient = await hub.addAppliance('stranger');
    const revoke = (credentials: CredentialsResponse) =>
      client.post('/oauth/revoke', { token: refreshToken, token_type_hint: 'access_token' }, credentials);
    expect((await revoke(otherClient)).status).toBe(200);
    expect((await refresh()).status).toBe(200);
    expect((await revoke(appliance)).status).toBe(200);
    expectError(await refresh(), 400, 'invalid_grant');
    // The grant itself is unchanged.
    const { refresh_token } = parseJsonBody(await pollUntilEnd(poll));
    rememberSecrets([String(refresh_token)]);
    expect((await refresh({ refresh_token: String(refresh_token) })).status).toBe(200);
  });
});
