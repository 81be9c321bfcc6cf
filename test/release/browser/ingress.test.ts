import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FrameLocator, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { en } from '../../../src/page/texts/en.ts';
import { type BrowserTestHub, logIn, startBrowserTestHub } from '../../browser/browser-test-hub.ts';
import { type Browser, browserSkipReason, DESKTOP, startBrowser, type Visit } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { reservePort } from '../../support/hub-process.ts';
import { logFile, rememberSecrets } from '../../support/logs.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { waitFor } from '../../support/wait-for.ts';

const NGINX = '/usr/sbin/nginx';

/** Why nginx can't be started here; null if it can. */
function nginxSkipReason(): string | null {
  try {
    accessSync(NGINX, constants.X_OK);
    return null;
  } catch {
    return `${NGINX} is missing`;
  }
}

/** A running nginx with one server. */
interface Nginx extends AsyncDisposable {
  /** Its address, without a slash at the end. */
  readonly origin: string;
  /** `127.0.0.1`, and its port. */
  readonly host: string;
}

/**
 * Starts nginx on a free port of 127.0.0.1, with files of its own.
 * @param server the directives of its server; `FOLDER` stands for a folder with the files
 * @param files further files in that folder, by name
 */
async function startNginx(server: string, files: Readonly<Record<string, string>> = {}): Promise<Nginx> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-nginx-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  const port = await reservePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (of) => `${of}_temp_path ${folder}/${of};`,
  );
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr warn;
events {}
http {
  access_log off; ${temporary.join(' ')}
  server {
    listen 127.0.0.1:${port};
${server.replaceAll('FOLDER', folder)}
  }
}
`,
  );
  const log = createWriteStream(logFile('nginx'));
  const child = spawn(NGINX, ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: ['ignore', 'ignore', 'pipe'] });
  child.stderr.pipe(log);
  starting.defer(() => stop(child));
  await waitFor(async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with status ${child.exitCode}; see ${log.path}`);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  });
  const parts = starting.move();
  const host = `127.0.0.1:${port}`;
  return { origin: `http://${host}`, host, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

const DOCS = join(import.meta.dirname, '../../../docs');
/** The address from which the proxy connects, as the Supervisor does from its own. */
const PROXY_ADDRESS = '127.0.0.5';
const PREFIXES = ['/api/hassio_ingress/one', '/api/hassio_ingress/two'] as const;

/** What Home Assistant's ingress does: it strips the path, and names it and the user in headers. */
function locations(port: number): string {
  const ingress = PREFIXES.map(
    (prefix) => `location ${prefix}/ {
  proxy_pass http://127.0.0.1:${port}/;
  proxy_bind ${PROXY_ADDRESS};
  proxy_http_version 1.1;
  proxy_set_header Host $http_host;
  proxy_set_header Connection "";
  proxy_set_header X-Forwarded-Host $http_host;
  proxy_set_header X-Ingress-Path ${prefix};
  proxy_set_header X-Remote-User-Id 5f2c;
  proxy_set_header X-Remote-User-Name anna;
  proxy_set_header X-Remote-User-Display-Name "Anna Müller";
}`,
  );
  const style =
    'body{margin:0;display:grid;grid-template-columns:12rem 1fr;height:100vh;font-family:sans-serif}iframe{border:0;width:100%;height:100%}';
  const parent = `<!doctype html><meta charset="utf-8"><title>Parent</title><style>${style}</style><nav>Parent</nav><iframe src="${PREFIXES[0]}/"></iframe>`;
  return [...ingress, `location = / { default_type text/html; return 200 '${parent}'; }`].join('\n');
}

let browser: Browser;
let testHub: BrowserTestHub;
let port: number;
let nginx: Nginx;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
    port = await reservePort();
    const toml = `[ingress]\nlisten = "127.0.0.1:${port}"\nfrom = "${PROXY_ADDRESS}"`;
    testHub = parts.use(await startBrowserTestHub({}, { toml, env: { LATCHKEY_HUB_NAME: 'Cellar hub' } }));
    nginx = parts.use(await startNginx(locations(port)));
  },
  { skipReason: async () => nginxSkipReason() ?? (await browserSkipReason()) },
);

/** Opens the parent's page. */
async function openParent(visit: Visit): Promise<FrameLocator> {
  await visit.page.goto(`${nginx.origin}/`);
  return visit.page.frameLocator('iframe');
}

/** The address of the page in the frame. */
function frameUrl(page: Page): string {
  return page.frames()[1]?.url() ?? '';
}

describe('the configuration of nginx in the documentation', () => {
  const [, example = ''] = /```nginx\n(.*?)```/s.exec(readFileSync(join(DOCS, 'ingress.md'), 'utf8')) ?? [];
  const credentials = `Basic ${Buffer.from('anna:a-password').toString('base64')}`;

  it('the documented nginx shows the page to people who are signed in, and nobody can choose who they are', async () => {
    const server = example
      .replace('/etc/nginx/hub-users', 'FOLDER/hub-users')
      .replace('http://192.168.1.10:8099', `http://127.0.0.1:${port}`)
      .replace('location /hub/ {', `location /hub/ {\n    proxy_bind ${PROXY_ADDRESS};`);
    await using documented = await startNginx(server, { 'hub-users': 'anna:{PLAIN}a-password\n' });
    const forged = {
      'x-ingress-path': '/evil',
      'x-remote-user-id': 'x',
      'x-remote-user-display-name': 'Somebody else',
    };
    const send = (path: string, init: RequestInit = {}) =>
      fetch(`${documented.origin}/hub${path}`, { redirect: 'manual', ...init });
    expect((await send('/', { headers: forged })).status).toBe(401);
    const page = await send('/', { headers: { authorization: credentials, ...forged } });
    const text = await page.text();
    expect(text).toContain('id="add" href="/hub/appliances/add"');
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(text) ?? [];
    rememberSecrets([csrf]);
    const headers = { authorization: credentials, origin: documented.origin, ...forged };
    const form = { method: 'POST', headers, body: new URLSearchParams({ csrf }) };
    expect((await send('/registration/open', form)).headers.get('location')).toBe('/hub/');
    await waitFor(() => expect(testHub.hub.events('registration_opened').at(-1)).toMatchObject({ user: 'anna' }));
    await send('/registration/close', form);
  });
});

describe('the installer’s page in the frame of a reverse proxy', () => {
  it('an installer adds, connects and removes an appliance in the frame, also after its path has changed', async () => {
    await using visit = await browser.visit(DESKTOP);
    const { page } = visit;
    const frame = await openParent(visit);
    await frame.getByText('There are no appliances yet.').waitFor();
    await frame.getByRole('link', { name: 'Add an appliance' }).click();
    await frame.getByLabel(en.adding.scope, { exact: true }).fill('not"so');
    await frame.getByRole('button', { name: en.adding.add, exact: true }).click();
    await frame.getByText('Type a name.').waitFor();
    // The status of that page, 400, is reported as an error of the parent's.
    visit.clearBrowserErrors();
    await frame.getByLabel(en.adding.scope, { exact: true }).fill('');
    await frame.getByLabel('Name', { exact: true }).fill('wallbox');
    await frame.getByRole('button', { name: en.adding.add, exact: true }).click();
    await frame.getByText('wallbox has been added.').waitFor();
    rememberSecrets([(await frame.locator('#client-secret').textContent()) ?? '']);
    await frame.getByRole('button', { name: 'Connect wallbox now' }).click();
    await frame.getByText('Waiting for the login').waitFor();
    await visit.takeScreenshot('ingress-waiting');
    expect(await page.context().cookies()).toEqual([]);

    const [portal] = await Promise.all([
      page.context().waitForEvent('page'),
      frame.getByRole('link', { name: 'Log in at the portal' }).click(),
    ]);
    expect(await portal.evaluate('opener')).toBeNull();
    await logIn(portal);
    // The portal redirects to the hub's own address, which is not in the frame.
    await portal.getByText('wallbox is connected').waitFor();
    expect(new URL(portal.url()).port).toBe(String(testHub.hub.httpPort));
    await frame.getByRole('status').getByText('wallbox is connected').waitFor();
    await portal.close();

    await frame.getByRole('link', { name: 'wallbox' }).first().click();
    await frame.getByText('Connected after a login, by Anna Müller').waitFor();
    await visit.takeScreenshot('ingress-connected');
    await frame.locator('#more summary').click();
    await frame.getByRole('link', { name: 'Label for the cabinet door' }).click();
    await frame.getByRole('button', { name: 'Print' }).waitFor();
    expect(frameUrl(page)).toBe(`${nginx.origin}${PREFIXES[0]}/appliances/wallbox/label`);

    // The parent may show the page below another path, for example in a new session of its own.
    await page.evaluate((source) => document.querySelector('iframe')?.setAttribute('src', source), `${PREFIXES[1]}/`);
    await frame.getByText('wallbox is logged in, but has not fetched its access yet.').waitFor();
    await testHub.hub.addAppliance('heater');
    await frame.getByText('heater is not connected yet.').waitFor();
    await frame.getByRole('link', { name: 'wallbox' }).first().click();
    await frame.getByRole('button', { name: 'Refresh now' }).click();
    await frame.getByText('Access refreshed').waitFor();
    await frame.getByRole('link', { name: 'Disconnect' }).click();
    await frame.getByRole('button', { name: 'Disconnect' }).click();
    await frame.getByText('Disconnected, by Anna Müller').waitFor();
    await frame.getByRole('link', { name: 'Remove' }).click();
    await frame.getByRole('button', { name: 'Remove' }).click();
    await frame.getByText('heater is not connected yet.').waitFor();
    expect(frameUrl(page)).toBe(`${nginx.origin}${PREFIXES[1]}/`);
    expect((await testHub.hub.status()).appliances.map(({ name }) => name)).toEqual(['heater']);
    await waitFor(() =>
      expect(testHub.hub.events('appliance_removed')).toMatchObject([{ appliance: 'wallbox', user: 'Anna Müller' }]),
    );
    expect(visit.browserErrors).toEqual([]);
  });

  it('no other site can show the page in a frame, and the proxy’s site can not frame the hub’s own address', async () => {
    const addresses = [`${nginx.origin}${PREFIXES[0]}/`, `${nginx.origin}${PREFIXES[0]}/appliances/add`];
    await using other = await startForeignSite(() => addresses.map((url) => `<iframe src="${url}"></iframe>`).join(''));
    await using visit = await browser.visit({ ...DESKTOP, ignoreHTTPSErrors: true });
    const { page } = visit;
    await page.goto(other.url);
    const blocked = () => visit.browserErrors.filter((error) => /frame-ancestors|ERR_BLOCKED_BY_RESPONSE/.test(error));
    await waitFor(() => expect(blocked().length).toBeGreaterThanOrEqual(addresses.length));
    visit.clearBrowserErrors();
    await openParent(visit);
    await page.evaluate(
      (source) => document.querySelector('iframe')?.setAttribute('src', source),
      `${testHub.origin}/`,
    );
    await waitFor(() => expect(blocked().length).toBeGreaterThan(0));
    expect(await page.frameLocator('iframe').getByRole('textbox').count()).toBe(0);
  });
});
