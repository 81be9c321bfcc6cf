import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { emulatorOperations, openApiDocument } from '../../src/emulator/openapi/document.ts';
import { version } from '../../src/system/version.ts';
import { root } from '../project/checkout.ts';
import { findRoutes } from '../support/fastify-routes.ts';
import { get, startTestEmulator, test } from './portal-client.ts';

interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

test('docs/openapi-emulator.json matches the schemas (otherwise run scripts/openapi)', () => {
  const origins = { base: 'http://127.0.0.1:8080', frontend: 'http://127.0.0.1:8081' };
  const written: unknown = JSON.parse(readFileSync(join(root, 'docs/openapi-emulator.json'), 'utf8'));
  expect(openApiDocument(origins, version())).toEqual(written);
});

test("the emulator's OpenAPI document describes exactly its routes", async () => {
  const { started, routes } = await findRoutes(() => startTestEmulator());
  await using emulator = started;
  const described = new Set(emulatorOperations.map(({ path }) => path));
  const served = new Set(routes.flat().map(({ path }) => path.replaceAll(/:(\w+)/g, '{$1}')));
  expect([...served].sort()).toEqual([...described].sort());
  for (const path of described) {
    const [first] = emulatorOperations.filter((operation) => operation.path === path);
    const origin = first?.origin === 'frontend' ? emulator.frontendUrl : emulator.baseUrl;
    const response = await fetch(origin + path.replaceAll(/[{}]/g, ''), { method: 'OPTIONS' });
    const methods = emulatorOperations
      .filter((operation) => operation.path === path)
      .map(({ method }) => method.toUpperCase());
    const allowed = (response.headers.get('allow') ?? '').split(', ').filter((method) => method !== 'HEAD');
    expect([response.status, allowed.sort()], path).toEqual([405, methods.sort()]);
  }
});

test('a running emulator serves its OpenAPI document with its own addresses', async ({ emulator }) => {
  const response = await get(`${emulator.consoleUrl}openapi.json`);
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  const document = (await response.json()) as Document;
  expect(document).toEqual(openApiDocument({ base: emulator.baseUrl, frontend: emulator.frontendUrl }, version()));
  expect(document.servers).toEqual([{ url: emulator.baseUrl, description: '{base_url}' }]);
  expect(document.paths['/sso/token']?.['servers']).toMatchObject([{ url: emulator.frontendUrl }]);
});
