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
import { type DeviceFlow, HubClient, parseJsonBody } from './hub-client.ts';
import { expectError } from './oauth-error.ts';

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let pump: CredentialsResponse;
let heater: CredentialsResponse;
let refreshToken: string;
let fan: CredentialsResponse;
let open: DeviceFlow;
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
  const flow = await client.beginDeviceFlow(heater);
  await client.logIn(emulator, await client.enterCode(flow.userCode));
  refreshToken = String(parseJsonBody(await client.poll(heater, flow.deviceCode))['refresh_token']);
  rememberSecrets([refreshToken]);

  fan = await hub.addAppliance('fan');
  open = await client.beginDeviceFlow(fan);
  begunLogin = await client.enterCode(open.userCode);

  await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
  signedOut = parts.use(await PageVisitor.signedIn(hub));
  setupCode = (await hub.setupCode({ rotate: true })).code;
  signedIn = parts.use(await PageVisitor.signedIn(hub));

  pump = await hub.addAppliance('pump');
  await hub.pair('pump', emulator);
  const rejected = parseJsonBody(await client.tokenFor(pump))['access_token'];
  emulator.addFault({ kind: 'status', endpoint: 'token', status: 503, times: null });
  await client.post('/oauth/revoke', { token: String(rejected) }, pump);

  await hub.kill();
  await hub.launch();
});

it('a token that the cloud API rejected is not issued after a crash of the hub', async () => {
  expectError(await client.tokenFor(pump), 503, 'temporarily_unavailable');
  expect(await hub.appliance('pump')).toMatchObject({ state: 'retrying', expires_in: 0 });
  await emulator.clearFaults();
  // A refresh that is asked for joins one that is in flight, which may have met the fault.
  await eventually(
    async () => (await hub.ask((control) => control.request('refresh', { name: 'pump' }))).state === 'active',
  );
  expect(await whoami(emulator, String(parseJsonBody(await client.tokenFor(pump))['access_token']))).toBe(200);
});

it('a refresh token of the hub outlives a crash of the hub', async () => {
  const response = await client.tokenFor(heater, { grant_type: 'refresh_token', refresh_token: refreshToken });
  expect({ status: response.status, ...parseJsonBody(response) }).toMatchObject({
    status: 200,
    refresh_token: refreshToken,
  });
});

it("a device flow succeeds when the hub crashes between the person's steps", async () => {
  expect((await client.https(open.path)).text).toContain('Connect fan?');
  expect((await client.logIn(emulator, begunLogin)).text).toContain('fan is connected');
  expect((await client.https(open.path)).text).toContain('fan is connected');
  expect((await client.tokenFor(fan)).status).toBe(200);
});

it('open registration is closed after a crash of the hub', async () => {
  await expect(client.register({ client_name: 'late' })).rejects.toThrow(/401.*registration is closed/);
});

it('the sessions of the page and the setup code are the same after a crash of the hub', async () => {
  expect(await signedIn.isSignedIn()).toBe(true);
  expect(await signedOut.isSignedIn()).toBe(false);
  expect((await hub.setupCode()).code).toBe(setupCode);
});
