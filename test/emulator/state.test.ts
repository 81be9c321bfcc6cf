import { cpSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { mountSmallDisk } from '../store/small-disk.ts';
import { stateFolder } from '../support/state-folder.ts';
import {
  exchangeCode,
  get,
  HEATER,
  type HelperConfig,
  obtainCode,
  obtainTokens,
  parseTokens,
  post,
  refreshTokens,
  requestConfig,
  requestTokens,
  startTestEmulator,
  stateOf,
  whoami,
} from './portal-client.ts';

/** A copy of a folder with an emulator's state as it is on the disk now: what a kill would leave. */
function copyOf({ path }: { readonly path: string }) {
  const copy = stateFolder();
  cpSync(path, copy.path, { recursive: true });
  return { state: join(copy.path, 'emulator.db'), [Symbol.dispose]: () => copy[Symbol.dispose]() };
}

test("after a kill the emulator's tokens, codes, links, keys and client are still valid", async () => {
  using folder = stateFolder();
  await using before = await startEmulator({ state: join(folder.path, 'emulator.db'), autoLogin: true });
  const client = { id: before.clientId, secret: before.clientSecret };
  const exchange = (at: Emulator, code: string) =>
    requestTokens(at, { grant_type: 'authorization_code', code }, client);
  const poll = async (url: string) => ((await (await get(url)).json()) as { readonly code: string }).code;
  const logIn = async ({ authorize_url, code_url }: HelperConfig) => {
    await fetch(authorize_url);
    return poll(code_url);
  };
  const first = await parseTokens(await exchange(before, await logIn(await requestConfig(before))));
  const second = await parseTokens(await refreshTokens(before, first.refresh_token, client));
  const begin = () => requestConfig(before);
  const [unusedUrls, unopenedUrls, usedUrls] = [await begin(), await begin(), await begin()];
  const used = await logIn(usedUrls);
  const other = await parseTokens(await exchange(before, used));
  const waiting = await logIn(unusedUrls);

  using killed = copyOf(folder);
  await using after = await startEmulator({ state: killed.state, autoLogin: true });
  const moved = ({ authorize_url, code_url, ...rest }: HelperConfig) => ({
    ...rest,
    authorize_url: authorize_url.replace(before.frontendUrl, after.frontendUrl),
    code_url: code_url.replace(before.baseUrl, after.baseUrl),
  });
  expect([after.clientId, after.clientSecret]).toEqual([client.id, client.secret]);
  expect((await whoami(after, second.access_token)).status).toBe(200);
  expect((await refreshTokens(after, first.refresh_token, client)).status).toBe(400);
  expect((await refreshTokens(after, second.refresh_token, client)).status).toBe(200);
  expect(await poll(moved(unusedUrls).code_url)).toBe(waiting);
  expect((await exchange(after, waiting)).status).toBe(200);
  expect((await exchange(after, await logIn(moved(unopenedUrls)))).status).toBe(200);
  expect((await fetch(moved(usedUrls).authorize_url)).status).toBe(400);
  expect((await exchange(after, used)).status).toBe(400);
  expect((await refreshTokens(after, other.refresh_token, client)).status).toBe(400);
  const grants = after.grants().map(({ generation, revoked }) => [generation, revoked]);
  expect(grants.toSorted()).toEqual([
    [1, false],
    [1, false],
    [1, true],
    [3, false],
  ]);
});

test("the emulator's clock and findings outlive a kill, and its settings, faults and log do not", async () => {
  using folder = stateFolder();
  await using before = await startTestEmulator({
    state: join(folder.path, 'emulator.db'),
    onReuse: 'revoke-family',
  });
  before.advance(864_000.5);
  const early = await parseTokens(await refreshTokens(before, (await obtainTokens(before)).refresh_token));
  const reused = await obtainTokens(before);
  for (let i = 0; i < 2; i += 1) await refreshTokens(before, reused.refresh_token);
  const twice = await obtainCode(before);
  for (let i = 0; i < 2; i += 1) await exchangeCode(before, twice);
  await requestTokens(before, { grant_type: 'refresh_token' }, { ...HEATER, secret: 'wrong' });
  before.change({ tokenLifetime: 10 });
  before.addFault({ kind: 'hang', endpoint: 'token' });
  const found = before.findings();
  expect(found).toMatchObject({
    reusedRefreshTokens: [{ count: 1 }],
    repeatedCodes: [{ count: 1 }],
    earlyRefreshes: [{ count: 1 }, { count: 1 }],
    failedAuthentications: [{ way: 'form', count: 1 }],
  });

  using killed = copyOf(folder);
  {
    await using after = await startTestEmulator({ state: killed.state, refreshGrace: 1 });
    expect(after.clock.offset).toBe(864_000.5);
    expect(after.observations).toMatchObject({ refreshTokensRepeated: 1, codesRepeated: 1 });
    expect(after.findings()).toEqual({ ...found, polls: [] });
    expect(after.settings).toMatchObject({ tokenLifetime: 3600, refreshGrace: 1 });
    expect([after.faults, after.requests]).toEqual([[], []]);
    expect((await whoami(after, early.access_token)).status).toBe(200);
    after.advance(3600);
    expect((await whoami(after, early.access_token)).status).toBe(401);
  }
  {
    await using after = await startTestEmulator({ state: killed.state });
    expect(after.clock.offset).toBe(867_600.5);
    await after.reset();
  }
  await using after = await startTestEmulator({ state: killed.state });
  expect(after.clock.offset).toBe(0);
  expect(Object.values(after.findings()).flat()).toEqual([]);
});

test("the emulator's CA, waiting logins and revocations outlive a restart, a reset clears the file, and it is private", async () => {
  using folder = stateFolder();
  const state = join(folder.path, 'emulator.db');
  let ca: string | null = null;
  let [revoked, kept, ended] = ['', '', ''];
  {
    await using emulator = await startTestEmulator({ state, tls: true });
    ca = emulator.ca;
    expect(statSync(state).mode & 0o777).toBe(0o600);
    await expect(startTestEmulator({ state })).rejects.toThrow(
      /^the state file .*emulator.db is in use by another emulator; stop it/,
    );
  }
  {
    await using emulator = await startTestEmulator({ state, tls: true });
    expect(emulator.ca).toBe(ca);
  }
  {
    await using emulator = await startTestEmulator({ state });
    revoked = (await obtainTokens(emulator)).refresh_token;
    emulator.revoke(emulator.grants()[0]?.id ?? '');
    const response = await fetch(`${emulator.baseUrl}/external/oauth2helper/config/${HEATER.id}`, { method: 'POST' });
    await get(((await response.json()) as HelperConfig).authorize_url);
    ({ refresh_token: kept, access_token: ended } = await obtainTokens(emulator));
    const form = { client_id: HEATER.id, client_secret: HEATER.secret, token: ended };
    expect((await post(`${emulator.baseUrl}/oauth2/revoke`, form)).status).toBe(200);
  }
  {
    await using emulator = await startTestEmulator({ state });
    expect((await refreshTokens(emulator, revoked)).status).toBe(400);
    expect((await whoami(emulator, ended)).status).toBe(401);
    expect((await refreshTokens(emulator, kept)).status).toBe(200);
    const [waiting] = emulator.logins();
    const { location } = await emulator.login({ state: waiting?.state ?? '', user: 'alice' });
    expect(stateOf(location)).not.toBe('');
    await emulator.reset();
  }
  await using emulator = await startTestEmulator({ state });
  expect([emulator.grants(), emulator.logins()]).toEqual([[], []]);
});

test('the emulator rejects a file that is not its state, or of another version, in one line and leaves it unchanged', async () => {
  using folder = stateFolder();
  const pathOf = (name: string) => join(folder.path, name);
  writeFileSync(pathOf('text'), 'This is somebody’s diary and no database at all.\n'.repeat(50));
  await (await startTestEmulator({ state: pathOf('newer') })).close();
  const newer = new Database(pathOf('newer'));
  newer.pragma('user_version = 7');
  newer.close();
  await expect(startTestEmulator({ state: pathOf('text') })).rejects.toThrow(
    /^the file .*text is not a state file of the emulator; choose/,
  );
  await expect(startTestEmulator({ state: pathOf('newer') })).rejects.toThrow(
    /newer was written by another version \(schema 7, expected/,
  );
  await expect(startTestEmulator({ state: pathOf('none/at/all') })).rejects.toThrow(
    /^the state file .*can't be opened \(ENOENT\)/,
  );
  const reopened = new Database(pathOf('newer'));
  expect(reopened.pragma('user_version', { simple: true })).toBe(7);
  reopened.close();
});

test('the emulator rejects a damaged state in one line, and releases the file', async () => {
  using folder = stateFolder();
  const state = join(folder.path, 'emulator.db');
  await (await startEmulator({ state })).close();
  const database = new Database(state);
  database.prepare('UPDATE state SET json = ?').run('{"tokenKey":');
  database.close();
  for (let i = 0; i < 2; i += 1) {
    await expect(startEmulator({ state, tls: true })).rejects.toThrow(
      /^the state file .*emulator.db is damaged; choose another file$/,
    );
  }
});

test('the emulator answers an error to what a full disk can not store, and continues', async (ctx) => {
  using disk = mountSmallDisk(ctx, '512k');
  await using emulator = await startTestEmulator({ state: join(disk.path, 'emulator.db'), autoLogin: true });
  const filler = join(disk.path, 'filler');
  expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
  const statuses = new Set<number>();
  for (let i = 0; i < 30 && !statuses.has(500); i += 1) {
    const { authorize_url } = await requestConfig(emulator);
    statuses.add((await fetch(authorize_url, { redirect: 'manual' })).status);
  }
  expect(statuses).toContain(500);
  truncateSync(filler, 0);
  await obtainTokens(emulator);
});
