import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { request } from 'undici';
import {
  APPLIANCE_SCOPES,
  CLIENT,
  endsWithRedirect,
  type OAuthServer,
  type OAuthServerOptions,
  USER,
} from './oauth-server.ts';
import { missingFilesReason, startServer } from './server-program.ts';

const PROGRAM = '/usr/bin/glewlwyd';
const SCHEMA = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3';
/** The administrator that the schema creates. */
const ADMINISTRATOR = { username: 'admin', password: 'password' };
/** The plugin instance, which gives the endpoints their paths. */
const PLUGIN = 'oidc';

/** Why glewlwyd can't be started here; null if it can. */
export function glewlwydSkipReason(): string | null {
  return missingFilesReason([PROGRAM, SCHEMA]);
}

/**
 * Starts glewlwyd with everything in a temporary folder, and configures it by its administration API. Refresh tokens can be
 * used once, and a second use revokes their successors.
 */
export async function startGlewlwyd({
  redirectUris,
  accessTokenTtl,
}: OAuthServerOptions): Promise<OAuthServer & AsyncDisposable> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-glewlwyd-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  const origin = `http://127.0.0.1:${await freePort()}`;
  await prepareFolder(folder, origin);
  const command = [PROGRAM, `--config-file=${join(folder, 'glewlwyd.conf')}`];
  const isReady = async () => (await request(`${origin}/config`)).body.dump();
  starting.use(await startServer('glewlwyd', command, isReady));
  await configure(origin, redirectUris, accessTokenTtl);

  const resources = starting.move();
  const issuer = `${origin}/api/${PLUGIN}`;
  return {
    issuer,
    endpoints: {
      authorization: `${issuer}/auth`,
      token: `${issuer}/token`,
      revocation: `${issuer}/revoke`,
      introspection: `${issuer}/introspect`,
    },
    client: CLIENT,
    async loginByScript(url) {
      const user = await signIn(origin, { username: USER.name, password: USER.password });
      await user('PUT', `/api/auth/grant/${CLIENT.id}`, { scope: APPLIANCE_SCOPES.join(' ') });
      // With this parameter the login page says that the user wants to go on.
      const location = await user('GET', `${url.slice(origin.length)}&g_continue`);
      if (!endsWithRedirect(url) && !location.includes('prompt=deviceComplete')) {
        throw new Error(`the device flow ended at ${location}`);
      }
      return location;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** The external URL is part of its configuration, so the port must be known before it listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Writes the database and the configuration. There are no pages: logins use the API. */
async function prepareFolder(folder: string, origin: string): Promise<void> {
  const file = join(folder, 'glewlwyd.db');
  const database = new Database(file);
  database.exec(await readFile(SCHEMA, 'utf8'));
  database.close();
  const settings = {
    external_url: origin,
    bind_address: '127.0.0.1',
    login_url: 'login.html',
    api_prefix: 'api',
    log_mode: 'console',
    log_level: 'WARNING',
    admin_scope: 'g_admin',
    profile_scope: 'g_profile',
    hash_algorithm: 'SHA512',
    user_module_path: '/usr/lib/glewlwyd/user',
    client_module_path: '/usr/lib/glewlwyd/client',
    user_auth_scheme_module_path: '/usr/lib/glewlwyd/scheme',
    plugin_module_path: '/usr/lib/glewlwyd/plugin',
  };
  const configuration = [
    `port = ${new URL(origin).port}`,
    'cookie_secure = 0',
    ...Object.entries(settings).map(([name, value]) => `${name} = "${value}"`),
    `database = { type = "sqlite3"; path = "${file}"; };`,
  ];
  await writeFile(join(folder, 'glewlwyd.conf'), configuration.join('\n'));
}

/** Creates the plugin instance, scopes, user and client. */
async function configure(origin: string, redirectUris: readonly string[], accessTokenTtl: number): Promise<void> {
  const administrator = await signIn(origin, ADMINISTRATOR);
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await administrator('POST', '/api/mod/plugin/', {
    module: 'oidc',
    name: PLUGIN,
    display_name: PLUGIN,
    enabled: true,
    parameters: {
      iss: `${origin}/api/${PLUGIN}`,
      'oauth-as-iss-id': true,
      'jwt-type': 'ecdsa',
      'jwt-key-size': '256',
      key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      cert: keys.publicKey.export({ type: 'spki', format: 'pem' }),
      'access-token-duration': accessTokenTtl,
      'refresh-token-duration': 86_400,
      'refresh-token-rolling': true,
      'refresh-token-one-use': 'always',
      'code-duration': 600,
      'allow-non-oidc': true,
      'auth-type-code-enabled': true,
      'auth-type-refresh-enabled': true,
      'auth-type-device-enabled': true,
      'device-authorization-expiration': 600,
      'device-authorization-interval': 1,
      'pkce-allowed': true,
      'pkce-required': true,
      'introspection-revocation-allowed': true,
      'introspection-revocation-allow-target-client': true,
    },
  });
  for (const name of APPLIANCE_SCOPES) {
    await administrator('POST', '/api/scope/', { name, display_name: name, password_required: true, scheme: {} });
  }
  await administrator('POST', '/api/user/', {
    username: USER.name,
    password: USER.password,
    name: USER.name,
    enabled: true,
    scope: ['g_profile', ...APPLIANCE_SCOPES],
  });
  await administrator('POST', '/api/client/', {
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    name: 'Latchkey',
    confidential: true,
    enabled: true,
    redirect_uri: redirectUris,
    authorization_type: ['code', 'refresh_token', 'device_authorization', 'client_credentials'],
    token_endpoint_auth_method: ['client_secret_basic', 'client_secret_post'],
    scope: APPLIANCE_SCOPES,
  });
}

/** Sends a request in the session of a user. @returns where the response redirects to; empty if nowhere */
type Session = (method: 'GET' | 'POST' | 'PUT', path: string, body?: object) => Promise<string>;

async function signIn(
  origin: string,
  user: { readonly username: string; readonly password: string },
): Promise<Session> {
  let cookie = '';
  const send: Session = async (method, path, body) => {
    const response = await request(origin + path, {
      method,
      headers: { cookie, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.body.text();
    if (response.statusCode >= 400) throw new Error(`${method} ${path} got HTTP ${response.statusCode}: ${text}`);
    const [line] = [response.headers['set-cookie'] ?? []].flat();
    if (line !== undefined) cookie = line.split(';')[0] ?? '';
    const { location } = response.headers;
    return typeof location === 'string' ? location : '';
  };
  await send('POST', '/api/auth/', user);
  return send;
}
