import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as oauth from 'openid-client';
import { Agent, fetch } from 'undici';
import { afterAll, describe, expect, it } from 'vitest';
import type { ApplianceResponse, CredentialsResponse, StatusResponse } from '../../src/control/messages.ts';
import { DEVICE_CODE_GRANT_TYPE } from '../../src/lan/oauth/request-schemas.ts';
import { runLatchkey } from '../cli/command.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { basicAuthorization, HubClient, parseJsonBody } from './hub-client.ts';
import { expectError } from './oauth-error.ts';

const resources = new AsyncDisposableStack();
afterAll(() => resources.disposeAsync());
const emulator = resources.use(await startPortal());
const other = resources.use(await startPortal());
const hub = resources.use(await HubProcess.prepare({ emulator, here: true }));
await hub.addPortal(
  'away',
  {
    base_url: other.baseUrl,
    frontend_url: other.frontendUrl,
    client_id: other.clientId,
    client_secret_file: 'away.secret',
  },
  { 'away.secret': other.clientSecret },
);
await hub.addPortal('cloud', { preset: 'netatmo', client_id: 'x', client_secret_file: 'away.secret' });
await hub.launch();
const client = resources.use(await HubClient.of(hub));

const portals = { netatmo: emulator, tado: other, heating: emulator } as const;
for (const [name, portal] of Object.entries(portals))
  await hub.addConnection(name, 'Monitoring', portal === other ? 'away' : 'home');
const hass = await hub.json<CredentialsResponse>(
  ...['appliance', 'add', 'hass', '--connection', 'netatmo', '--connection', 'tado', '--connection', 'heating'],
);
rememberSecrets([hass.client_secret]);
await hub.addConnection('weather', null, 'cloud');
const wallbox = await hub.addAppliance('wallbox');
const meter = await hub.addAppliance('meter', null, null, 'netatmo');
await hub.pair('wallbox', emulator);
for (const [name, portal] of Object.entries(portals)) await hub.pair(name, portal);

const address = (name: string) => `https://127.0.0.1:${hub.httpsPort}/connections/${name}`;
/** The token that the hub issues for a connection. */
const tokenOf = async (name: string) => (await hub.json<{ access_token: string }>('token', name)).access_token;

/** A token request. @param form with `&resource=` as often as needed */
async function ask(of: CredentialsResponse, form: string, path = '/oauth/token'): Promise<unknown> {
  const response = await client.https(path, {
    method: 'POST',
    headers: { authorization: basicAuthorization(of), 'content-type': 'application/x-www-form-urlencoded' },
    body: `grant_type=client_credentials${form}`,
  });
  const { access_token, error, error_description } = parseJsonBody(response);
  return access_token ?? `${error}: ${error_description}`;
}
const post = (path: string, form: Record<string, string>) => client.post(path, form, hass);
const resource = (name: string) => `&resource=${encodeURIComponent(address(name))}`;
const statusOf = async (name: string) =>
  (await hub.json<StatusResponse>('status')).appliances.find((one) => one.name === name) as ApplianceResponse;

describe('an appliance that uses several connections', () => {
  it('it gets the token of each by its address, in a parameter or as an endpoint', async () => {
    for (const name of Object.keys(portals)) {
      const token = await tokenOf(name);
      expect(await ask(hass, resource(name))).toBe(token);
      expect(await ask(hass, '', `/connections/${name}/oauth/token`)).toBe(token);
      expect(await ask(hass, `${resource(name)}${resource(name)}&audience=a&audience=b`)).toBe(token);
    }
  });

  it('it learns which connections it uses, of which clouds and in which state, and nothing of others', async () => {
    const { id, name, version } = (await hub.status()).hub;
    const ofMeter = parseJsonBody(await client.post('/oauth/connections', {}, meter));
    const connection = { name: 'netatmo', title: 'netatmo', cloud: null, state: 'active' };
    expect(ofMeter).toEqual({ hub: { id, name, version }, connections: [connection] });
    await hub.json('appliance', 'move', 'meter', '--connection', 'netatmo', '--connection', 'weather');
    const { connections } = parseJsonBody(await client.post('/oauth/connections', {}, meter));
    const weather = { name: 'weather', title: 'weather', cloud: 'netatmo', state: 'unpaired' };
    expect(connections).toEqual([connection, weather]);
    await hub.json('appliance', 'move', 'meter', '--connection', 'netatmo');
    expectError(
      await client.post('/oauth/connections', {}, { ...meter, client_secret: 'wrong' }),
      401,
      'invalid_client',
    );
  });

  it('it is told which ones there are if it names none, another, or two', async () => {
    const choices = /invalid_target: .*\/connections\/netatmo or \/connections\/tado or \/connections\/heating/;
    for (const form of ['', resource('wallbox'), resource('nothing'), '&resource=https://api.example/'])
      expect(await ask(hass, form)).toMatch(choices);
    expect(await ask(hass, '', '/connections/wallbox/oauth/token')).toMatch(choices);
    expect(await ask(hass, resource('tado') + resource('netatmo'))).toMatch(/invalid_target: a token is for one/);
    expect(await ask(hass, resource('tado'), '/connections/netatmo/oauth/token')).toMatch(/^invalid_target/);
    expect(await ask(hass, `${resource('tado')}&scope=Other`)).toMatch(
      /grant of the connection tado of hass has scope Mon/,
    );
  });

  it('an appliance whose scope is ignored gets the token whatever it names, with the real scope', async () => {
    const add = ['appliance', 'add', 'fixed', '--connection', 'tado', '--ignore-scopes'];
    const fixed = await hub.json<CredentialsResponse>(...add);
    rememberSecrets([fixed.client_secret]);
    const form = { grant_type: 'client_credentials', scope: 'https://api.example/.default' };
    const response = parseJsonBody(await client.post('/oauth/token', form, fixed));
    expect(response).toMatchObject({ access_token: await tokenOf('tado'), scope: 'Monitoring' });
    expect(await statusOf('fixed')).toMatchObject({ ignores_scope: true });
    expectError(await client.post('/oauth/token', form, meter), 400, 'invalid_scope');
  });

  it('a user who may read its credentials gets its tokens from the command line, and no others', async () => {
    const file = join(hub.directory, 'hass.json');
    const write = (credentials: object) => writeFile(file, JSON.stringify(credentials), { mode: 0o600 });
    const token = (name: string) => hub.cli('token', name, '--credentials', file);
    const failed = (text: string) => ({ status: 1, stdout: '', stderr: expect.stringContaining(text) });
    await write(hass);
    expect(await token('tado')).toEqual({ status: 0, stdout: `${await tokenOf('tado')}\n`, stderr: '' });
    expect(await token('wallbox')).toEqual(failed('are for netatmo, tado and heating, and not for wallbox'));
    const refused = await tokenOf('heating');
    const replaced = await runLatchkey(['token', 'heating', '--credentials', file, '--rejected'], {}, `${refused}\n`);
    expect(replaced).toMatchObject({ status: 0, stdout: `${await tokenOf('heating')}\n`, stderr: '' });
    expect(replaced.stdout).not.toContain(refused);
    expect(await hub.cli('token', 'heating', '--credentials', file, '--min-ttl', '1d')).toMatchObject({ status: 0 });
    await chmod(file, 0o640);
    expect(await token('tado')).toEqual(failed('is open to other users'));
    await chmod(file, 0o600);
    await write({ ...hass, ca_fingerprint: wallbox.client_id });
    expect(await token('tado')).toEqual(failed('has another CA'));
    await write({ ...hass, token_endpoint: 'http://192.0.2.1:8480/oauth/token' });
    expect(await token('tado')).toEqual(failed('in the clear'));
    await write({ client_secret: hass.client_secret });
    expect(await token('tado')).toEqual(failed('"latchkey appliance add NAME --json" prints'));
  });

  it('the others get no token but their own', async () => {
    expect(await ask(wallbox, '')).toBe(await tokenOf('wallbox'));
    expect(await ask(wallbox, '&resource=https://api.portal.example/v1')).toBe(await tokenOf('wallbox'));
    expect(await ask(wallbox, '&resource=https://another-name.local/connections/tado')).toMatch(/^invalid_target/);
    for (const name of Object.keys(portals)) expect(await ask(wallbox, resource(name))).toMatch(/^invalid_target/);
    expect(await ask(meter, resource('netatmo'))).toBe(await tokenOf('netatmo'));
    expect(await ask(meter, resource('tado'))).toMatch(/^invalid_target/);
  });

  it('no way to write the address of a connection gets the token of another', async () => {
    const names = [
      'tado',
      'TADO',
      't%61do',
      'tado/',
      'tado//',
      './tado',
      'x/../tado',
      'netatmo/../tado',
      'tado?a',
      'tado#a',
    ];
    const others = [
      'tado%2f',
      'tado%00',
      'netatmo%2f..%2ftado',
      '..%2fconnections%2ftado',
      ' tado',
      'tado;netatmo',
      '*',
      '',
    ];
    const paths = [...names, ...others].map((name) => `/connections/${name}`);
    const origins = [`https://127.0.0.1:${hub.httpsPort}`, 'http://localhost', 'https://netatmo@other.example:1'];
    const foreign = await Promise.all(['tado', 'heating', 'wallbox'].map(tokenOf));
    const own = await tokenOf('netatmo');
    const answers = new Set<unknown>();
    for (const path of paths) {
      for (const origin of origins) answers.add(await ask(meter, `&resource=${encodeURIComponent(origin + path)}`));
      const two = `${resource('netatmo')}&resource=${encodeURIComponent(origins[0] + path)}`;
      answers.add(await ask(meter, two));
      answers.add(await ask(meter, '', `${path}/oauth/token`).catch(() => 'no answer'));
    }
    expect(foreign.filter((token) => answers.has(token))).toEqual([]);
    const errors = [...answers].filter((answer) => answer !== own);
    expect(
      errors.filter(
        (error) =>
          !/^(invalid_target: |invalid_request: (?:there is nothing|this address does not accept) |no answer$)/.test(
            String(error),
          ),
      ),
    ).toEqual([]);
  });

  it('it can be served by a stock client that knows only the address of a connection', async () => {
    const dispatcher = resources.adopt(new Agent({ connect: { ca: client.ca } }), (agent) => agent.destroy());
    const trusting = (...[url, init]: Parameters<typeof fetch>) => fetch(url, { ...init, dispatcher });
    const options = { [oauth.customFetch]: trusting as unknown as oauth.CustomFetch };
    const found = await oauth.discovery(
      new URL(address('tado')),
      hass.client_id,
      hass.client_secret,
      undefined,
      options,
    );
    expect((await oauth.clientCredentialsGrant(found)).access_token).toBe(await tokenOf('tado'));
    await oauth.tokenRevocation(found, await tokenOf('tado'));
    expect(other.observations.overlappingRefreshes).toBe(0);
    expect(await ask(hass, resource('tado'))).toBe(await tokenOf('tado'));
  });

  it('it begins a device flow for the connection that it names', async () => {
    const response = await client.https('/connections/heating/oauth/device_authorization', {
      method: 'POST',
      headers: { authorization: basicAuthorization(hass), 'content-type': 'application/x-www-form-urlencoded' },
      body: '',
    });
    const { device_code, verification_uri_complete } = parseJsonBody(response);
    rememberSecrets([String(device_code)]);
    const page = await client.https(`/pair${new URL(String(verification_uri_complete)).search}`);
    expect(page.text).toContain('heating');
  });

  it('its status is that of the login that most needs somebody, and all of its connections with their usage', async () => {
    const { usage = [], tokens, ...status } = await statusOf('hass');
    expect(status).toMatchObject({ state: 'active', connections: ['netatmo', 'tado', 'heating'] });
    expect(usage.map(({ connection }) => connection)).toEqual(status.connections);
    expect(usage.reduce((sum, each) => sum + each.tokens.today, 0)).toBe(tokens.today);
    expect(await statusOf('wallbox')).not.toHaveProperty('connections');
    await hub.cli('unpair', 'tado');
    expect(await statusOf('hass')).toMatchObject({ state: 'unpaired', connection: 'tado' });
    expect((await hub.cli('status')).stdout).toMatch(/^hass +unpaired .* tado +away *\n +netatmo *\n +heating *$/m);
    expect(await ask(hass, resource('netatmo'))).toBe(await tokenOf('netatmo'));
    expect(await ask(hass, resource('tado'))).toBe(
      'invalid_grant: the connection tado of hass is not paired with the portal',
    );
    expect(await ask(await hub.addAppliance('clock', null, null, 'weather'), '')).toBe(
      'invalid_grant: the connection weather of clock is not paired with the portal',
    );
    expect(await hub.cli('pair', 'hass')).toMatchObject({
      stderr: expect.stringContaining('uses the connections netatmo, tado and heating: name one of them instead'),
    });
  });

  it('what a device flow gets is for its connection alone, and lasts until that is unpaired', async () => {
    const begun = parseJsonBody(await post('/connections/tado/oauth/device_authorization', {}));
    await client.logIn(other, await client.enterCode(String(begun['user_code'])));
    const code = { grant_type: DEVICE_CODE_GRANT_TYPE, device_code: String(begun['device_code']) };
    const paired = await eventually(async () => {
      const response = parseJsonBody(await post('/oauth/token', code));
      return 'refresh_token' in response && response;
    });
    rememberSecrets([code.device_code, String(paired['refresh_token'])]);
    const tado = await tokenOf('tado');
    expect(paired).toMatchObject({ access_token: tado });
    const refresh = { grant_type: 'refresh_token', refresh_token: String(paired['refresh_token']) };
    for (const form of [code, refresh]) {
      expect(parseJsonBody(await post('/connections/tado/oauth/token', form))).toMatchObject({ access_token: tado });
      const foreign = [
        await post('/connections/netatmo/oauth/token', form),
        await post('/oauth/token', { ...form, resource: address('netatmo') }),
      ];
      for (const response of foreign) expectError(response, 400, 'invalid_target');
    }
    await hub.cli('unpair', 'netatmo');
    await hub.kill('SIGTERM');
    await hub.launch();
    expect(parseJsonBody(await post('/oauth/token', refresh))).toMatchObject({ access_token: tado });
    await hub.cli('unpair', 'tado');
    for (const [name, portal] of Object.entries(portals)) if (name !== 'heating') await hub.pair(name, portal);
    expectError(await post('/oauth/token', refresh), 400, 'invalid_grant');
  });

  it('it keeps them over a restart, loses one that is removed, and gets others by a move', async () => {
    await hub.kill('SIGTERM');
    await hub.launch();
    expect(await ask(hass, resource('tado'))).toBe(await tokenOf('tado'));
    expect(await hub.cli('connection', 'remove', 'tado', '--yes')).toMatchObject({ status: 0 });
    expect(await statusOf('hass')).toMatchObject({ connections: ['netatmo', 'heating'] });
    expect(await ask(hass, resource('tado'))).toMatch(/^invalid_target/);
    // One of the same name is another one.
    await hub.addConnection('tado', 'Monitoring', 'away');
    expect(await ask(hass, resource('tado'))).toMatch(/^invalid_target/);
    expect(await hub.cli('connection', 'remove', 'netatmo', '--yes')).toMatchObject({ status: 0 });
    expect(await statusOf('hass')).toMatchObject({ connection: 'heating' });
    expect(await ask(hass, '')).toBe(await tokenOf('heating'));
    const move = ['appliance', 'move', 'hass', '--connection', 'tado', '--connection', 'heating'];
    expect(await hub.cli(...move)).toMatchObject({ status: 0, stdout: expect.stringContaining('tado and heating') });
    expect(await ask(hass, '')).toMatch(/^invalid_target/);
  });
});
