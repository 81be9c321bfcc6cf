import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../project/checkout.ts';
import { FORM, startTestEmulator } from './portal-client.ts';

const CLIENT = { id: '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90', secret: 'the-client-secret' };

/** What the portal makes up, by the word that stands for it in the guide; tokens come a second time, and are `NEXT_…` then. */
const MADE_UP = [
  ['STATE', /\bstate=([\w.-]+)/],
  ['CODE', /\bcode=([\w-]+)/],
  ['ACCESS_TOKEN', /"access_token":"([^"]+)"/],
  ['REFRESH_TOKEN', /"refresh_token":"([^"]+)"/],
] as const;

/** A request of docs/portal.md, and the answer below it. */
interface Example {
  readonly method: string;
  readonly url: string;
  readonly form: string | null;
  /** A status line, the headers that the guide shows, and the body if it shows that. */
  readonly answer: string;
}

function examples(): Example[] {
  const guide = readFileSync(join(root, 'docs/portal.md'), 'utf8');
  return [...guide.matchAll(/^```http\n(.*?)^```$/gms)].map(([, text = '']) => {
    const [request = '', answer = ''] = text.trimEnd().split(/\n\n(?=HTTP\/1\.1 )/);
    const [head = '', form = null] = request.split('\n\n');
    const [method = '', url = ''] = (head.split('\n')[0] ?? '').split(' ');
    return { method, url, form, answer };
  });
}

/** An answer as the guide writes it, with as much of it as an example shows. */
async function written(response: Response, { answer }: Example): Promise<string> {
  const [head = '', body] = answer.split('\n\n');
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
  /** What the guide writes, by what is really sent. */
  const words = new Map([
    [emulator.baseUrl, 'https://api.portal.example'],
    [emulator.frontendUrl, 'https://portal.example'],
    [emulator.baseUrl.replaceAll('/', '\\/'), 'https:\\/\\/api.portal.example'],
    [emulator.frontendUrl.replaceAll('/', '\\/'), 'https:\\/\\/portal.example'],
  ]);
  const sent = (text: string) => [...words].reduceRight((filled, [real, word]) => filled.replaceAll(word, real), text);
  const told = (text: string) => [...words].reduce((filled, [real, word]) => filled.replaceAll(real, word), text);

  for (const example of all) {
    const { method, url, form, answer } = example;
    const body = form === null ? {} : { body: sent(form), headers: { 'content-type': FORM } };
    const said = await written(await fetch(sent(url), { method, redirect: 'manual', ...body }), example);
    for (const [word, pattern] of MADE_UP) {
      const [, value] = pattern.exec(said) ?? [];
      if (value === undefined || words.has(value)) continue;
      words.set(value, [...words.values()].includes(word) ? `NEXT_${word}` : word);
    }
    expect(told(said), `${method} ${url}`).toBe(answer);
  }
  const asked = all.map(({ method, url }) => `${method} ${new URL(url).pathname.replace(/[\da-f-]{36}$/, '')}`);
  expect([...new Set(asked)]).toEqual([
    'POST /external/oauth2helper/config/',
    'GET /external/oauth2helper/code/get/',
    'GET /sso/authorize',
    'POST /sso/authorize',
    'GET /external/oauth2helper/code/set/',
    'POST /sso/token',
  ]);
});
