import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { ALICE, get, post, redirectLocation } from '../../emulator/portal-client.ts';
import { temporaryFolder } from '../../project/checkout.ts';
import { reservePort } from '../../support/hub-process.ts';
import { logFile, rememberSecrets } from '../../support/logs.ts';
import { waitFor } from '../../support/wait-for.ts';

const APACHE = '/usr/sbin/apache2';
const MODULES = '/usr/lib/apache2/modules';
const LOADED = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'dir', 'headers', 'auth_openidc'];
const CLIENT = { id: 'apache', secret: 'apache-secret' };

/** Starts Debian's Apache with a page that only people may see who have logged in at an issuer. */
async function startApache(issuer: string, port: number) {
  const folder = temporaryFolder();
  const { path } = folder;
  // Its processes run as another user if it was started as root.
  chmodSync(path, 0o755);
  mkdirSync(join(path, 'www/secure'), { recursive: true });
  writeFileSync(join(path, 'www/secure/index.html'), 'for people');
  const origin = `http://127.0.0.1:${port}`;
  const configuration = `ServerRoot "${path}"
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
PidFile "${path}/pid"
ErrorLog /dev/stderr
User www-data
Group www-data
${LOADED.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
DocumentRoot "${path}/www"
OIDCProviderMetadataURL ${issuer}/.well-known/openid-configuration
OIDCClientID ${CLIENT.id}
OIDCClientSecret ${CLIENT.secret}
OIDCRedirectURI ${origin}/secure/callback
OIDCCryptoPassphrase a-passphrase
OIDCScope "openid read"
OIDCPKCEMethod S256
OIDCRemoteUserClaim sub
# Longer than the lifetime of a token, so that every request refreshes.
OIDCRefreshAccessTokenBeforeExpiry 4000
<Location /secure>
  AuthType openid-connect
  Require valid-user
  Header set X-User expr=%{REMOTE_USER}
</Location>
`;
  writeFileSync(join(path, 'httpd.conf'), configuration);
  // It opens its error log by name, which it can't do with a pipe of Node.
  const stdio = ['ignore', 'ignore', openSync(logFile('apache'), 'w')] as const;
  const child = spawn(APACHE, ['-f', join(path, 'httpd.conf'), '-D', 'FOREGROUND'], { stdio: [...stdio] });
  await waitFor(() => fetch(`${origin}/`));
  return {
    origin,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      folder[Symbol.dispose]();
    },
  };
}

test.skipIf(!existsSync(`${MODULES}/mod_auth_openidc.so`))(
  'mod_auth_openidc logs a browser in at an issuer with a path, refreshes, reads userinfo, and logs it out',
  async () => {
    const port = await reservePort();
    const origin = `http://127.0.0.1:${port}`;
    const addresses = { redirectUris: [`${origin}/secure/callback`], postLogoutRedirectUris: [`${origin}/bye`] };
    await using emulator = await startEmulator({
      ...{ clients: [{ ...CLIENT, ...addresses }], users: [ALICE], issuers: ['staff'], pkce: 'required' },
    });
    await using apache = await startApache(`${emulator.frontendUrl}/staff`, port);
    const cookies = new Map<string, string>();
    // Not fetch, whose Sec-Fetch-Mode tells that it is no browser.
    const visit = async (url: string) => {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const { headers, body } = await request(url, { headers: { cookie, accept: 'text/html' } });
      for (const one of [headers['set-cookie'] ?? []].flat()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
        cookies.set(name, value);
      }
      return { location: String(headers['location']), user: headers['x-user'], text: await body.text() };
    };
    const { location: login } = await visit(`${apache.origin}/secure/`);
    const allowed = await post(login, { username: ALICE.name, password: ALICE.password });
    expect((await visit(redirectLocation(allowed))).location).toBe(`${apache.origin}/secure/`);
    const page = await visit(`${apache.origin}/secure/`);
    expect([page.user, page.text]).toEqual(['alice', 'for people']);
    const [grant] = emulator.grants();
    expect(grant).toMatchObject({ user: 'alice', scope: 'openid read', generation: 2 });
    const used = new Set(emulator.requests.map(({ endpoint, status }) => `${endpoint} ${status}`));
    expect([...used].sort()).toEqual(['authorize 303', 'discovery 200', 'token 200', 'userinfo 200']);
    const bye = encodeURIComponent(`${apache.origin}/bye`);
    const { location: logout } = await visit(`${apache.origin}/secure/callback?logout=${bye}`);
    expect(redirectLocation(await get(logout))).toBe(`${apache.origin}/bye`);
    expect(emulator.grants()).toMatchObject([{ revoked: true }]);
    rememberSecrets(emulator.secretsIssued());
  },
);
