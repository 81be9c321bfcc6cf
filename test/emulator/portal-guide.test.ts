import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../project/checkout.ts';
import { FORM, startTestEmulator } from './portal-client.ts';

const CLIENT = { id: '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90', secret: 'the-client-secret' };

/** Values that the portal generates, with the placeholder of each in the guide. A second token becomes `NEXT_…`. */
const GENERATED_VALUES = [
  ['STATE', /\bstate=([\w.-]+)/],
  ['CODE', /\bcode=([\w-]+)/],
  ['ACCESS_TOKEN', /"access_token":"([^"]+)"/],
  ['REFRESH_TOKEN', /"refresh_token":"([^"]+)"/],
] as const;

/** A request of docs/portal.md, and the response below it. */
interface Example {
  readonly method: string;
  readonly url: string;
  readonly form: string | null;
  /** The status line, the headers that the guide shows, and the body if the guide shows one. */
  readonly response: string;
}

function examples(): Example[] {
  const guide = readFileSync(join(root, 'docs/portal.md'), 'utf8');
  return [...guide.matchAll(/^```http\n(.*?)^```$/gms)].map(([, text = '']) => {
    const [request = '', expected = ''] = text.trimEnd().split(/\n\n(?=HTTP\/1\.1 )/);
    const [head = '', form = null] = request.split('\n\n');
    const [method = '', url = ''] = (head.split('\n')[0] ?? '').split(' ');
    return { method, url, form, response: expected };
  });
}

/** Formats a response as the guide does, with only the parts that the example shows. */
async function formatResponse(response: Response, { response: expected }: Example): Promise<string> {
  const [head = '', body] = expected.split('\n\n');
  const headers = head
    .split('\n')
    .slice(1)
    .map((line) => line.replace(/:.*/, (_, at: number) => `: ${response.headers.get(line.slice(0, at))}`));
  const lines = [`HTTP/1.1 ${response.status} ${response.statusText}`, ...headers].join('\n');
  return body === undefined ? lines : `${lines}\n\n${await response.text()}`;
}

test('the emulator answers the requests of docs/portal.md in order, as the document says', async () => {
  await using emulator = await startTestEmulator({ clients: [CLIENT], users: [{ name: 'demo', password: 'demo' }] });
  const all = examples();
  /** From real values to the placeholders of the guide. */
  const placeholders = new Map([
    [emulator.baseUrl, 'https://api.portal.example'],
    [emulator.frontendUrl, 'https://portal.example'],
    [emulator.baseUrl.replaceAll('/', '\\/'), 'https:\\/\\/api.portal.example'],
    [emulator.frontendUrl.replaceAll('/', '\\/'), 'https:\\/\\/portal.example'],
  ]);
  const fromGuide = (text: string) =>
    [...placeholders].reduceRight((filled, [real, placeholder]) => filled.replaceAll(placeholder, real), text);
  const toGuide = (text: string) =>
    [...placeholders].reduce((filled, [real, placeholder]) => filled.replaceAll(real, placeholder), text);

  for (const example of all) {
    const { method, url, form, response: expected } = example;
    const body = form === null ? {} : { body: fromGuide(form), headers: { 'content-type': FORM } };
    const actual = await formatResponse(await fetch(fromGuide(url), { method, redirect: 'manual', ...body }), example);
    for (const [placeholder, pattern] of GENERATED_VALUES) {
      const [, value] = pattern.exec(actual) ?? [];
      if (value === undefined || placeholders.has(value)) continue;
      placeholders.set(value, [...placeholders.values()].includes(placeholder) ? `NEXT_${placeholder}` : placeholder);
    }
    expect(toGuide(actual), `${method} ${url}`).toBe(expected);
  }
  const requested = all.map(({ method, url }) => `${method} ${new URL(url).pathname.replace(/[\da-f-]{36}$/, '')}`);
  expect([...new Set(requested)]).toEqual([
    'POST /external/oauth2helper/config/',
    'GET /external/oauth2helper/code/get/',
    'GET /sso/authorize',
    'POST /sso/authorize',
    'GET /external/oauth2helper/code/set/',
    'POST /sso/token',
  ]);
});
