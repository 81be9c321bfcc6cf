import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { basicAuthorization, FORM, HubClient, parseJsonBody } from './hub-client.ts';
import { expectError, expectNoStore } from './oauth-error.ts';

const SCOPE = 'Monitoring RemoteControl';
const GRANT = { grant_type: 'client_credentials' };

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
/** Paired with a scope. */
let heater: CredentialsResponse;
/** Paired without a scope. */
let meter: CredentialsResponse;
/** Registered but not paired. */
let fan: CredentialsResponse;

const parts = setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
  heater = await hub.addAppliance('heater', SCOPE);
  meter = await hub.addAppliance('meter');
  fan = await hub.addAppliance('fan');
  await hub.pair('heater', emulator);
  await hub.pair('meter', emulator);
});

describe('an issued token', () => {
  it('the hub issues a token to an appliance that authenticates by client_secret_basic or client_secret_post', async () => {
    const { client_id, client_secret } = heater;
    for (const response of [
      await client.tokenFor(heater),
      await client.token({ ...GRANT, client_id, client_secret }),
    ]) {
      expect(response.status).toBe(200);
      expectNoStore(response);
      const body = parseJsonBody(response);
      expect(body).toEqual({
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: expect.any(Number),
        scope: SCOPE,
      });
      expect(emulator.secretsIssued('access_token')).toContain(body['access_token']);
      expect(emulator.secretsIssued('refresh_token').some((secret) => response.text.includes(secret))).toBe(false);
    }
  });

  it('the hub issues a token only for the scope of the grant, which the response names if there is one', async () => {
    const other = await client.tokenFor(heater, { scope: `${SCOPE} Everything` });
    expect(expectError(other, 400, 'invalid_scope')['error_description']).toContain(SCOPE);
    const any = await client.tokenFor(meter, { scope: 'Monitoring' });
    expect(expectError(any, 400, 'invalid_scope')['error_description']).toContain('no scope');
    const response = await client.tokenFor(meter);
    expect(response.status).toBe(200);
    expect(parseJsonBody(response)).not.toHaveProperty('scope');
  });

  it('the hub refuses a token before the appliance is paired, and names its page in error_uri', async () => {
    const body = expectError(await client.tokenFor(fan), 400, 'invalid_grant');
    expect(body['error_uri']).toBe(`https://127.0.0.1:${hub.httpsPort}/`);
    // The installer's page, which requires the setup code first.
    expect((await client.https(new URL(String(body['error_uri'])).pathname)).status).toBe(401);
  });
});

describe('failed client authentication', () => {
  let lastDevice = 1;
  /** A device without earlier failures: one with too many is throttled. */
  const newDevice = () => {
    lastDevice += 1;
    return parts.use(client.from(`127.0.0.${lastDevice}`));
  };
  const cases: [string, () => [form: Record<string, string>, authorization?: string]][] = [
    ['a wrong secret in the header', () => [GRANT, basicAuthorization({ ...heater, client_secret: 'wrong' })]],
    [
      'another appliance’s secret',
      () => [GRANT, basicAuthorization({ ...heater, client_secret: meter.client_secret })],
    ],
    ['an unknown client', () => [GRANT, basicAuthorization({ ...heater, client_id: crypto.randomUUID() })]],
    ['no secret', () => [{ ...GRANT, client_id: heater.client_id }]],
    ['no credentials', () => [GRANT]],
    ['a wrong secret in the form', () => [{ ...GRANT, client_id: heater.client_id, client_secret: 'wrong' }]],
    ['Basic that is no base64', () => [GRANT, 'Basic §§§']],
    ['Basic without a colon', () => [GRANT, `Basic ${Buffer.from(heater.client_id).toString('base64')}`]],
    ['Basic with a broken secret', () => [GRANT, basicAuthorization({ ...heater, client_secret: '%zz' })]],
    ['a bearer token', () => [GRANT, `Bearer ${heater.client_secret}`]],
    [
      'Basic with line breaks inside',
      () => [GRANT, basicAuthorization({ ...heater, client_secret: 'x\r\nx-injected: 1' })],
    ],
  ];
  it('a request with missing credentials learns which ones, and one with wrong credentials that they are wrong', async () => {
    const { client_id, client_secret } = heater;
    const told = async (form: Record<string, string>, headers = {}) =>
      expectError(await newDevice().token({ ...GRANT, ...form }, headers), 401, 'invalid_client')['error_description'];
    expect(await told({})).toContain('has no client_id and no client_secret: send client_id and client_secret');
    expect(await told({ client_id })).toContain('has no client_secret: send client_id and client_secret');
    expect(await told({ client_secret })).toContain('has no client_id: send client_id and client_secret');
    expect(await told({}, { authorization: `Bearer ${client_secret}` })).toContain('not that of HTTP Basic');
    expect(await told({ client_id, client_secret: 'wrong' })).toBe('the client_id or client_secret is wrong');
  });

  it('an appliance that asks with a wrong secret is shown with the number of its requests until it asks with the right one', async () => {
    const secrets = await hub.addAppliance('boiler');
    const stateOf = async () => {
      const { appliances, conditions } = await hub.status();
      const { refused } = appliances.find(({ name }) => name === 'boiler') ?? {};
      return {
        refused,
        severity: conditions.find(({ code, appliance }) => appliance === 'boiler' && code === 'appliance_refused')
          ?.severity,
      };
    };
    const device = newDevice();
    const ask = (secret: string) =>
      device.token({ ...GRANT, client_id: secrets.client_id, ...(secret !== '' && { client_secret: secret }) });
    await ask('wrong');
    const wrong = { count: 1, reason: 'the client_id or client_secret is wrong', since: expect.any(String) };
    expect(await stateOf()).toEqual({ refused: { ...wrong, address: expect.any(String) }, severity: 'info' });
    await ask('wrong');
    await ask('');
    expect(await stateOf()).toMatchObject({
      refused: { count: 3, reason: expect.stringContaining('no client_secret') },
      severity: 'warning',
    });
    await ask(secrets.client_secret);
    expect(await stateOf()).toEqual({ refused: undefined, severity: undefined });
    await ask('wrong');
    const { client_secret } = await hub.ask((control) =>
      control.request('rotateSecret', { name: 'boiler', replace_keys: false }),
    );
    rememberSecrets([client_secret]);
    expect((await stateOf()).refused).toBeUndefined();
  });

  it('the status says that an appliance with a key has sent a secret, and the response does not', async () => {
    const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
    const jwks = { keys: [await crypto.subtle.exportKey('jwk', pair.publicKey)] };
    const { token } = await hub.ask((control) =>
      control.request('invite', { name: 'solar', scope: null, portal: null, connection: null, ttl: 3600 }),
    );
    rememberSecrets([token]);
    const client_id = String((await client.register({ jwks }, token))['client_id']);
    const response = await newDevice().token({ ...GRANT, client_id, client_secret: 'wrong' });
    const { error_description } = expectError(response, 401, 'invalid_client');
    expect(error_description).toBe('the client_id or client_secret is wrong');
    const { appliances } = await hub.status();
    expect(appliances.find(({ name }) => name === 'solar')?.refused?.reason).toContain('authenticates with a key');
  });

  it.for(cases)('the token endpoint answers 401 invalid_client to %s', async ([, make]) => {
    const [form, authorization] = make();
    const headers = authorization === undefined ? {} : { authorization: Buffer.from(authorization).toString('latin1') };
    const response = await newDevice().token(form, headers);
    expectError(response, 401, 'invalid_client');
    expect(response.headers['www-authenticate']).toMatch(/^Basic realm="/);
    expect(response.headers).not.toHaveProperty('x-injected');
  });
});

describe('invalid token requests', () => {
  it.for([
    ['no grant type', '', 'invalid_request'],
    ['an unknown grant type', 'grant_type=authorization_code&code=x', 'unsupported_grant_type'],
    ['a repeated grant type', 'grant_type=client_credentials&grant_type=client_credentials', 'invalid_request'],
    ['a min_ttl that is none', 'grant_type=client_credentials&min_ttl=soon', 'invalid_request'],
    ['more than a day', 'grant_type=client_credentials&min_ttl=86401', 'invalid_request'],
    ['a grant type that every object has', 'grant_type=constructor', 'unsupported_grant_type'],
    ['no refresh token', 'grant_type=refresh_token', 'invalid_request'],
    ['an unknown refresh token', 'grant_type=refresh_token&refresh_token=x', 'invalid_grant'],
    [
      'an unknown device code',
      'grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=x',
      'invalid_grant',
    ],
    ['a repeated unknown parameter', 'grant_type=client_credentials&a=1&a=2', 'invalid_request'],
    ['a scope that injects a header', 'grant_type=client_credentials&scope=a%0d%0ax-injected:%201', 'invalid_scope'],
    ['another client_id in the form', 'grant_type=client_credentials&client_id=somebody', 'invalid_request'],
  ] as const)('the token endpoint answers an OAuth error to %s', async ([, form, error]) => {
    const response = await client.token(form, { authorization: basicAuthorization(heater) });
    expectError(response, 400, error);
    expect(response.headers).not.toHaveProperty('x-injected');
  });

  it('a token request may repeat its own client_id in the form beside the Authorization header', async () => {
    const form = { ...GRANT, client_id: heater.client_id, client_secret: '', resource: 'ignored' };
    expect((await client.token(form, { authorization: basicAuthorization(heater) })).status).toBe(200);
  });

  it.for([
    [{ 'content-type': 'application/json' }, '{"grant_type":"client_credentials"}'],
    [{ 'content-type': `${FORM}-not` }, 'grant_type=client_credentials'],
    [{}, 'grant_type=client_credentials'],
  ] as const)('the token endpoint names the required content type if the headers are %j', async ([headers, body]) => {
    const response = await client.https('/oauth/token', {
      method: 'POST',
      headers: { authorization: basicAuthorization(heater), ...headers },
      body,
    });
    expect(expectError(response, 400, 'invalid_request')['error_description']).toContain(FORM);
  });

  it('a token request may write the content type in any case and with a charset', async () => {
    const headers = {
      authorization: basicAuthorization(heater),
      'content-type': 'Application/X-WWW-Form-URLencoded; charset=UTF-8',
    };
    expect((await client.token(GRANT, headers)).status).toBe(200);
  });

  it.for(['content-length', 'chunked'])(
    'the token endpoint answers 413 to a body that is too large (%s)',
    async (framing) => {
      const body = `grant_type=client_credentials&x=${'x'.repeat(17_000)}`;
      const head = ['POST /oauth/token HTTP/1.1', 'host: localhost', `content-type: ${FORM}`];
      const response = await client.rawHttps(
        framing === 'chunked'
          ? `${[...head, 'transfer-encoding: chunked'].join('\r\n')}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
          : `${[...head, `content-length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`,
      );
      expect(response).toMatch(/^HTTP\/1.1 413 /);
      expect(response).toContain('"invalid_request"');
      expect(response).toContain('cache-control: no-store');
    },
  );

  it('the token endpoint exists only at its exact path and only over HTTPS', async () => {
    const question = {
      method: 'POST',
      headers: { authorization: basicAuthorization(heater), 'content-type': FORM },
    } as const;
    const body = 'grant_type=client_credentials';
    for (const path of ['/oauth/token/', '/oauth/tokens', '/OAuth/Token', '/'])
      expectError(await client.https(path, { ...question, body }), path === '/' ? 405 : 404, 'invalid_request');
    for (const path of ['/oauth/token', '/.well-known/oauth-authorization-server'])
      for (const method of ['GET', 'POST'] as const) {
        const response = await client.http(path, { ...question, method, ...(method === 'POST' && { body }) });
        const description = expectError(response, 404, 'invalid_request')['error_description'];
        expect(description).toContain(`HTTPS only: use https://127.0.0.1:${hub.httpsPort}${path}`);
      }
  });
});

describe('the authorization server metadata (RFC 8414)', () => {
  const METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'];
  const ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];

  it('the metadata names only endpoints and grant types that exist', async () => {
    const path = '/.well-known/oauth-authorization-server';
    const metadata = parseJsonBody(await client.https(path));
    for (const [name, value] of Object.entries(metadata)) {
      if (!name.endsWith('_endpoint') || name === 'authorization_endpoint') continue;
      const response = await client.https(new URL(String(value)).pathname, { method: 'GET' });
      expect(response, name).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    }
    for (const grant_type of metadata['grant_types_supported'] as string[]) {
      const response = await client.token({ grant_type }, { authorization: basicAuthorization(heater) });
      if (grant_type === 'client_credentials') expect(response.status).toBe(200);
      else expectError(response, 400, 'invalid_request');
    }
    expect(await client.https(path, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  });

  it('the metadata names the issuer and the endpoints with the host that the request used', async () => {
    const { id } = (await hub.status()).hub;
    for (const host of [`${id}.local:${hub.httpsPort}`, '[fd00::7]:1']) {
      const response = await client.https('/.well-known/oauth-authorization-server', { headers: { host } });
      expect(parseJsonBody(response), host).toEqual({
        issuer: `https://${host}`,
        authorization_endpoint: `https://${host}/oauth/authorize`,
        token_endpoint: `https://${host}/oauth/token`,
        device_authorization_endpoint: `https://${host}/oauth/device_authorization`,
        registration_endpoint: `https://${host}/oauth/register`,
        revocation_endpoint: `https://${host}/oauth/revoke`,
        grant_types_supported: ['client_credentials', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
        response_types_supported: ['none'],
        token_endpoint_auth_methods_supported: METHODS,
        token_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
        revocation_endpoint_auth_methods_supported: METHODS,
        revocation_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
      });
    }
  });
});
