// What clients hold when the hub is killed: one daemon with all of it, killed once.
import { expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { whoami } from '../reliability/load.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { basicAuthorization, FORM, HubClient, type HubResponse, parseJsonBody } from './hub-client.ts';
import { expectError } from './oauth-error.ts';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';

interface Flow {
  readonly path: string;
  readonly userCode: string;
  readonly deviceCode: string;
}

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let pump: CredentialsResponse;
let heater: CredentialsResponse;
let refreshToken: string;
let fan: CredentialsResponse;
let open: Flow;
/** The portal's state of the open flow's login, which somebody has begun. */
let begunLogin: string;
let signedOut: PageVisitor;
let signedIn: PageVisitor;
let setupCode: string;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator }));
  client = parts.use(await HubClient.of(hub));

  heater = await hub.addAppliance('heater', 'Monitoring');
  const flow = await begin(heater);
  await finishLogin(await beginLogin(flow));
  refreshToken = String(
    parseJsonBody(await token(heater, DEVICE_CODE, { device_code: flow.deviceCode }))['refresh_token'],
  );
  rememberSecrets([refreshToken]);

  fan = await hub.addAppliance('fan');
  open = await begin(fan);
  begunLogin = await beginLogin(open);

  await hub.ask((control) => control.openRegistration(600));
  signedOut = parts.use(await PageVisitor.signedIn(hub));
  setupCode = (await hub.setupCode({ rotate: true })).code;
  signedIn = parts.use(await PageVisitor.signedIn(hub));

  pump = await hub.addAppliance('pump');
  await hub.pair('pump', emulator);
  const rejected = parseJsonBody(await token(pump))['access_token'];
  emulator.addFault({ kind: 'status', endpoint: 'token', status: 503, times: null });
  await post('/oauth/revoke', { token: String(rejected) }, pump);

  await hub.kill();
  await hub.launch();
});

function post(path: string, form: Record<string, string>, by?: CredentialsResponse): Promise<HubResponse> {
  const headers = { 'content-type': FORM, ...(by && { authorization: basicAuthorization(by) }) };
  return client.https(path, { method: 'POST', headers, body: new URLSearchParams(form).toString() });
}

function token(by: CredentialsResponse, grant_type = 'client_credentials', form: Record<string, string> = {}) {
  return post('/oauth/token', { grant_type, ...form }, by);
}

async function begin(appliance: CredentialsResponse): Promise<Flow> {
  const response = parseJsonBody(await post('/oauth/device_authorization', {}, appliance));
  rememberSecrets([String(response['device_code'])]);
  const { pathname, search } = new URL(String(response['verification_uri_complete']));
  return {
    path: pathname + search,
    userCode: String(response['user_code']),
    deviceCode: String(response['device_code']),
  };
}

async function beginLogin({ userCode }: Flow): Promise<string> {
  const { headers } = await post('/pair', { user_code: userCode });
  return new URL(String(headers['location'])).searchParams.get('state') ?? '';
}

async function finishLogin(state: string): Promise<HubResponse> {
  const { pathname, search } = new URL((await emulator.login({ state, user: 'demo' })).location);
  return client.http(pathname + search);
}

it('a token that the cloud API rejected is not issued after a crash of the hub', async () => {
  expectError(await token(pump), 503, 'temporarily_unavailable');
  expect(await hub.appliance('pump')).toMatchObject({ state: 'retrying', expires_in: 0 });
  await emulator.clearFaults();
  // A refresh that is asked for joins one that is in flight, which may have met the fault.
  await eventually(async () => (await hub.ask((control) => control.refresh('pump'))).state === 'active');
  expect(await whoami(emulator, String(parseJsonBody(await token(pump))['access_token']))).toBe(200);
});

it('a refresh token of the hub outlives a crash of the hub', async () => {
  const response = await token(heater, 'refresh_token', { refresh_token: refreshToken });
  expect({ status: response.status, ...parseJsonBody(response) }).toMatchObject({
    status: 200,
    refresh_token: refreshToken,
  });
});

it("a device flow succeeds when the hub crashes between the person's steps", async () => {
  expect((await client.https(open.path)).text).toContain('Connect fan?');
  expect((await finishLogin(begunLogin)).text).toContain('fan is connected');
  expect((await client.https(open.path)).text).toContain('fan is connected');
  expect((await token(fan)).status).toBe(200);
});

it('open registration is closed after a crash of the hub', async () => {
  await expect(client.register({ client_name: 'late' })).rejects.toThrow(/401.*registration is closed/);
});

it('the sessions of the page and the setup code are the same after a crash of the hub', async () => {
  expect(await signedIn.isSignedIn()).toBe(true);
  expect(await signedOut.isSignedIn()).toBe(false);
  expect((await hub.setupCode()).code).toBe(setupCode);
});
