import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { oauthOperations, openApiDocument } from '../../src/lan/openapi/document.ts';
import { version } from '../../src/system/version.ts';
import { root } from '../project/checkout.ts';
import { findRoutes } from '../support/fastify-routes.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';

test('docs/openapi-hub.json matches the schemas (otherwise run scripts/openapi)', () => {
  const written: unknown = JSON.parse(readFileSync(join(root, 'docs/openapi-hub.json'), 'utf8'));
  expect(openApiDocument(version())).toEqual(written);
});

test("the hub's OpenAPI document describes exactly the routes of the OAuth endpoints", async () => {
  // The HTTPS server is created first.
  const { started, routes } = await findRoutes(() => LanServerHarness.start());
  await using _ = started;
  const served = (routes[0] ?? [])
    .filter(
      ({ method, path }) => method !== 'HEAD' && /^\/(oauth\/(?!authorize)|\.well-known\/oauth-)[^:]*$/.test(path),
    )
    .map(({ method, path }) => `${method} ${path}`);
  expect(served).toHaveLength(6);
  expect(oauthOperations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort()).toEqual(served.sort());
});

test('a running hub serves its OpenAPI document', async () => {
  await using lan = await LanServerHarness.start();
  const url = `https://localhost:${lan.server.httpsPort}/openapi.json`;
  const { headers, body } = await request(url, { dispatcher: lan.agent });
  expect(headers['content-type']).toMatch(/^application\/json/);
  expect(await body.json()).toEqual(openApiDocument(version()));
});
