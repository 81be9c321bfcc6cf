import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { FORM, HubClient, parseJsonBody } from './hub-client.ts';

test('the first appliance of a new hub can start its device flow at once with a key instead of a secret', async () => {
  await using emulator = await startEmulator();
  await using hub = await HubProcess.start({ emulator, here: true });
  await using client = await HubClient.of(hub);
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  await hub.ask((control) => control.openRegistration(600));
  const registered = await client.register({
    client_name: 'boiler',
    jwks: { keys: [await exportJWK(publicKey)] },
  });
  await hub.ask((control) => control.approveAppliance('boiler', null));
  const id = String(registered['client_id']);
  const assertion = await new SignJWT({ jti: 'one' })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer(id)
    .setSubject(id)
    .setAudience(`https://127.0.0.1:${hub.httpsPort}`)
    .setIssuedAt()
    .setExpirationTime('50s')
    .sign(privateKey);
  const response = await client.https('/oauth/device_authorization', {
    method: 'POST',
    headers: { 'content-type': FORM },
    body: new URLSearchParams({
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    }).toString(),
  });
  expect(response).toMatchObject({ status: 200 });
  rememberSecrets([String(parseJsonBody(response)['device_code'])]);
});
