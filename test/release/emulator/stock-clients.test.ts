import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../../src/emulator/index.ts';
import { ALICE } from '../../emulator/portal-client.ts';
import { runCommand, temporaryFolder } from '../../project/checkout.ts';
import { browserSkipReason, DESKTOP, startBrowser } from '../../support/browser.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { GO_CACHE } from '../../support/program.ts';

const REDIRECT_URI = 'http://localhost:3000/callback';
const APP = { id: 'app', secret: 'app-secret', redirectUris: [REDIRECT_URI] };
const PACKAGES = ['oidc-client-ts@3.5.0', '@azure/msal-node@7.2.3', '@modelcontextprotocol/sdk@1.32.2'];

let folder: ReturnType<typeof temporaryFolder>;

/** Installs the clients in a folder of their own, as in a project that uses them. */
beforeAll(async () => {
  folder = temporaryFolder();
  const options = ['--prefix', folder.path, '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];
  const { status, stderr } = await runCommand('npm', ['install', ...options, ...PACKAGES]);
  expect(status, stderr).toBe(0);
});
afterAll(() => folder?.[Symbol.dispose]());

/** What a program of `clients/` prints. */
type Printed = Readonly<Record<string, unknown>> & { readonly tokens: readonly string[] };

/** Runs a program with the addresses of a server, which serves HTTPS and logs ALICE in without a page. */
async function run(command: string, args: readonly string[]): Promise<Printed> {
  const caFile = join(folder.path, 'ca.pem');
  const options = { clients: [APP], users: [ALICE], autoLogin: true, tls: true, caFile };
  await using emulator = await startEmulator(options);
  const env = {
    ...process.env,
    ...{ NODE_EXTRA_CA_CERTS: caFile, REQUESTS_CA_BUNDLE: caFile, SSL_CERT_FILE: caFile, PYTHONDONTWRITEBYTECODE: '1' },
    ...{ ISSUER: emulator.frontendUrl, API: `${emulator.baseUrl}/api/whoami` },
    ...{ CLIENT_ID: APP.id, CLIENT_SECRET: APP.secret, REDIRECT_URI },
  };
  const { status, stdout, stderr } = await runCommand(command, args, { cwd: folder.path, env });
  expect(status, stderr).toBe(0);
  const printed = JSON.parse(stdout) as Printed;
  rememberSecrets(emulator.secretsIssued());
  expect(new Set(printed.tokens).size).toBe(printed.tokens.length);
  expect(emulator.secretsIssued('access_token')).toEqual(expect.arrayContaining([...printed.tokens]));
  const findings = Object.entries(emulator.findings()).filter(
    ([name, list]) => name !== 'earlyRefreshes' && list.length > 0,
  );
  expect(findings).toEqual([]);
  return printed;
}

/** Copies a program to where it finds its packages. */
function program(name: string): string {
  const file = join(folder.path, basename(name));
  copyFileSync(join(import.meta.dirname, 'clients', name), file);
  return file;
}

test('@azure/msal-node logs in, renews its tokens silently, and gets access of its own', async () => {
  const printed = await run(process.execPath, [program('msal.mjs')]);
  expect(printed).toMatchObject({ user: 'alice', nonce: true, scopes: expect.arrayContaining(['read', 'openid']) });
  expect(printed.tokens).toHaveLength(3);
});

test('@modelcontextprotocol/sdk finds the server by the address of the API, registers itself, logs in and refreshes', async () => {
  const printed = await run(process.execPath, [program('mcp.mjs')]);
  expect(printed['outcomes']).toEqual(['REDIRECT', 'AUTHORIZED', 'AUTHORIZED']);
  expect(printed.tokens).toHaveLength(2);
});

const ACCESS = [
  { user: 'alice', scope: 'openid read' },
  { user: APP.id, scope: 'read' },
];

test.skipIf(!existsSync('/usr/lib/python3/dist-packages/authlib'))(
  'Authlib checks the ID token, and uses userinfo, introspection, refresh, revocation and client credentials',
  async () => {
    const printed = await run('/usr/bin/python3', [program('authlib_client.py')]);
    expect(printed).toMatchObject({ user: 'alice', userinfo: 'alice', active: [true, false], called: ACCESS });
  },
);

test.skipIf(!existsSync('/usr/bin/go') || !existsSync('/usr/share/gocode/src/golang.org/x/oauth2'))(
  'golang.org/x/oauth2 logs in with PKCE and nonce, refreshes, and gets access of its own',
  async () => {
    const built = join(folder.path, 'go-oauth2');
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: GO_CACHE };
    const source = join(import.meta.dirname, 'clients/go-oauth2/main.go');
    const build = await runCommand('/usr/bin/go', ['build', '-o', built, source], { env });
    expect(build.status, build.stderr).toBe(0);
    expect(await run(built, [])).toMatchObject({ user: 'alice', userinfo: 'alice', nonce: true, called: ACCESS });
  },
);

/** A single-page application with oidc-client-ts, whose `manager` is in the page. */
async function startApplication({ frontendUrl }: Emulator, more: string) {
  const library = readFileSync(join(folder.path, 'node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js'));
  const page = `<!doctype html><link rel="icon" href="data:,"><script src="/oidc.js"></script><script>
    const own = location.origin + '/';
    const manager = new oidc.UserManager({ authority: ${JSON.stringify(frontendUrl)}, client_id: 'app', redirect_uri: own,
      post_logout_redirect_uri: own + 'bye', silent_redirect_uri: own + 'silent', scope: 'openid email read',
      userStore: new oidc.WebStorageStateStore({ store: localStorage }), ${more} });
    if (location.pathname === '/silent') manager.signinSilentCallback();
    </script><p>The application</p>`;
  const server = createServer(({ url }, response) => {
    const isLibrary = url === '/oidc.js';
    response.setHeader('content-type', isLibrary ? 'text/javascript' : 'text/html').end(isLibrary ? library : page);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  return { origin, [Symbol.asyncDispose]: async () => void server.close() };
}

/** Runs code in a page. @returns its result, or the message of its error */
const inPage = (page: Page, code: string): Promise<unknown> =>
  page.evaluate(`(async () => { ${code} })().catch((error) => error.message)`);

const PROFILE = 'return [user.profile.sub, user.profile.email, user.token_type.toLowerCase(), user.access_token];';

test.skipIf((await browserSkipReason()) !== null).for<[string, string, string]>([
  ['bearer tokens', 'bearer', 'loadUserInfo: true,'],
  // It sends no proof to the userinfo endpoint.
  ['DPoP', 'dpop', 'dpop: { bind_authorization_code: true, store: new oidc.IndexedDbDPoPStore() },'],
])(
  'a web page with oidc-client-ts and %s logs in, refreshes, renews in a frame, calls the API, and logs out',
  async ([, type, more]) => {
    const users = [{ ...ALICE, claims: { email: 'alice@example.com' } }];
    const app = { id: 'app', redirectUris: [] as string[], postLogoutRedirectUris: [] as string[] };
    await using emulator = await startEmulator({
      users,
      clients: [app],
      redirectRule: 'any',
      dpop: type === 'dpop' ? 'required' : 'optional',
    });
    await using application = await startApplication(emulator, more);
    app.postLogoutRedirectUris.push(`${application.origin}/bye`);
    await using browser = await startBrowser();
    await using visit = await browser.visit(DESKTOP);
    const { page } = visit;
    await page.goto(`${application.origin}/`);
    await inPage(page, 'setTimeout(() => manager.signinRedirect());');
    await page.getByLabel('User name').fill(ALICE.name);
    await page.getByLabel('Password').fill(ALICE.password);
    await page.getByRole('button', { name: 'Log in and allow' }).click();
    await page.getByText('The application').waitFor();
    const first = await inPage(page, `const user = await manager.signinCallback(); ${PROFILE}`);
    const about = ['alice', 'alice@example.com', type];
    expect(first).toEqual([...about, expect.any(String)]);
    const refreshed = await inPage(page, `const user = await manager.signinSilent(); ${PROFILE}`);
    expect(refreshed).toEqual([...about, expect.any(String)]);
    expect(refreshed).not.toEqual(first);
    const call = `const user = await manager.getUser(); const url = '${emulator.baseUrl}/api/whoami';
      const headers = ${
        type === 'dpop'
          ? "{ authorization: 'DPoP ' + user.access_token, dpop: await manager.dpopProof(url, user, 'GET') }"
          : "{ authorization: 'Bearer ' + user.access_token }"
      };
      return await (await fetch(url, { headers })).json();`;
    expect(await inPage(page, call)).toEqual({ user: 'alice', scope: 'openid email read' });
    const inFrame = `const user = await manager.signinSilent(); ${PROFILE}`;
    expect(await inPage(page, `await manager.removeUser(); ${inFrame}`)).toEqual([...about, expect.any(String)]);
    expect(emulator.requests.filter(({ query }) => query['prompt'] === 'none')).toHaveLength(1);
    expect(visit.browserErrors).toEqual([]);
    await inPage(page, 'await manager.revokeTokens(["refresh_token"]);');
    expect(emulator.grants().map(({ revoked }) => revoked)).toContain(true);
    await inPage(page, 'setTimeout(() => manager.signoutRedirect());');
    await page.waitForURL(`${application.origin}/bye*`);
    expect(await inPage(page, inFrame)).toMatch(/login_required|End-User/);
    rememberSecrets(emulator.secretsIssued());
  },
);
