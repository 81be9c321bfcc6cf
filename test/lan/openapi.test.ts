import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { hubOperations, openApiDocument } from '../../src/lan/openapi/document.ts';
import { version } from '../../src/system/version.ts';
import { root } from '../project/checkout.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { recordRoutes } from '../support/openapi-conformance.ts';

test('docs/openapi-hub.json matches the schemas (otherwise run scripts/openapi)', () => {
  const origins = { http: 'http://192.168.1.10:8480', https: 'https://192.168.1.10:8443' };
  const written: unknown = JSON.parse(readFileSync(join(root, 'docs/openapi-hub.json'), 'utf8'));
  expect(openApiDocument(origins, version())).toEqual(written);
});

test("the hub's OpenAPI document describes exactly the routes of both ports that are not only for people", async () => {
  // The HTTPS server is created first.
  const { started, routes: made } = await recordRoutes(() => LanServerHarness.start());
  await using lan = started;
  const [https = new Set<string>(), http = new Set<string>()] = made;
  const routes = { https, http };
  for (const port of ['https', 'http'] as const) {
    const described = hubOperations.filter(({ ports }) => ports.includes(port));
    expect([...routes[port]].sort(), port).toEqual([...new Set(described.map(({ path }) => path))].sort());
    const origin =
      port === 'https' ? `https://127.0.0.1:${lan.server.httpsPort}` : `http://127.0.0.1:${lan.server.httpPort}`;
    for (const { path } of described) {
      const { statusCode, headers, body } = await request(origin + path.replaceAll(/[{}]/g, ''), {
        method: 'OPTIONS',
        dispatcher: lan.agent,
      });
      await body.dump();
      const allowed = String(headers['allow'] ?? '').split(', ');
      const listed = allowed.filter((method) => method !== 'HEAD').sort();
      const methods = described
        .filter((operation) => operation.path === path)
        .map(({ method }) => method.toUpperCase());
      expect([statusCode, listed], `${port} ${path}`).toEqual([405, methods.sort()]);
    }
  }
});

test('a running hub serves its OpenAPI document with the host that the request used', async () => {
  await using lan = await LanServerHarness.start();
  const { httpsPort, httpPort } = lan.server;
  const { headers, body } = await request(`https://localhost:${httpsPort}/openapi.json`, { dispatcher: lan.agent });
  expect(headers['content-type']).toMatch(/^application\/json/);
  const document = (await body.json()) as { paths: Record<string, Record<string, { servers?: unknown }>> };
  const origins = { http: `http://localhost:${httpPort}`, https: `https://localhost:${httpsPort}` };
  expect(document).toEqual(openApiDocument(origins, version()));
  expect(document.paths['/callback/{nonce}']?.['get']?.servers).toEqual([{ url: origins.http }]);
});
