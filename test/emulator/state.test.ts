import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import { MAIN } from '../support/program.ts';
import { stateFolder } from '../support/state-folder.ts';
import {
  FakeClock,
  get,
  HEATER,
  type HelperConfig,
  obtainTokens,
  post,
  refresh,
  start,
  stateOf,
  type Tokens,
} from './portal-client.ts';

interface FirstLine {
  readonly base_url: string;
  readonly frontend_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly ca_file?: string;
}

/** The emulator in a process of its own, and its first client. */
async function launch(...args: string[]) {
  const child = spawn(process.execPath, [MAIN, 'emulator', '--json', ...args], {
    stdio: ['ignore', 'pipe', openSync(logFile('emulator'), 'w')],
  });
  if (child.stdout === null) throw new Error('no output');
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  const first = JSON.parse(line) as FirstLine;
  const { base_url, frontend_url, client_id, client_secret } = first;
  rememberSecrets([client_secret]);
  const ask = (form: Record<string, string>) =>
    post(`${frontend_url}/sso/token`, { client_id, client_secret, ...form });
  const issued = async (form: Record<string, string>) => {
    const tokens = await json<Tokens>(ask(form));
    rememberSecrets([tokens.access_token, tokens.refresh_token]);
    return tokens;
  };
  return {
    first,
    /** What another one needs to have the same addresses. */
    ports: ['--port', new URL(base_url).port, '--frontend-port', new URL(frontend_url).port],
    config: () =>
      json<HelperConfig>(fetch(`${base_url}/external/oauth2helper/config/${client_id}`, { method: 'POST' })),
    async code(urls: HelperConfig) {
      await fetch(urls.authorize_url);
      const { code } = await json<{ code: string }>(get(urls.code_url));
      rememberSecrets([code]);
      return code;
    },
    ask,
    exchange: (code: string) => issued({ grant_type: 'authorization_code', code }),
    refresh: (refresh_token: string) => issued({ grant_type: 'refresh_token', refresh_token }),
    async kill() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
    [Symbol.dispose]: () => {
      child.kill('SIGKILL');
    },
  };
}

async function json<T>(answer: Promise<Response>): Promise<T> {
  const response = await answer;
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

test('after a kill everything issued works on, at the same addresses: tokens, codes, links, keys and the client', async () => {
  using folder = stateFolder();
  const args = ['--state', join(folder.path, 'emulator.db'), '--auto-login'];
  using before = await launch(...args);
  const first = await before.exchange(await before.code(await before.config()));
  const second = await before.refresh(first.refresh_token);
  const [unused, unopened, usedUrls] = [await before.config(), await before.config(), await before.config()];
  const used = await before.code(usedUrls);
  const other = await before.exchange(used);
  const waiting = await before.code(unused);
  await before.kill();

  using after = await launch(...args, ...before.ports);
  expect(after.first).toEqual(before.first);
  const { base_url } = after.first;
  const refused = async (form: Record<string, string>) => expect((await after.ask(form)).status).toBe(400);
  expect((await get(`${base_url}/api/whoami`, { authorization: `Bearer ${second.access_token}` })).status).toBe(200);
  await refused({ grant_type: 'refresh_token', refresh_token: first.refresh_token });
  await after.refresh(second.refresh_token);
  expect((await json<{ code: string }>(get(unused.code_url))).code).toBe(waiting);
  await after.exchange(waiting);
  await after.exchange(await after.code(unopened));
  expect((await fetch(usedUrls.authorize_url)).status).toBe(400);
  await refused({ grant_type: 'authorization_code', code: used });
  await refused({ grant_type: 'refresh_token', refresh_token: other.refresh_token });
  const { grants } = await json<{ grants: { generation: number; revoked: boolean }[] }>(
    get(`${base_url}/_emulator/grants`),
  );
  expect(grants.map(({ generation, revoked }) => [generation, revoked]).toSorted()).toEqual([
    [1, false],
    [1, false],
    [1, true],
    [3, false],
  ]);
});

test('a rotation is on disk before its answer goes out: kills at any time lose none', async () => {
  using folder = stateFolder();
  const args = ['--state', join(folder.path, 'emulator.db'), '--auto-login'];
  let held: Tokens | null = null;
  let ports: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    using emulator = await launch(...args, ...ports);
    ports = emulator.ports;
    held ??= await emulator.exchange(await emulator.code(await emulator.config()));
    for (let i = 0; i <= 3 * round; i += 1) held = await emulator.refresh(held.refresh_token);
    await emulator.kill();
  }
});

test('the clock, and what clients did wrong, outlive a kill; settings, faults and the log are those of the new start', async () => {
  using folder = stateFolder();
  const args = ['--state', join(folder.path, 'emulator.db'), '--auto-login', '--on-reuse', 'revoke-family'];
  using before = await launch(...args);
  const { base_url, frontend_url, client_id } = before.first;
  const api = `${base_url}/_emulator`;
  const send = (path: string, method: string, body: object) =>
    fetch(`${api}/${path}`, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const shown = async (path: string) => json<Record<string, unknown>>(get(`${api}/${path}`));
  const pair = async () => {
    const code = await before.code(await before.config());
    return { code, tokens: await before.exchange(code) };
  };
  await send('clock', 'POST', { advance: 864_000 });
  const kept = await pair();
  const early = await before.refresh(kept.tokens.refresh_token);
  const reused = await pair();
  for (let i = 0; i < 2; i += 1) {
    await before.ask({ grant_type: 'refresh_token', refresh_token: reused.tokens.refresh_token });
  }
  const twice = await pair();
  await before.ask({ grant_type: 'authorization_code', code: twice.code });
  await post(`${frontend_url}/sso/token`, { grant_type: 'refresh_token', client_id, client_secret: 'wrong' });
  await send('settings', 'PATCH', { token_lifetime: 10 });
  await send('faults', 'POST', { kind: 'hang', endpoint: 'token' });
  const found = await shown('findings');
  expect(found).toMatchObject({
    reused_refresh_tokens: [{ count: 1 }],
    repeated_codes: [{ count: 1 }],
    early_refreshes: [{ count: 1 }, { count: 1 }],
    failed_authentications: [{ way: 'form', count: 1 }],
  });
  await before.kill();

  {
    using after = await launch(...args, ...before.ports, '--refresh-grace', '1');
    expect(await shown('clock')).toMatchObject({ offset: 864_000 });
    expect(await shown('findings')).toEqual({ ...found, polls: [] });
    expect(await shown('settings')).toMatchObject({ token_lifetime: 3600, refresh_grace: 1 });
    expect(await shown('faults')).toEqual({ faults: [] });
    expect(await shown('requests')).toEqual({ requests: [] });
    const whoami = () => get(`${base_url}/api/whoami`, { authorization: `Bearer ${early.access_token}` });
    expect((await whoami()).status).toBe(200);
    await send('clock', 'POST', { advance: 3600 });
    expect((await whoami()).status).toBe(401);
    await after.kill();
  }
  {
    using after = await launch(...args, ...before.ports);
    expect(await shown('clock')).toMatchObject({ offset: 867_600 });
    await send('reset', 'POST', {});
    await after.kill();
  }
  using _ = await launch(...args, ...before.ports);
  expect(await shown('clock')).toMatchObject({ offset: 0 });
  expect(await shown('findings')).toEqual({
    reused_refresh_tokens: [],
    repeated_codes: [],
    overlapping_refreshes: [],
    early_refreshes: [],
    failed_authentications: [],
    polls: [],
  });
});

test('the counts of the library go on after a restart, and a clock of its own is put ahead as before', async () => {
  using folder = stateFolder();
  const state = join(folder.path, 'emulator.db');
  const clock = new FakeClock();
  {
    await using emulator = await start({ state, clock });
    emulator.advance(60.5);
    const { refresh_token } = await obtainTokens(emulator);
    for (let i = 0; i < 3; i += 1) await refresh(emulator, refresh_token);
    expect(emulator.observations.refreshTokensRepeated).toBe(2);
  }
  await using emulator = await start({ state, clock });
  expect(emulator.clock).toEqual({ now: '2031-05-05T06:08:08.500Z', offset: 60.5 });
  expect(emulator.observations).toEqual({ refreshTokensRepeated: 2, codesRepeated: 0, overlappingRefreshes: 0 });
});

test('the CA, waiting logins and revocations are kept, a reset empties the file, and it is closed to others', async () => {
  using folder = stateFolder();
  const state = join(folder.path, 'emulator.db');
  let ca: string | null = null;
  let revoked = '';
  {
    await using emulator = await start({ state, tls: true });
    ca = emulator.ca;
    expect(statSync(state).mode & 0o777).toBe(0o600);
    await expect(start({ state })).rejects.toThrow(/^another emulator has the state .*emulator.db: stop it/);
  }
  {
    await using emulator = await start({ state, tls: true });
    expect(emulator.ca).toBe(ca);
  }
  {
    await using emulator = await start({ state });
    revoked = (await obtainTokens(emulator)).refresh_token;
    emulator.revoke(emulator.grants()[0]?.id ?? '');
    const answer = await fetch(`${emulator.baseUrl}/external/oauth2helper/config/${HEATER.id}`, { method: 'POST' });
    await get(((await answer.json()) as HelperConfig).authorize_url);
  }
  {
    await using emulator = await start({ state });
    expect((await refresh(emulator, revoked)).status).toBe(400);
    const [waiting] = emulator.logins();
    const { location } = await emulator.login({ state: waiting?.state ?? '', user: 'alice' });
    expect(stateOf(location)).not.toBe('');
    await emulator.reset();
  }
  await using emulator = await start({ state });
  expect([emulator.grants(), emulator.logins()]).toEqual([[], []]);
});

test('without a client of their own, emulators on one state have the same one', async () => {
  using folder = stateFolder();
  const state = join(folder.path, 'emulator.db');
  const seen: string[][] = [];
  for (let i = 0; i < 2; i += 1) {
    await using emulator = await startEmulator({ state });
    seen.push([emulator.clientId, emulator.clientSecret]);
  }
  expect(seen[0]).toEqual(seen[1]);
});

test('what is no state file, or another version’s, is refused in one line and left as it is', async () => {
  using folder = stateFolder();
  const at = (name: string) => join(folder.path, name);
  writeFileSync(at('text'), 'This is somebody’s diary and no database at all.\n'.repeat(50));
  new Database(at('foreign')).exec('CREATE TABLE diary (day TEXT)').close();
  await (await start({ state: at('newer') })).close();
  const newer = new Database(at('newer'));
  newer.pragma('user_version = 7');
  newer.close();
  await (await start({ state: at('damaged') })).close();
  const damaged = new Database(at('damaged'));
  damaged.exec("UPDATE state SET json = 'soon'");
  damaged.close();
  await expect(start({ state: at('damaged') })).rejects.toThrow(
    /^the state .*damaged is damaged: choose another file$/,
  );
  await expect(start({ state: at('text') })).rejects.toThrow(/^the file .*text is no state of an emulator: choose/);
  await expect(start({ state: at('foreign') })).rejects.toThrow(
    /^the file .*foreign is no state of an emulator: choose/,
  );
  await expect(start({ state: at('newer') })).rejects.toThrow(/newer was written by another version \(schema 7, known/);
  await expect(start({ state: at('none/at/all') })).rejects.toThrow(/^the state .*can't be opened \(ENOENT\)/);
  await expect(start({ state: folder.path })).rejects.toThrow(/^the state .*can't be opened/);
  const kept = new Database(at('newer'));
  expect(kept.pragma('user_version', { simple: true })).toBe(7);
  kept.close();
});
