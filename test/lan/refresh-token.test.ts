import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { basicAuthorization, FORM, HubClient, type HubResponse, parseJsonBody } from './hub-client.ts';
import { expectError, expectNoStore } from './oauth-error.ts';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
/** Of an access token, in seconds. */
const LIFETIME = 4;

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ tokenLifetime: LIFETIME }));
  hub = parts.use(await HubProcess.start({ emulator }));
  client = parts.use(await HubClient.of(hub));
});

/** An appliance that has begun to pair itself. */
async function begun(name: string) {
  const appliance = await hub.addAppliance(name, 'Monitoring');
  return { appliance, ...(await begin(appliance)) };
}

async function begin(appliance: CredentialsResponse) {
  const answer = await client.https('/oauth/device_authorization', {
    method: 'POST',
    headers: { authorization: basicAuthorization(appliance), 'content-type': FORM },
    body: '',
  });
  const { device_code, user_code } = parseJsonBody(answer);
  rememberSecrets([String(device_code)]);
  const poll = (form: Record<string, string> = {}, by = appliance) =>
    client.token(
      { grant_type: DEVICE_CODE, device_code: String(device_code), ...form },
      { authorization: basicAuthorization(by) },
    );
  return { poll, userCode: String(user_code) };
}

/** Somebody takes the user code to the hub's page, and logs in at the portal or refuses. */
async function logIn(userCode: string, deny = false): Promise<void> {
  const { headers } = await client.https('/pair', {
    method: 'POST',
    headers: { 'content-type': FORM },
    body: new URLSearchParams({ user_code: userCode }).toString(),
  });
  const state = new URL(String(headers['location'])).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'demo', deny });
  await client.http(new URL(location).pathname + new URL(location).search);
}

/** What the flow has ended with. */
function over(poll: () => Promise<HubResponse>): Promise<HubResponse> {
  return eventually(async () => {
    const answer = await poll();
    return !['authorization_pending', 'slow_down'].includes(String(parseJsonBody(answer)['error'])) && answer;
  });
}

/** An appliance that has paired itself, and its refresh token. */
async function pairedByItself(name: string) {
  const { appliance, poll, userCode } = await begun(name);
  await logIn(userCode);
  const { refresh_token } = parseJsonBody(await over(poll));
  rememberSecrets([String(refresh_token)]);
  const refresh = (form: Record<string, string> = {}, by = appliance) =>
    client.token(
      { grant_type: 'refresh_token', refresh_token: String(refresh_token), ...form },
      { authorization: basicAuthorization(by) },
    );
  return { appliance, poll, refresh, refreshToken: String(refresh_token) };
}

describe('a device code at the token endpoint', () => {
  it('a device code gets a token and a refresh token of the hub after somebody has logged in, and not before', async () => {
    const { appliance, poll, userCode } = await begun('oven');
    expectError(await poll(), 400, 'authorization_pending');
    expectError(await poll(), 400, 'slow_down');
    await logIn(userCode);
    const answer = await over(poll);
    expect(answer.status).toBe(200);
    expectNoStore(answer);
    expect(parseJsonBody(answer)).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: expect.any(Number),
      refresh_token: expect.stringMatching(/^[\w-]{43}$/),
      scope: 'Monitoring',
    });
    expect(emulator.secretsIssued('refresh_token')).not.toContain(parseJsonBody(answer)['refresh_token']);
    expectError(await over(() => poll({ scope: 'Everything' })), 400, 'invalid_scope');
    expectError(await poll({ min_ttl: 'x' }), 400, 'invalid_request');
    const other = await hub.addAppliance('other');
    expectError(await poll({}, other), 400, 'invalid_grant');
    // An answer may be lost on the way: the next one has the same refresh token, and nothing more is written for it.
    const again = parseJsonBody(await over(poll))['refresh_token'];
    expect(again).toBe(parseJsonBody(answer)['refresh_token']);
    const used = (refresh_token: unknown) =>
      client.token(
        { grant_type: 'refresh_token', refresh_token: String(refresh_token) },
        { authorization: basicAuthorization(appliance) },
      );
    expect((await used(again)).status).toBe(200);
    rememberSecrets([String(again)]);
  });

  it('a device code gets access_denied if the person has refused', async () => {
    const { poll, userCode } = await begun('fan');
    await logIn(userCode, true);
    expectError(await over(poll), 400, 'access_denied');
  });

  it('a device code gets expired_token if a newer device flow replaced it or the pairing was cancelled', async () => {
    const first = await begun('pump');
    const second = await begin(first.appliance);
    expectError(await over(first.poll), 400, 'expired_token');
    await hub.ask((control) => control.unpair('pump'));
    expectError(await over(second.poll), 400, 'expired_token');
  });

  it('a device code stays valid after a response without a token', async () => {
    const { poll, userCode } = await begun('lamp');
    await logIn(userCode);
    await eventually(async () => (await hub.appliance('lamp')).state === 'active');
    const fault = emulator.addFault({ kind: 'status', endpoint: 'token', status: 503, times: null });
    const none = await eventually(async () => {
      const answer = await poll();
      return answer.status === 503 && answer;
    });
    expectError(none, 503, 'temporarily_unavailable');
    expect(Number(none.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    await emulator.removeFault(fault.id);
    const answer = await eventually(async () => {
      const later = await over(poll);
      return later.status === 200 && later;
    });
    expect(parseJsonBody(answer)).toHaveProperty('refresh_token');
    rememberSecrets([String(parseJsonBody(answer)['refresh_token'])]);
  });
});

describe('a refresh token of the hub', () => {
  it('a refresh token of the hub gets tokens repeatedly, stays the same, and outlives a crash of the hub', async () => {
    const { refresh, refreshToken } = await pairedByItself('heater');
    const expectToken = (answer: HubResponse) => {
      expect(answer.status).toBe(200);
      expectNoStore(answer);
      expect(parseJsonBody(answer)).toEqual({
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: expect.any(Number),
        refresh_token: refreshToken,
        scope: 'Monitoring',
      });
    };
    expectToken(await refresh());
    await hub.kill();
    await hub.launch();
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

  it.for(['refresh_token', 'access_token', 'nonsense'])(
    'a refresh token of the hub ends when its own appliance revokes it (token_type_hint %s), and no other can',
    async (token_type_hint) => {
      const { appliance, poll, refresh, refreshToken } = await pairedByItself(`fridge-${token_type_hint.slice(0, 3)}`);
      const stranger = await hub.addAppliance(`stranger-${token_type_hint.slice(0, 3)}`);
      const revoke = (by: CredentialsResponse) =>
        client.https('/oauth/revoke', {
          method: 'POST',
          headers: { authorization: basicAuthorization(by), 'content-type': FORM },
          body: new URLSearchParams({ token: refreshToken, token_type_hint }).toString(),
        });
      expect((await revoke(stranger)).status).toBe(200);
      expect((await refresh()).status).toBe(200);
      expect((await revoke(appliance)).status).toBe(200);
      expectError(await refresh(), 400, 'invalid_grant');
      expect((await revoke(appliance)).status).toBe(200);
      // The grant itself is as it was.
      const { refresh_token } = parseJsonBody(await over(poll));
      rememberSecrets([String(refresh_token)]);
      expect((await refresh({ refresh_token: String(refresh_token) })).status).toBe(200);
    },
  );

  it('a refresh token of the hub ends when a person disconnects the appliance', async () => {
    const { poll, refresh } = await pairedByItself('boiler');
    expect((await refresh()).status).toBe(200);
    await hub.ask((control) => control.unpair('boiler'));
    expectError(await refresh(), 400, 'invalid_grant');
    expectError(await over(poll), 400, 'invalid_grant');
    await hub.pair('boiler', emulator);
    expectError(await refresh(), 400, 'invalid_grant');
  });
});
