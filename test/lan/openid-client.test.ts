// openid-client, unmodified: what docs/appliances.md shows of it. The other clients: test/release/lan.
import {
  ClientSecretBasic,
  type Configuration,
  type CustomFetch,
  clientCredentialsGrant,
  customFetch,
  type DiscoveryRequestOptions,
  discovery,
  dynamicClientRegistration,
  initiateDeviceAuthorization,
  PrivateKeyJwt,
  pollDeviceAuthorizationGrant,
  refreshTokenGrant,
  tokenRevocation,
} from 'openid-client';
import { Agent, fetch } from 'undici';
import { expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { whoami } from '../reliability/load.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { logIn } from './clients/device-login.ts';

const SCOPE = 'Monitoring RemoteControl';

let emulator: Emulator;
let hub: HubProcess;
let ca: string;
let issuer: URL;
/** A client that trusts only the hub's CA, as with NODE_EXTRA_CA_CERTS. */
let options: DiscoveryRequestOptions;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  ca = (await hub.authority()).certificate;
  const dispatcher = parts.adopt(new Agent({ connect: { ca } }), (agent) => agent.destroy());
  issuer = new URL(`https://127.0.0.1:${hub.httpsPort}`);
  const trusting = (...[url, init]: Parameters<typeof fetch>) => fetch(url, { ...init, dispatcher });
  options = { algorithm: 'oauth2', [customFetch]: trusting as unknown as CustomFetch };
});

// First, while the hub has not seen a portal that confirms its clock.
it('an appliance that registers while registration is open starts its device flow at once, with a key', async () => {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
  const { kty = '', crv = '', x = '', y = '' } = await crypto.subtle.exportKey('jwk', pair.publicKey);
  const client = await dynamicClientRegistration(
    issuer,
    { client_name: 'boiler', scope: SCOPE, jwks: { keys: [{ kty, crv, x, y }] } },
    PrivateKeyJwt(pair.privateKey),
    options,
  );
  await expect(clientCredentialsGrant(client)).rejects.toMatchObject({ error: 'unauthorized_client' });
  await hub.ask((control) => control.request('approveAppliance', { name: 'boiler' }));
  await expectPairedByItself(client);
});

it('an appliance with an invite and a client secret gets, refreshes and revokes tokens', async () => {
  const { token } = await hub.ask((control) =>
    control.request('invite', { name: 'heater', scope: SCOPE, portal: null, connection: null, ttl: 3600 }),
  );
  rememberSecrets([token]);
  const registered = await dynamicClientRegistration(issuer, { client_name: 'heater' }, undefined, {
    ...options,
    initialAccessToken: token,
  });
  const { client_id, client_secret = '' } = registered.clientMetadata();
  rememberSecrets([client_secret]);
  const client = await discovery(issuer, client_id, client_secret, ClientSecretBasic(client_secret), options);
  const { access_token } = await expectPairedByItself(client);
  await tokenRevocation(client, access_token);
  expect((await clientCredentialsGrant(client, { scope: SCOPE })).access_token).not.toBe(access_token);
});

/** Pairs with the device flow, and gets the token again in both other ways. */
async function expectPairedByItself(client: Configuration) {
  const prompt = await initiateDeviceAuthorization(client, { scope: SCOPE });
  const { user_code, verification_uri, verification_uri_complete = '' } = prompt;
  rememberSecrets([prompt.device_code]);
  await logIn({ user_code, verification_uri, verification_uri_complete }, emulator, ca);
  const paired = await pollDeviceAuthorizationGrant(client, { ...prompt, interval: 0 });
  const { refresh_token = '' } = paired;
  rememberSecrets([refresh_token]);
  for (const issued of [paired, await clientCredentialsGrant(client), await refreshTokenGrant(client, refresh_token)]) {
    expect(issued).toMatchObject({ access_token: paired.access_token, scope: SCOPE });
    expect(issued.expiresIn()).toSatisfy((seconds: number) => seconds > 3000 && seconds <= 3600);
  }
  expect(await whoami(emulator, paired.access_token)).toBe(200);
  return paired;
}
