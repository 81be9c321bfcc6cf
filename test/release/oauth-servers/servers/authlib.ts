import { join } from 'node:path';
import { request } from 'undici';
import { visitForms } from './form-visitor.ts';
import { APPLIANCE_SCOPES, CLIENT, type OAuthServer, type OAuthServerOptions, USER } from './oauth-server.ts';
import { missingFilesReason, startServerOnOwnPort } from './server-program.ts';

const PYTHON = '/usr/bin/python3';
const PACKAGES = ['authlib', 'flask'].map((name) => `/usr/lib/python3/dist-packages/${name}`);
/** Beside a server's own paths. */
const CONTROL_PATH = '/_control';

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

/** Why the servers can't be started here; null if they can. */
export function authlibSkipReason(): string | null {
  return missingFilesReason([PYTHON, ...PACKAGES]);
}

/** A server by Authlib. It rotates refresh tokens, and has no metadata, device flow or revocation endpoint. */
export interface Authlib extends OAuthServer {
  /** The last response of the token endpoint. */
  lastResponse(): Promise<{ readonly status: number; readonly body: string }>;
  /** Revokes all refresh tokens, as the user or the vendor could. */
  revokeRefreshTokens(): Promise<void>;
}

/** Starts one server for each list of quirks, all in one process. */
export async function startAuthlib<Name extends string>({
  redirectUris,
  accessTokenTtl,
  quirks,
}: OAuthServerOptions & { readonly quirks: Readonly<Record<Name, readonly Quirk[]>> }): Promise<
  AsyncDisposable & { readonly servers: Readonly<Record<Name, Authlib>> }
> {
  const names = Object.keys(quirks) as Name[];
  const settings = {
    ...{ redirectUris, accessTokenTtl, quirks: names.map((name) => quirks[name]) },
    ...{ scopes: APPLIANCE_SCOPES, client: CLIENT, user: USER, controlPath: CONTROL_PATH },
  };
  const program = join(import.meta.dirname, 'authlib_program.py');
  const { ports, ...process } = await startServerOnOwnPort('authlib', [PYTHON, program, JSON.stringify(settings)]);
  const servers = names.map((name, index) => [name, serverAt(`http://127.0.0.1:${ports[index]}`)]);
  return { ...process, servers: Object.fromEntries(servers) };
}

function serverAt(origin: string): Authlib {
  const control = (method: 'GET' | 'DELETE') => request(origin + CONTROL_PATH, { method });
  return {
    issuer: null,
    endpoints: {
      authorization: `${origin}/authorize`,
      token: `${origin}/token`,
      revocation: null,
      introspection: null,
    },
    client: CLIENT,
    async loginByScript(url) {
      const end = await visitForms(url, { username: USER.name, password: USER.password });
      if (end.text !== null) throw new Error(`login failed: ${end.text}`);
      return end.url;
    },
    lastResponse: async () => (await (await control('GET')).body.json()) as { status: number; body: string },
    revokeRefreshTokens: async () => (await control('DELETE')).body.dump(),
  };
}
