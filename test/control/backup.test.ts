import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ControlServer, serveControl } from '../../src/control/server.ts';
import { createLog } from '../../src/system/log.ts';
import { rememberSecrets } from '../support/logs.ts';
import { waitFor } from '../support/wait-for.ts';
import { Household } from './household.ts';

const PASSPHRASE = 'a passphrase that is seen nowhere';
rememberSecrets([PASSPHRASE]);

let household: Household;
let server: ControlServer;
let logged: string[];
let client: Client;

beforeEach(async () => {
  household = new Household();
  logged = [];
  server = await serveControl({
    path: join(mkdtempSync(join(tmpdir(), 'lk-')), 'control.sock'),
    administration: household,
    log: createLog('debug', { write: (line) => logged.push(line) }),
  });
  client = new Client('http://hub', { socketPath: server.path });
});

afterEach(async () => {
  await client.destroy();
  await server[Symbol.asyncDispose]();
});

async function post(path: string, body: unknown) {
  const headers = { 'content-type': 'application/json' };
  const answer = await client.request({ method: 'POST', path, headers, body: JSON.stringify(body) });
  const text = await answer.body.text();
  return { status: answer.statusCode, text, answer: JSON.parse(text) };
}

test('a backup is given out, and no passphrase is said back', async () => {
  const { status, text, answer } = await post('/v1/backup', { passphrase: PASSPHRASE });
  expect(status).toBe(200);
  expect(answer).toEqual({ copy: 'a.sealed.copy', made: '2031-05-05T06:00:00Z', appliances: 0, grants: 1 });
  expect(text).not.toContain(PASSPHRASE);
});

test('a copy is taken, and the hub starts again when the answer is out', async () => {
  const { status, answer } = await post('/v1/restore', { copy: 'a.sealed.copy', passphrase: PASSPHRASE });
  expect({ status, answer }).toMatchObject({ status: 200, answer: { restored: ['wallbox'], kept: ['heater'] } });
  await waitFor(() => expect(household.restarts).toBe(1));
});

test.each([
  { path: '/v1/restore', body: { copy: 'a.sealed.copy', passphrase: PASSPHRASE } },
  { path: '/v1/reload', body: {} },
])('whoever asks $path and goes before the answer has asked all the same', async ({ path, body }) => {
  const portal = Promise.withResolvers<void>();
  household.portal = portal.promise;
  const gone = connect(server.path);
  const text = JSON.stringify(body);
  const headers = `host: hub\r\ncontent-type: application/json\r\ncontent-length: ${text.length}`;
  gone.write(`POST ${path} HTTP/1.1\r\n${headers}\r\n\r\n${text}`);
  await waitFor(() => expect(household.asked).toBe(1));
  gone.destroy();
  await once(gone, 'close');
  // The server has heard of it by the time that it answers somebody who came later.
  expect((await client.request({ method: 'GET', path: '/v1/status' })).statusCode).toBe(200);
  portal.resolve();
  await waitFor(() => expect(household.restarts + household.reloads).toBe(1));
});

test('a copy of a large hub fits, and one beyond all bounds is refused', async () => {
  const passphrase = PASSPHRASE;
  const large = await post('/v1/restore', { copy: 'a.sealed.copy'.padEnd(30_000_000), passphrase });
  expect(large.status).toBe(200);
  const beyond = await post('/v1/restore', { copy: 'x'.repeat(68_000_000), passphrase }).catch(() => null);
  expect(beyond === null || beyond.status === 413).toBe(true);
  const elsewhere = await post('/v1/backup', { passphrase: 'x'.repeat(70_000) }).catch(() => null);
  expect(elsewhere === null || elsewhere.status === 413).toBe(true);
});

test.each([
  ['/v1/backup', {}],
  ['/v1/backup', { passphrase: [PASSPHRASE] }],
  ['/v1/backup', { passphrase: 471108154711 }],
  ['/v1/backup', { passphrase: PASSPHRASE, [PASSPHRASE]: 1 }],
  ['/v1/restore', { passphrase: PASSPHRASE }],
  ['/v1/restore', { copy: 7, passphrase: PASSPHRASE }],
  ['/v1/restore', { copy: 'no copy', passphrase: PASSPHRASE }],
])('%s refuses %j in one line, without its values', async (path, body) => {
  const { status, text, answer } = await post(path, body);
  expect(status).toBe(400);
  expect(answer.message).toMatch(/^[^\n]+$/);
  expect(Object.keys(body).includes(PASSPHRASE) ? '' : text).not.toContain(PASSPHRASE);
  expect(text).not.toContain('471108154711');
  expect(household).toMatchObject({ passphrases: [], restarts: 0 });
  expect(logged.join('')).not.toContain(PASSPHRASE);
});
