import { join } from 'node:path';
import { visitForms } from './form-visitor.ts';
import {
  APPLIANCE_SCOPES,
  CLIENT,
  type OAuthServer,
  type OAuthServerOptions,
  USER,
  waitForRedirect,
} from './oauth-server.ts';
import { CONTROL_PATH, missingFilesReason, refreshTokenControl, startServerOnOwnPort } from './server-program.ts';

const PYTHON = '/usr/bin/python3';
const PACKAGES = ['authlib', 'flask'].map((name) => `/usr/lib/python3/dist-packages/${name}`);

/** What a cloud's token endpoint does that RFC 6749 does not allow or clients do not expect. */
export type Quirk =
  /** Every response is HTTP 200 with `status` and `body`; status 0 is success, another has an `error`. */
  | 'envelope'
  | 'string-expires-in'
  /** In requests and responses. */
  | 'comma-scopes'
  | 'no-token-type'
  /** The response to a refresh has no refresh token, and the old one stays valid. */
  | 'no-new-refresh-token'
  /** The response to a refresh names only the first scope. */
  | 'narrowed-scope'
  /** Errors have a page as their body. */
  | 'html-errors'
  | 'invalid-grant-401';

/** Why the server can't be started here; null if it can. */
export function authlibSkipReason(): string | null {
  return missingFilesReason([PYTHON, ...PACKAGES]);
}

interface AuthlibOptions extends OAuthServerOptions {
  readonly quirks: readonly Quirk[];
}

/** Starts a server by Authlib with quirks. It rotates refresh tokens, and has no metadata, device flow or revocation. */
export async function startAuthlib({
  redirectUris,
  accessTokenTtl = 3600,
  quirks,
}: AuthlibOptions): Promise<OAuthServer> {
  const settings = {
    redirectUris,
    accessTokenTtl,
    quirks,
    scopes: APPLIANCE_SCOPES,
    client: CLIENT,
    user: USER,
    controlPath: CONTROL_PATH,
  };
  const program = join(import.meta.dirname, 'authlib_program.py');
  const server = await startServerOnOwnPort('authlib', [PYTHON, program, JSON.stringify(settings)]);
  return {
    issuer: null,
    endpoints: {
      authorization: `${server.origin}/authorize`,
      token: `${server.origin}/token`,
      deviceAuthorization: null,
      revocation: null,
      introspection: null,
    },
    client: CLIENT,
    scope: APPLIANCE_SCOPES.join(quirks.includes('comma-scopes') ? ',' : ' '),
    async login(page, url) {
      await page.goto(url);
      await page.getByLabel('Name').fill(USER.name);
      await page.getByLabel('Password').fill(USER.password);
      await page.getByRole('button', { name: 'Allow' }).click();
      return waitForRedirect(page, url);
    },
    async loginByScript(url) {
      const end = await visitForms(url, { username: USER.name, password: USER.password });
      if (end.text !== null) throw new Error(`login failed: ${end.text}`);
      return end.url;
    },
    ...refreshTokenControl(server.origin),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
