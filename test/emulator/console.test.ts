import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { expectUsable, lines, NAMED_CLIENTS, useConsole } from './console-visit.ts';
import {
  ALICE,
  exchangeCode,
  get,
  HEATER,
  obtainTokens,
  PUMP,
  parseTokens,
  post,
  refreshTokens,
  requestConfig,
  requestTokens,
  startTestEmulator,
  stateOf,
} from './portal-client.ts';

/** If this is set, the picture for the documentation is recreated. */
const IMAGES =
  process.env['LATCHKEY_DOCS_IMAGES'] === undefined ? null : join(import.meta.dirname, '../../docs/images');

const JSON_TYPE = { 'content-type': 'application/json' };

test('the console loads its style and modules from the emulator only, under a strict policy, and is not cached', async () => {
  await using emulator = await startTestEmulator();
  const page = await get(emulator.consoleUrl);
  const html = await page.text();
  expect(page.status).toBe(200);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe');
  expect(html).not.toMatch(/<style|<script(?! type="module" src="\/)|\son\w+=|(src|href)="(?!\/|data:,|#)/);
  expect(html).toContain('Heater &#60;7&#62;');
  for (const path of ['', 'console.css', /console\/main\.[jt]s/.exec(html)?.[0]]) {
    const response = await get(`${emulator.consoleUrl}${path}`);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
  }
  for (const path of ['console/nothing.ts', 'console/..%2fpage.ts', 'console/page.ts', 'console/main.d.ts']) {
    expect((await get(`${emulator.consoleUrl}${path}`)).status).toBe(404);
  }
});

test("the emulator's API refuses changes by web pages of other origins, and permits them to other programs", async () => {
  await using emulator = await startTestEmulator();
  const body = JSON.stringify({ state: stateOf((await requestConfig(emulator)).code_url), user: ALICE.name });
  const send = (headers: Record<string, string>) =>
    post(`${emulator.baseUrl}/_emulator/login`, body, { ...JSON_TYPE, ...headers });
  const foreign = [
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { origin: emulator.frontendUrl },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: emulator.baseUrl },
  ];
  for (const headers of foreign) expect((await send(headers)).status, JSON.stringify(headers)).toBe(403);
  for (const headers of [{}, { origin: emulator.baseUrl }]) expect((await send(headers)).status).toBe(200);
});

describe("the emulator's console in a browser", () => {
  const open = useConsole();

  it('the console shows requests as they arrive, newest first, with their parameters and with masked secrets', async () => {
    await using opened = await open();
    const { emulator, page, section } = opened;
    const log = section('Requests');
    await log.getByText('None yet').waitFor();
    const issued = await obtainTokens(emulator);
    await log.getByText('POST token').waitFor();
    expect((await lines(log))[0]).toMatch(/POST token\s*authorization_code · Heater <7>\s*200 OK/);
    expect((await refreshTokens(emulator, 'no-such-token')).status).toBe(400);
    await log.getByText('400 Bad Request').waitFor();
    await log.locator('summary').getByText('invalid_grant').waitFor();
    await log.locator('summary').first().press('Enter');
    await log.getByText('form: refresh_token').waitFor();
    await expect.poll(async () => (await lines(log)).length).toBe(4);
    await log.getByLabel('Endpoint').selectOption('code/get');
    expect(await lines(log)).toEqual([expect.stringMatching(/GET code\/get/)]);
    for (const secret of [issued.access_token, issued.refresh_token, HEATER.secret, 'no-such-token']) {
      expect(await page.content()).not.toContain(secret);
    }
  });

  it('the console logs in one waiting user with a button, and refuses another', async () => {
    await using opened = await open({ users: [ALICE, { name: 'bob', password: 'builder' }] });
    const { emulator, section } = opened;
    const pendingLogins = section('Waiting for a login');
    const first = await requestConfig(emulator);
    expect((await get(first.authorize_url)).status).toBe(200);
    await pendingLogins.getByText('Heater <7>').waitFor();
    await pendingLogins.getByRole('button', { name: 'Log in as bob' }).click();
    await opened.page.getByText('bob is logged in for Heater <7>').waitFor();
    await pendingLogins.waitFor({ state: 'hidden' });
    const { code } = (await (await get(first.code_url)).json()) as { code: string };
    await parseTokens(await exchangeCode(emulator, code));
    expect(emulator.grants()).toMatchObject([{ user: 'bob' }]);

    const second = await requestConfig(emulator);
    await get(second.authorize_url);
    await pendingLogins.getByRole('button', { name: 'Refuse' }).click();
    await pendingLogins.waitFor({ state: 'hidden' });
    expect((await get(second.code_url)).status).toBe(404);
    expect((await get(second.authorize_url)).status).toBe(200);
  });

  it('the console shows names and client input as text, whatever markup they contain', async () => {
    const name = '<img src=x onerror=alert(1)>';
    const client = { ...HEATER, name };
    await using opened = await open({
      clients: [client, PUMP],
      users: [{ name, password: 'pw-of-nobody' }],
      showSecrets: true,
    });
    const { emulator, page, section } = opened;
    const urls = await requestConfig(emulator, `http://127.0.0.1/?${encodeURIComponent(name)}`);
    await get(`${urls.authorize_url}&${encodeURIComponent(name)}=${encodeURIComponent(name)}`);
    await get(urls.authorize_url);
    await requestTokens(emulator, { grant_type: name, code: name }, client);
    await get(`${emulator.baseUrl}/${name}`, { authorization: `${name} x` });
    await section('Requests').getByText(`${name} · ${name}`).waitFor();
    await section('Waiting for a login')
      .getByRole('button', { name: `Log in as ${name}` })
      .click();
    await page.getByText(`${name} is logged in for ${name}`).waitFor();
    for (const row of await section('Requests').locator('summary').all()) await row.click();
    await section('Requests').getByText('authorization', { exact: true }).first().waitFor();
    expect(await page.locator('img').count()).toBe(0);
  });

  it('everything on the console is legible, reachable and within the window', async () => {
    await using opened = await open({ clients: NAMED_CLIENTS });
    await expectUsable(opened);
    await opened.takeScreenshot('console-on a laptop');
    if (IMAGES === null) return;
    await mkdir(IMAGES, { recursive: true });
    await opened.page.setViewportSize({ width: 1200, height: 720 });
    await writeFile(join(IMAGES, 'emulator-console.png'), await opened.page.screenshot({ scale: 'css' }));
  });
});
