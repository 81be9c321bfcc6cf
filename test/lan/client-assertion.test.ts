import { createHmac, createPublicKey, type JsonWebKey } from 'node:crypto';
import { base64url, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PublicJwk } from '../../src/core/appliances/appliance.ts';
import { AssertionReplayCache } from '../../src/lan/oauth/assertion-replay-cache.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { createAgent } from '../support/agent.ts';
import { HUB_NAME, LanServerHarness } from '../support/lan-server-harness.ts';

const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const ID = 'boiler';
const ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const;

const NOW = Date.UTC(2027, 4, 6, 7, 8, 9);

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

let pair: KeyPair;
let other: KeyPair;
let rsa: KeyPair;
let jwk: PublicJwk;
const used = new AssertionReplayCache();
let side: LanServerHarness;
let issuer: string;
let number = 0;

beforeAll(async () => {
  [pair, other, rsa] = await Promise.all([
    generateKeyPair('ES256'),
    generateKeyPair('ES256'),
    generateKeyPair('RS256'),
  ]);
  jwk = { ...(await exportJWK(pair.publicKey)) };
  side = await LanServerHarness.start(['127.0.0.1'], { usedAssertions: used });
  issuer = `https://127.0.0.1:${side.server.httpsPort}`;
});

beforeEach(() => {
  const { home } = side;
  Object.assign(home, { now: NOW, started: NOW - 3_600_000, other: null, whenAsked: () => undefined });
  home.newcomers.clear();
  // Earlier failures no longer count.
  home.uptime += 3_600_000;
  home.add(ID, { kind: 'keys', keys: [jwk] });
});

afterAll(() => side[Symbol.asyncDispose]());

/** The hub's confirmed time, in s. */
function now(): number {
  return (side.home.now ?? 0) / 1000;
}

/** Valid claims with these changes; undefined omits one. */
function claims(changes: Record<string, unknown> = {}): JWTPayload {
  const merged = { iss: ID, sub: ID, aud: issuer, iat: now(), exp: now() + 60, jti: `jti-${number++}`, ...changes };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}

function sign(payload: JWTPayload = claims(), key = pair.privateKey, header: object = {}): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', ...header }).sign(key);
}

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly error: unknown;
  readonly description: string;
}

async function ask(
  form: Record<string, string>,
  headers: Record<string, string> = {},
  path = '/oauth/token',
): Promise<Reply> {
  const response = await request(`${issuer}${path}`, {
    method: 'POST',
    dispatcher: side.agent,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...form }).toString(),
  });
  const body = (await response.body.json()) as Record<string, unknown>;
  expect(response.headers['cache-control']).toBe('no-store');
  return {
    status: response.statusCode,
    headers: response.headers,
    error: body['error'],
    description: String(body['error_description'] ?? ''),
  };
}

function assert(assertion: string, more: Record<string, string> = {}): Promise<Reply> {
  return ask({ client_assertion_type: TYPE, client_assertion: assertion, ...more });
}

function expectRefused(reply: Reply, description = /./): void {
  expect(reply).toMatchObject({ status: 401, error: 'invalid_client' });
  expect(reply.description).toMatch(description);
  // RFC 9110, 15.5.2: every 401 has this header.
  expect(reply.headers['www-authenticate']).toMatch(/^Basic realm="latchkey"/);
}

describe('accepted assertions', () => {
  it.for(ALGORITHMS)('the token endpoint accepts an assertion signed with %s', async (alg) => {
    const keys = await generateKeyPair(alg);
    side.home.add('mixer', { kind: 'keys', keys: [{ ...(await exportJWK(keys.publicKey)) }] });
    const assertion = await new SignJWT(claims({ iss: 'mixer', sub: 'mixer' }))
      .setProtectedHeader({ alg })
      .sign(keys.privateKey);
    expect(await assert(assertion)).toMatchObject({ status: 200 });
  });

  it('the token endpoint accepts the issuer, its own address, a list with one of them, or the Host as the audience', async () => {
    for (const aud of [issuer, `${issuer}/oauth/token`, ['https://other.example', issuer]]) {
      expect(await assert(await sign(claims({ aud })))).toMatchObject({ status: 200 });
    }
    const host = `${HUB_NAME}:1234`;
    const assertion = await sign(claims({ aud: `https://${host}` }));
    const form = { client_assertion_type: TYPE, client_assertion: assertion };
    expect(await ask(form, { host })).toMatchObject({ status: 200 });
  });

  it('the endpoints of a connection accept its issuer and its token endpoint as the audience, and no other', async () => {
    const form = async (aud: string) => ({
      client_assertion_type: TYPE,
      client_assertion: await sign(claims({ aud })),
      token: 'a token of nobody',
    });
    for (const endpoint of ['token', 'revoke'])
      for (const aud of [issuer, `${issuer}/connections/tado`, `${issuer}/connections/tado/oauth/token`])
        expect(await ask(await form(aud), {}, `/connections/tado/oauth/${endpoint}`)).toMatchObject({ status: 200 });
    const other = await ask(await form(`${issuer}/connections/netatmo`), {}, '/connections/tado/oauth/token');
    expectRefused(other, /connections\/tado,/);
  });

  it('the token endpoint accepts an assertion with a client_id, a kid, one of several keys, or fractions of a second', async () => {
    expect(await assert(await sign(), { client_id: ID })).toMatchObject({ status: 200 });
    const second = { ...(await exportJWK(other.publicKey)) };
    side.home.add(ID, { kind: 'keys', keys: [jwk, second] });
    for (const key of [pair.privateKey, other.privateKey]) {
      expect(await assert(await sign(claims(), key))).toMatchObject({ status: 200 });
    }
    side.home.add(ID, {
      kind: 'keys',
      keys: [
        { ...jwk, kid: 'a' },
        { ...second, kid: 'b' },
      ],
    });
    expect(await assert(await sign(claims(), other.privateKey, { kid: 'b' }))).toMatchObject({ status: 200 });
    expectRefused(await assert(await sign(claims(), other.privateKey, { kid: 'a' })), /key/);
    expect(await assert(await sign(claims({ iat: now() + 0.25, exp: now() + 59.5 })))).toMatchObject({ status: 200 });
  });

  it('the token endpoint accepts an assertion from a clock that is off by up to 29 seconds, or without an iat', async () => {
    const offsets = [-29, 29].map((off) => ({ iat: now() + off, nbf: now() + off, exp: now() + off + 60 }));
    for (const times of [...offsets, { iat: undefined, exp: now() + 89 }]) {
      expect(await assert(await sign(claims(times)))).toMatchObject({ status: 200 });
    }
  });
});

describe('refused assertions', () => {
  it.for<[string, () => Record<string, unknown>, RegExp]>([
    ['that has expired', () => ({ iat: now() - 91, exp: now() - 31 }), /expired/],
    ['without an exp', () => ({ exp: undefined }), /exp/],
    ['that lives for more than a minute', () => ({ exp: now() + 61 }), /60 s/],
    ['that lives for more than a minute, without an iat', () => ({ iat: undefined, exp: now() + 91 }), /60 s/],
    ['that lives for ever', () => ({ exp: 9e15 }), /60 s/],
    ['from the future', () => ({ iat: now() + 31, exp: now() + 80 }), /31 s ahead/],
    ['not good yet', () => ({ nbf: now() + 31 }), /not valid yet/],
    ['without a jti', () => ({ jti: undefined }), /jti/],
    ['with an empty jti', () => ({ jti: '' }), /jti/],
    ['without an audience', () => ({ aud: undefined }), /aud/],
    ['for somebody else', () => ({ aud: 'https://portal.example' }), /aud .* must be one of https:/],
    ['from another issuer', () => ({ iss: 'somebody' }), /iss/],
    ['without a subject', () => ({ sub: undefined }), /not a signed JWT/],
    ['whose exp is a text', () => ({ exp: '2999' }), /exp/],
  ])('the token endpoint refuses an assertion %s', async ([, changes, description]) => {
    expectRefused(await assert(await sign(claims(changes()))), description);
  });

  it('a wrong signature, an unknown appliance and an appliance with a secret get the same error description', async () => {
    side.home.add('lamp', { kind: 'secret', hash: sha256('the-secret') });
    side.home.add('rsa', { kind: 'keys', keys: [{ ...(await exportJWK(rsa.publicKey)), alg: 'RS512' }] });
    const replies = [
      await assert(await sign(claims(), other.privateKey)),
      await assert(await sign(claims({ iss: 'rsa', sub: 'rsa' }))),
      await assert(await sign(claims({ iss: 'ghost', sub: 'ghost' }))),
      await assert(await sign(claims({ iss: 'lamp', sub: 'lamp' }))),
    ];
    for (const reply of replies) expectRefused(reply);
    expect(new Set(replies.map(({ description }) => description)).size).toBe(1);
  });

  it('the token endpoint refuses an assertion whose claims were changed after signing', async () => {
    const [header, , signature] = (await sign()).split('.');
    const changed = base64url.encode(JSON.stringify(claims({ exp: now() + 50 })));
    expectRefused(await assert(`${header}.${changed}.${signature}`), /not signed with the key/);
  });

  it('the token endpoint refuses an unsigned assertion (alg none)', async () => {
    for (const alg of ['none', 'NONE']) {
      const [header, payload] = [{ alg }, claims()].map((part) => base64url.encode(JSON.stringify(part)));
      expectRefused(await assert(`${header}.${payload}.`), /sign the/);
    }
  });

  it("the token endpoint refuses an assertion whose HMAC is made with the appliance's public key", async () => {
    const rsaJwk = { ...(await exportJWK(rsa.publicKey)) };
    side.home.add('pump', { kind: 'keys', keys: [rsaJwk] });
    const publicKey = createPublicKey({ key: rsaJwk as JsonWebKey, format: 'jwk' });
    const body = `${base64url.encode(JSON.stringify({ alg: 'HS256' }))}.${base64url.encode(
      JSON.stringify(claims({ iss: 'pump', sub: 'pump' })),
    )}`;
    for (const secret of [publicKey.export({ type: 'spki', format: 'pem' }), JSON.stringify(rsaJwk)]) {
      const mac = createHmac('sha256', secret).update(body).digest('base64url');
      expectRefused(await assert(`${body}.${mac}`), /sign the client_assertion with ES256/);
    }
  });

  it('the token endpoint refuses an assertion with an algorithm that it does not offer, although the key would fit', async () => {
    const keys = await generateKeyPair('RS512');
    side.home.add('pump', { kind: 'keys', keys: [{ ...(await exportJWK(keys.publicKey)) }] });
    const assertion = await new SignJWT(claims({ iss: 'pump', sub: 'pump' }))
      .setProtectedHeader({ alg: 'RS512' })
      .sign(keys.privateKey);
    expectRefused(await assert(assertion), /sign the/);
  });

  it('the token endpoint refuses an assertion with a critical header parameter that it does not know', async () => {
    const header = { alg: 'ES256', crit: ['exp'], exp: 1 };
    const assertion = await new SignJWT(claims())
      .setProtectedHeader(header)
      .sign(pair.privateKey, { crit: { exp: true } });
    expectRefused(await assert(assertion));
  });

  it('the token endpoint refuses an assertion that is not a signed JWT', async () => {
    const list = ['eyJhbGciOiJFUzI1NiJ9.W10.AA', '{"alg":"ES256"}', 'e30.e30.', `${'x'.repeat(9000)}.e30.e30`];
    for (const assertion of ['x', 'a.b.c', '..', ...list]) {
      side.home.uptime += 6000;
      expectRefused(await assert(assertion), /not a signed JWT/);
    }
  });

  it('the token endpoint refuses another client_assertion_type', async () => {
    const form = { client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer' };
    expectRefused(await ask({ ...form, client_assertion: await sign() }), /client_assertion_type/);
  });
});

describe('the replay protection of assertions', () => {
  it('the token endpoint refuses an assertion that was used before, until it has expired', async () => {
    const assertion = await sign();
    expect(await assert(assertion)).toMatchObject({ status: 200 });
    expectRefused(await assert(assertion), /used before/);
    side.home.now = (side.home.now ?? 0) + 89_000;
    expectRefused(await assert(assertion), /used before/);
    side.home.now += 2000;
    expectRefused(await assert(assertion), /expired/);
  });

  it('the token endpoint accepts one of twenty requests that arrive at once with the same assertion', async () => {
    const assertion = await sign();
    const replies = await Promise.all(Array.from({ length: 20 }, () => assert(assertion)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it('the token endpoint accepts the same jti from two appliances', async () => {
    side.home.add('mixer', { kind: 'keys', keys: [jwk] });
    for (const sub of [ID, 'mixer']) {
      expect(await assert(await sign(claims({ iss: sub, sub, jti: 'same' })))).toMatchObject({ status: 200 });
    }
  });

  it('after a restart the token endpoint answers 503 to an assertion that may date from before, even one dated ahead', async () => {
    side.home.started = side.home.now ?? 0;
    const ahead = await sign(claims({ iat: now() + 28, exp: now() + 88 }));
    for (const passed of [0, 5000, 24_000]) {
      side.home.now = side.home.started + passed;
      const old = await assert(ahead);
      expect(old).toMatchObject({ status: 503, error: 'temporarily_unavailable', headers: { 'retry-after': '2' } });
      expect(old.description).toContain('sign a new one');
    }
    side.home.now = side.home.started + 10_000;
    expect(await assert(await sign())).toMatchObject({ status: 503, headers: { 'retry-after': '20' } });
    const withoutIat = await assert(await sign(claims({ iat: undefined, exp: now() + 50 })));
    expect(withoutIat).toMatchObject({ status: 503, headers: { 'retry-after': '30' } });
    side.home.now = side.home.started + 30_000;
    expect(await assert(await sign())).toMatchObject({ status: 200 });
  });

  it('after a restart the token endpoint accepts an assertion from an appliance that registered after it', async () => {
    side.home.started = side.home.now ?? 0;
    side.home.newcomers.add(ID);
    expect(await assert(await sign())).toMatchObject({ status: 200 });
  });

  it('an appliance that sends more assertions than the hub can remember gets 503, and other appliances are served', async () => {
    const busy = side.home.add('busy', { kind: 'keys', keys: [jwk] });
    side.home.add('mixer', { kind: 'keys', keys: [jwk] });
    const own = (sub: string) => sign(claims({ iss: sub, sub }));
    for (let count = 0; count < 990; count++) used.recordUse(busy.id, `earlier-${count}`, NOW + 90_000, NOW);
    const replies: Reply[] = [];
    for (let count = 0; count < 12; count++) replies.push(await assert(await own('busy')));
    expect(replies.map(({ status }) => status)).toEqual([...Array(10).fill(200), 503, 503]);
    expect(replies.at(-1)).toMatchObject({ error: 'temporarily_unavailable' });
    expect(Number(replies.at(-1)?.headers['retry-after'])).toBeGreaterThan(0);
    expect(await assert(await own('mixer'))).toMatchObject({ status: 200 });
    side.home.now = NOW + 91_000;
    expect(await assert(await own('busy'))).toMatchObject({ status: 200 });
  });
});

describe('assertions and two clocks that differ', () => {
  it.for([150_000, -150_000])(
    'the token endpoint accepts an assertion once if either of two clocks that differ by %i ms permits it',
    async (off) => {
      side.home.other = (side.home.now ?? 0) + off;
      const byOther = claims({ iat: now() + off / 1000, exp: now() + off / 1000 + 60 });
      for (const payload of [claims(), byOther, claims({ iat: undefined }), claims({ ...byOther, iat: undefined })]) {
        const assertion = await sign({ ...payload, jti: crypto.randomUUID() });
        expect(await assert(assertion)).toMatchObject({ status: 200 });
        expectRefused(await assert(assertion), /used before/);
      }
      expectRefused(await assert(await sign(claims({ iat: now() - 400, exp: now() - 350 }))), /expired/);
      expectRefused(await assert(await sign(claims({ iat: now() + 400, exp: now() + 450 }))), /ahead/);
    },
  );
});

describe('assertions in requests to an IP address', () => {
  const requestAtHost = async (host: string) => {
    const assertion = await sign(claims({ aud: `https://${host}/oauth/token` }));
    return ask({ client_assertion_type: TYPE, client_assertion: assertion }, { host });
  };

  it("the token endpoint refuses an assertion in a request to an address that may not be the hub's", async () => {
    for (const host of ['203.0.113.9:9999', '[2001:db8::1]']) {
      expectRefused(await requestAtHost(host), /not a known address of this hub.*use its host name/);
    }
  });

  it('the token endpoint accepts an assertion for an address of the certificate or of the connection', async () => {
    expect(await requestAtHost('127.0.0.2:9999')).toMatchObject({ status: 200 });
    await using elsewhere = await LanServerHarness.start(['127.0.0.9']);
    elsewhere.home.add(ID, { kind: 'keys', keys: [jwk] });
    const other = `https://127.0.0.9:${elsewhere.server.httpsPort}`;
    const dispatcher = createAgent({ connect: { ca: elsewhere.ca, checkServerIdentity: () => undefined } });
    const form = { client_assertion_type: TYPE, client_assertion: await sign(claims({ aud: other })) };
    const response = await request(`${other}/oauth/token`, {
      method: 'POST',
      dispatcher,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...form }).toString(),
    });
    await response.body.dump();
    await dispatcher.destroy();
    expect(response.statusCode).toBe(200);
  });
});

describe('assertions without a confirmed clock', () => {
  it('until the time that it asks for is known, the token endpoint answers 503 to an assertion, and accepts secrets', async () => {
    const [assertion, time] = [await sign(), side.home.now];
    side.home.now = null;
    const reply = await assert(assertion);
    expect(reply).toMatchObject({ status: 503, error: 'temporarily_unavailable', headers: { 'retry-after': '30' } });
    side.home.add('lamp', { kind: 'secret', hash: sha256('the-secret') });
    expect(await ask({ client_id: 'lamp', client_secret: 'the-secret' })).toMatchObject({ status: 200 });
    side.home.whenAsked = () => {
      side.home.now = time;
    };
    expect(await assert(assertion)).toMatchObject({ status: 200 });
  });
});

describe('requests with several credentials or with none', () => {
  it('the token endpoint answers 400 to credentials that differ or are of two kinds, and to an incomplete or foreign assertion', async () => {
    side.home.add('lamp', { kind: 'secret', hash: sha256('the-secret') });
    const header = { authorization: `Basic ${btoa('lamp:the-secret')}` };
    const secret = { client_id: 'lamp', client_secret: 'the-secret' };
    const client_assertion = await sign();
    const assertion = { client_assertion_type: TYPE, client_assertion };
    for (const reply of [
      await ask({ ...secret, client_secret: 'another' }, header),
      await ask(assertion, header),
      await ask({ ...assertion, client_secret: 'x' }),
      await ask(assertion, { authorization: 'Bearer x' }),
      await ask({ client_assertion }),
      await ask({ client_assertion_type: TYPE }),
      await ask({ ...assertion, client_id: 'lamp' }),
    ])
      expect(reply).toMatchObject({ status: 400, error: 'invalid_request' });
    expect(await ask(secret, header)).toMatchObject({ status: 200 });
  });

  it('the token endpoint accepts no secret for an appliance with keys, not even its public key', async () => {
    for (const client_secret of ['', JSON.stringify(jwk)]) {
      expect(await ask({ client_id: ID, client_secret })).toMatchObject({ status: 401, error: 'invalid_client' });
    }
  });

  it('the token endpoint accepts neither a secret nor an assertion for an appliance without credentials', async () => {
    side.home.add('old', { kind: 'none' });
    expect(await ask({ client_id: 'old', client_secret: 'x' })).toMatchObject({ status: 401 });
    expectRefused(await assert(await sign(claims({ iss: 'old', sub: 'old' }))));
  });
});
