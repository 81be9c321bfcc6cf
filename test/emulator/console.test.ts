import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { FAULT_KINDS } from '../../src/emulator/faults/kinds.ts';
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts';
import { type Browser, browserSkipReason, DESKTOP, PHONE, startBrowser, type Visit } from '../support/browser.ts';
import { selectRows } from '../support/long.ts';
import { findUsabilityProblems } from '../support/usability.ts';
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
  test,
  whoami,
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

const missing = await browserSkipReason();

describe("the emulator's console in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    if (missing === null) browser = await startBrowser();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());
  beforeEach((ctx: TestContext) => {
    if (missing !== null) ctx.skip(missing);
  });

  /** An emulator with its console open in a browser. The browser must report no errors and contact no other origin. */
  async function open(options: EmulatorOptions = {}, window = DESKTOP): Promise<Console> {
    await using starting = new AsyncDisposableStack();
    const emulator = starting.use(await startTestEmulator(options));
    const visit = starting.use(await browser.visit(window));
    await visit.page.goto(emulator.consoleUrl);
    await visit.page.getByText('live', { exact: true }).waitFor();
    const expected: string[] = [];
    const resources = starting.move();
    return {
      emulator,
      expected,
      ...visit,
      section: (name) => visit.page.getByRole('region', { name }),
      async [Symbol.asyncDispose]() {
        const browserErrors = [...visit.browserErrors];
        // The event stream stays open until here, and its end is one more browser error.
        await resources.disposeAsync();
        expect(browserErrors).toEqual(expected.map((part) => expect.stringContaining(part)));
        expect(visit.origins).toEqual([emulator.baseUrl]);
      },
    };
  }

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
    await log.locator('summary').first().press('Enter');
    await log.getByText('form: refresh_token').waitFor();
    await expect.poll(async () => (await lines(log)).length).toBe(4);
    await log.getByLabel('Endpoint').selectOption('code/get');
    expect(await lines(log)).toEqual([expect.stringMatching(/GET code\/get/)]);
    for (const secret of [issued.access_token, issued.refresh_token, HEATER.secret, 'no-such-token']) {
      expect(await page.content()).not.toContain(secret);
    }
  });

  it('the console misses no request that arrives while it loads the log', async () => {
    await using opened = await open();
    const { emulator, page, section } = opened;
    const read = Promise.withResolvers<void>();
    const shown = Promise.withResolvers<void>();
    await page.route('**/_emulator/requests', async (route) => {
      const response = await route.fetch();
      read.resolve();
      await shown.promise;
      await route.fulfill({ response });
    });
    emulator.advance(60);
    await read.promise;
    await whoami(emulator, 'no-such-token');
    const log = section('Requests');
    await log.getByText('401 Unauthorized').waitFor();
    const responded = page.waitForResponse('**/_emulator/requests');
    shown.resolve();
    await (await responded).finished();
    await section('Clock').getByText('1 min ahead').waitFor();
    await whoami(emulator, 'no-such-token');
    await expect.poll(() => lines(log)).toHaveLength(2);
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

  it('the console allows the access of one waiting device with a button, and refuses that of another', async () => {
    await using opened = await open({ users: [ALICE, { name: 'bob', password: 'builder' }] });
    const { emulator, section } = opened;
    const client = { client_id: HEATER.id, client_secret: HEATER.secret };
    const begin = async () => {
      const response = await post(`${emulator.frontendUrl}/oauth2/device_authorization`, client);
      return (await response.json()) as { user_code: string; device_code: string };
    };
    const poll = ({ device_code }: { device_code: string }) => {
      const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
      return post(`${emulator.frontendUrl}/oauth2/token`, { ...client, grant_type, device_code });
    };
    const waiting = section('Devices waiting for their user');
    const first = await begin();
    await waiting.getByText(`Heater <7>, ${first.user_code}`).waitFor();
    await waiting.getByRole('button', { name: 'Log in as bob' }).click();
    await opened.page.getByText('bob is logged in for Heater <7>').waitFor();
    await waiting.waitFor({ state: 'hidden' });
    expect((await poll(first)).status).toBe(200);
    expect(emulator.grants()).toMatchObject([{ user: 'bob' }]);

    const second = await begin();
    await waiting.getByRole('button', { name: 'Refuse' }).click();
    await waiting.waitFor({ state: 'hidden' });
    expect(await (await poll(second)).json()).toMatchObject({ error: 'access_denied' });
  });

  it('the console revokes the access tokens of a grant, and then the whole grant', async () => {
    await using opened = await open();
    const { emulator, section } = opened;
    const { access_token, refresh_token } = await obtainTokens(emulator, { scope: 'Monitoring' });
    const grants = section('Grants');
    await grants.getByText('alice, Monitoring').waitFor();
    await grants.getByText('Generation 1').waitFor();
    await grants.getByRole('button', { name: 'Revoke access tokens' }).click();
    await opened.page.getByText('The access tokens of Heater <7> were revoked').waitFor();
    expect((await whoami(emulator, access_token)).status).toBe(401);
    const next = await parseTokens(await refreshTokens(emulator, refresh_token));
    await grants.getByText('Generation 2').waitFor();
    await grants.getByRole('button', { name: 'Revoke grant' }).click();
    await grants.getByText('revoked', { exact: true }).waitFor();
    expect((await whoami(emulator, next.access_token)).status).toBe(401);
    expect((await refreshTokens(emulator, next.refresh_token)).status).toBe(400);
  });

  it('the console shows what a client does wrong', async () => {
    await using opened = await open();
    const { emulator, section } = opened;
    const { refresh_token } = await obtainTokens(emulator);
    await refreshTokens(emulator, refresh_token);
    await refreshTokens(emulator, refresh_token);
    await section('Findings').getByText('Reused refresh token', { exact: true }).waitFor();
    await section('Findings').getByText('Polling', { exact: true }).waitFor();
  });

  it('the console resets the emulator only after a confirmation', async () => {
    await using opened = await open();
    const { emulator, page, section } = opened;
    const { access_token } = await obtainTokens(emulator);
    await section('Clock').getByRole('button', { name: '+1 min' }).click();
    await section('Clock').getByText('1 min ahead').waitFor();
    await page.getByRole('button', { name: 'Reset …' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect((await whoami(emulator, access_token)).status).toBe(200);
    await page.getByRole('button', { name: 'Reset …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reset', exact: true }).click();
    await section('Requests').getByText('None yet').waitFor();
    await section('Grants').getByText('None yet').waitFor();
    await section('Clock').getByText('no offset').waitFor();
    expect((await whoami(emulator, access_token)).status).toBe(401);
  });

  it('the console advances the clock, and tokens expire', async () => {
    await using opened = await open();
    const { emulator, section } = opened;
    const { access_token } = await obtainTokens(emulator);
    const clock = section('Clock');
    await clock.getByText('no offset').waitFor();
    await clock.getByRole('button', { name: '+1 min' }).click();
    await clock.getByText('1 min ahead').waitFor();
    expect((await whoami(emulator, access_token)).status).toBe(200);
    await clock.getByLabel('Seconds').fill('3540');
    await clock.getByLabel('Seconds').press('Enter');
    await clock.getByText('1 h ahead').waitFor();
    expect((await whoami(emulator, access_token)).status).toBe(401);
    await section('Requests').getByText('401 Unauthorized').waitFor();
  });

  it('the console changes a setting, and the emulator applies it from then on', async () => {
    await using opened = await open();
    const { emulator, section } = opened;
    const { refresh_token } = await obtainTokens(emulator);
    await section('Settings').getByLabel('A used refresh token').selectOption('revokes its whole grant');
    await opened.page.getByText('on_reuse was changed').waitFor();
    const next = await parseTokens(await refreshTokens(emulator, refresh_token));
    expect((await refreshTokens(emulator, refresh_token)).status).toBe(400);
    expect((await refreshTokens(emulator, next.refresh_token)).status).toBe(400);
    const refused = section('Settings').getByLabel('Refuse a redirect_url');
    await refused.fill('(');
    await refused.press('Enter');
    await opened.page.getByText('refuse_redirect_urls: must be a JavaScript regular expression').waitFor();
    await expect.poll(() => refused.inputValue()).toBe('');
    opened.expected.push('400 (Bad Request)');
  });

  it('the console adds a fault, counts its hits and removes it', async () => {
    await using opened = await open();
    const { emulator, section } = opened;
    const { refresh_token } = await obtainTokens(emulator);
    const faults = section('Faults');
    await faults.getByText('The portal works normally').waitFor();
    await faults.getByLabel('What happens').selectOption('respond with a status');
    await faults.getByLabel('Grant type').selectOption('refresh_token');
    await faults.getByLabel('How often').fill('2');
    await faults.getByRole('button', { name: 'Add the fault' }).click();
    await faults.getByText('0 hits, 2 left').waitFor();
    expect((await refreshTokens(emulator, refresh_token)).status).toBe(503);
    await faults.getByText('1 hit, 1 left').waitFor();
    await section('Requests').getByText('503 Service Unavailable').waitFor();
    await faults.getByRole('button', { name: 'Remove the fault' }).click();
    await faults.getByText('The portal works normally').waitFor();
    await parseTokens(await refreshTokens(emulator, refresh_token));
  });

  it('the console adds a fault with its frequency, headers and body', async () => {
    await using opened = await open({ seed: 7 });
    const { emulator, section } = opened;
    const { refresh_token } = await obtainTokens(emulator);
    const faults = section('Faults');
    await faults.getByLabel('What happens').selectOption('respond with a status');
    await faults.getByLabel('How often').fill('');
    await faults.getByLabel('Only every Nth request').fill('2');
    await faults.getByLabel('Probability, from 0 to 1').fill('0.999');
    await faults.getByRole('spinbutton', { name: 'Status' }).fill('429');
    const add = faults.getByRole('button', { name: 'Add the fault' });
    const headers = faults.getByLabel('Headers, one per line');
    for (const wrong of ['Retry-After 30', ': 30', 'x: 1\nX: 2']) {
      await headers.fill(wrong);
      await add.click();
      expect(await headers.evaluate((field: HTMLTextAreaElement) => field.validationMessage)).toMatch(/Name: value/);
    }
    await headers.fill('Retry-After: 30\n\n X-Gateway :  edge: 7 ');
    await faults.getByLabel('Body').fill('{"error":\n"slow_down"}');
    await add.click();
    await faults.getByText('0 hits, no limit').waitFor();
    expect(emulator.faults).toMatchObject([
      {
        kind: 'status',
        status: 429,
        times: null,
        every: 2,
        probability: 0.999,
        headers: { 'retry-after': '30', 'x-gateway': 'edge: 7' },
        body: '{"error":\n"slow_down"}',
      },
    ]);
    await faults.getByText('every 2').waitFor();
    expect((await refreshTokens(emulator, refresh_token)).status).toBe(200);
    const faulty = await refreshTokens(emulator, refresh_token);
    expect([faulty.status, faulty.headers.get('retry-after'), faulty.headers.get('x-gateway')]).toEqual([
      429,
      '30',
      'edge: 7',
    ]);
    expect(await faulty.json()).toEqual({ error: 'slow_down' });

    await faults.getByRole('button', { name: 'Clear all faults' }).click();
    await faults.getByText('The portal works normally').waitFor();
    await headers.fill('');
    await faults.getByLabel('Probability, from 0 to 1').fill('1.5');
    await add.click();
    expect(emulator.faults).toEqual([]);
    await faults.getByLabel('Probability, from 0 to 1').fill('');
    await faults.getByLabel('Only every Nth request').fill('');
    await faults.getByLabel('Body').fill('');
    await add.click();
    await faults.getByText('0 hits, no limit').waitFor();
    expect(emulator.faults).toMatchObject([{ every: 1, probability: 1, headers: {}, body: '' }]);
  });

  it('the console can add a fault of each kind with the defaults of its form', async () => {
    await using opened = await open();
    const faults = opened.section('Faults');
    const kinds = Object.entries(FAULT_KINDS).filter(([kind]) => kind !== 'tls_failure');
    for (const [kind, { label }] of kinds) {
      await faults.getByLabel('What happens').selectOption(label);
      await faults.getByRole('button', { name: 'Add the fault' }).click();
      await faults.getByRole('button', { name: label }).waitFor();
      expect(opened.emulator.faults, kind).toEqual([expect.objectContaining({ kind })]);
      await faults.getByRole('button', { name: 'Clear all faults' }).click();
      await faults.getByText('The portal works normally').waitFor();
    }
    await faults.getByLabel('What happens').selectOption('tls_failure');
    await faults.getByRole('button', { name: 'Add the fault' }).click();
    await opened.page.getByText('tls_failure needs an origin with TLS').waitFor();
    opened.expected.push('400 (Bad Request)');
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

  const windows = [
    ['on a laptop', DESKTOP],
    ['on a phone in the dark', { ...PHONE, colorScheme: 'dark' as const }],
    ['on a laptop in the dark', { ...DESKTOP, colorScheme: 'dark' as const }],
    ['on a phone', PHONE],
  ] as const;

  it.each(selectRows(windows, windows.slice(0, 2)))(
    '%s everything on the console is legible, reachable and within the window',
    async (name, window) => {
      await using opened = await open({ clients: [{ ...HEATER, name: 'Heat pump' }, PUMP] }, window);
      const { emulator, page, section } = opened;
      const { refresh_token } = await obtainTokens(emulator, { scope: 'Monitoring RemoteControl' });
      emulator.addFault({ kind: 'commit_then_drop', endpoint: 'token', grantType: 'refresh_token', times: 2 });
      await refreshTokens(emulator, refresh_token).catch(() => null);
      await refreshTokens(emulator, 'no-such-token').catch(() => null);
      await refreshTokens(emulator, refresh_token);
      await get((await requestConfig(emulator)).authorize_url);
      await section('Waiting for a login').getByRole('button', { name: 'Refuse' }).waitFor();
      await section('Faults').getByText('2 hits, used up').waitFor();
      await section('Findings').getByText('Reused refresh token').waitFor();
      expect(await findUsabilityProblems(page)).toEqual([]);
      const newest = section('Requests').locator('summary').first();
      await newest.click();
      await page.getByRole('button', { name: 'Reset …' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).waitFor();
      expect(await findUsabilityProblems(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await newest.click();
      await section('Faults').getByLabel('What happens').selectOption('respond with a status');
      expect(await findUsabilityProblems(page)).toEqual([]);
      await opened.takeScreenshot(`console-${name}`);
      if (IMAGES !== null && window === DESKTOP) {
        await mkdir(IMAGES, { recursive: true });
        await page.setViewportSize({ width: 1200, height: 720 });
        await writeFile(join(IMAGES, 'emulator-console.png'), await page.screenshot({ scale: 'css' }));
      }
      await section('Faults')
        .getByLabel('Body')
        .evaluate((field) => field.scrollIntoView({ block: 'center' }));
      await opened.takeScreenshot(`console-fault-form-${name}`);
    },
  );
});

interface Console extends Visit {
  readonly emulator: Emulator;
  /** Parts of the browser errors that a test expects. */
  readonly expected: string[];
  /** Finds a section by its heading. */
  section(name: string): Locator;
}

/** The lines of the log, newest first. */
function lines(log: Locator): Promise<string[]> {
  return log.locator('summary').allInnerTexts();
}
