import diagnostics from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FastifyInstance, fastify } from 'fastify';
import { describe, expect, test } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { openApiDocument, operations } from '../../src/emulator/openapi/document.ts';
import { version } from '../../src/system/version.ts';
import { root } from '../project/checkout.ts';
import { ALICE, config, exchange, get, HEATER, obtainTokens, post, refresh, start, stateOf } from './portal-client.ts';

interface Media {
  readonly schema?: Record<string, unknown>;
}

interface Description {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Media>> }>>;
}

interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Description>>>>;
}

/** An emulator, and the paths of the routes that its servers got. */
async function startWithRoutes(): Promise<{ emulator: Emulator; routes: Set<string> }> {
  const routes = new Set<string>();
  const watch = (message: unknown) => {
    const { fastify: app } = message as { fastify: FastifyInstance };
    app.addHook('onRoute', (route) => {
      routes.add(route.url.replaceAll(/:(\w+)/g, '{$1}'));
    });
  };
  diagnostics.subscribe('fastify.initialization', watch);
  const emulator = await start();
  diagnostics.unsubscribe('fastify.initialization', watch);
  return { emulator, routes };
}

test('docs/openapi-emulator.json is what the schemas give now (else: scripts/openapi)', () => {
  const origins = { base: 'http://127.0.0.1:8080', frontend: 'http://127.0.0.1:8081' };
  const written: unknown = JSON.parse(readFileSync(join(root, 'docs/openapi-emulator.json'), 'utf8'));
  expect(openApiDocument(origins, version())).toEqual(written);
});

test('every route of the running emulator is described, and nothing else', async () => {
  const { emulator, routes } = await startWithRoutes();
  await using _ = emulator;
  const described = new Set(operations.map(({ path }) => path));
  expect([...routes].sort()).toEqual([...described].sort());
  for (const path of described) {
    const [first] = operations.filter((operation) => operation.path === path);
    const origin = first?.origin === 'frontend' ? emulator.frontendUrl : emulator.baseUrl;
    const answer = await fetch(origin + path.replaceAll(/[{}]/g, ''), { method: 'OPTIONS' });
    const methods = operations.filter((operation) => operation.path === path).map(({ method }) => method.toUpperCase());
    const allowed = (answer.headers.get('allow') ?? '').split(', ').filter((method) => method !== 'HEAD');
    expect([answer.status, allowed.sort()], path).toEqual([405, methods.sort()]);
  }
});

test('the running emulator gives its description, with its own addresses', async () => {
  await using emulator = await start();
  const answer = await get(`${emulator.consoleUrl}openapi.json`);
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  const document = (await answer.json()) as Document;
  expect(document).toEqual(openApiDocument({ base: emulator.baseUrl, frontend: emulator.frontendUrl }, version()));
  expect(document.servers).toEqual([{ url: emulator.baseUrl, description: '{base_url}' }]);
  expect(document.paths['/sso/token']?.['servers']).toMatchObject([{ url: emulator.frontendUrl }]);
});

describe('real answers are as described:', () => {
  const document = openApiDocument(
    { base: 'http://base', frontend: 'http://frontend' },
    version(),
  ) as unknown as Document;
  // Fastify's own validator, told not to bend what it is given.
  const validator = fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  });
  validator.post('/', async (request) => {
    const { schema, body } = request.body as { schema: Record<string, unknown>; body: unknown };
    return [request.compileValidationSchema(schema)(body)];
  });

  /** Sends a request and says how the answer differs from the description; empty where it does not. */
  async function check(path: string, method: string, answer: Response): Promise<string> {
    const described = document.paths[path]?.[method]?.responses[answer.status];
    if (described === undefined) return `${method} ${path} answered ${answer.status}, which is not described`;
    const [[type, media] = ['', {}]] = Object.entries(described.content ?? {});
    const text = await answer.text();
    if (!(answer.headers.get('content-type') ?? '').startsWith(type)) return `${answer.headers.get('content-type')}`;
    if (media.schema === undefined) return '';
    const judged = await validator.inject({
      method: 'POST',
      url: '/',
      payload: { schema: media.schema, body: JSON.parse(text) as unknown },
    });
    return judged.body === '[true]' ? '' : `${text} is not as described: ${judged.body}`;
  }

  test('the checker sees a member that is missing, one too many, and a status that is not described', async () => {
    const path = '/external/oauth2helper/code/get/{client_id}';
    expect(await check(path, 'get', Response.json({ code: 'x' }))).toBe('');
    expect(await check(path, 'get', Response.json({}))).toMatch(/not as described/);
    expect(await check(path, 'get', Response.json({ code: 'x', more: 1 }))).toMatch(/not as described/);
    expect(await check(path, 'get', Response.json({ code: 'x' }, { status: 201 }))).toMatch(/201/);
  });

  test('the portal’s', async () => {
    await using emulator = await start();
    const [base, frontend] = [emulator.baseUrl, emulator.frontendUrl];
    const helper = '/external/oauth2helper';
    const { authorize_url, code_url } = await config(emulator);
    const first = await obtainTokens(emulator);
    const login = { username: ALICE.name, password: ALICE.password };
    const back = await config(emulator, 'http://127.0.0.1:1/callback');
    const forwarded = await post(back.authorize_url, login);
    const scoped = await obtainTokens(emulator, { scope: 'Monitoring' });
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const answers: [string, string, Response][] = [
      ['/config/{client_id}', 'post', await post(`${base}${helper}/config/${HEATER.id}`, '')],
      ['/config/{client_id}', 'post', await post(`${base}${helper}/config/${HEATER.id}?redirect_url=x`, '')],
      ['/config/{client_id}', 'post', await post(`${base}${helper}/config/nobody`, '')],
      ['/code/get/{client_id}', 'get', await get(code_url)],
      ['/code/set/{client_id}', 'get', await get(`${base}${helper}/code/set/nobody`)],
      ['/code/set/{client_id}', 'get', await get(`${base}${helper}/code/set/${HEATER.id}`)],
      ['/code/set/{client_id}', 'get', await get(forwarded.headers.get('location') ?? '')],
      ['/sso/authorize', 'get', await get(authorize_url)],
      ['/sso/authorize', 'get', await get(`${frontend}/sso/authorize`)],
      ['/sso/authorize', 'post', await post(authorize_url, { username: 'x' })],
      ['/sso/authorize', 'post', await post(authorize_url, login)],
      ['/sso/token', 'post', await refresh(emulator, first.refresh_token)],
      ['/sso/token', 'post', await refresh(emulator, scoped.refresh_token)],
      ['/sso/token', 'post', await refresh(emulator, 'unknown')],
      ['/sso/token', 'post', await refresh(emulator, first.refresh_token, { id: 'x', secret: 'y' })],
      ['/sso/token', 'post', await exchange(emulator, 'unknown')],
      ['/sso/token', 'post', await post(`${frontend}/sso/token`, 'a=1&a=2')],
      ['/api/whoami', 'get', await get(`${base}/api/whoami`)],
      ['/api/whoami', 'get', await get(`${base}/api/whoami`, bearer('unknown'))],
      ['/api/whoami', 'get', await get(`${base}/api/whoami`, bearer(first.access_token))],
      ['/api/whoami', 'get', await get(`${base}/api/whoami`, bearer(scoped.access_token))],
    ];
    for (const [path, method, answer] of answers) {
      expect(await check(path.startsWith('/c') ? helper + path : path, method, answer)).toBe('');
    }
  });

  test('the emulator’s own', async () => {
    await using emulator = await start();
    const state = stateOf((await config(emulator)).code_url);
    await obtainTokens(emulator);
    const json = (body: unknown) => JSON.stringify(body);
    const requests: [string, string, string | null][] = [
      ['login', 'post', json({ state, user: ALICE.name })],
      ['login', 'post', json({ state: 1 })],
      ['requests', 'get', null],
      ['', 'get', null],
      ['console.css', 'get', null],
      ['requests?since=2', 'get', null],
      ['requests?since=x', 'get', null],
      ['logins', 'get', null],
      ['grants', 'get', null],
      ['findings', 'get', null],
      ['settings', 'get', null],
      ['settings', 'patch', json({ refresh_grace: 1 })],
      ['settings', 'patch', json({ refresh_grace: -1 })],
      ['faults', 'post', json({ kind: 'hang', endpoint: 'token' })],
      ['faults', 'post', json({ kind: 'hang' })],
      ['faults', 'get', null],
      ['faults', 'delete', null],
      ['clock', 'get', null],
      ['clock', 'post', json({ advance: 60 })],
      ['clock', 'post', json({ advance: -60 })],
      ['reset', 'post', json({})],
      ['reset', 'post', json({ all: true })],
      ['openapi.json', 'get', null],
    ];
    for (const [path, method, body] of requests) {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(emulator.consoleUrl + path, { method: method.toUpperCase(), body, headers });
      expect(await check(`/_emulator/${path.split('?')[0]}`, method, answer)).toBe('');
    }
  });
});
