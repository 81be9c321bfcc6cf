import { join } from 'node:path';
import { visitForms } from './form-visitor.ts';
import { APPLIANCE_SCOPES, CLIENT, type OAuthServer, type OAuthServerOptions, USER } from './oauth-server.ts';
import { missingFilesReason, startServerOnOwnPort } from './server-program.ts';

const PYTHON = '/usr/bin/python3';
const PACKAGES = ['authlib', 'flask'].map((name) => `/usr/lib/python3/dist-packages/${name}`);

/** Why the server can't be started here; null if it can. */
export function authlibSkipReason(): string | null {
  return missingFilesReason([PYTHON, ...PACKAGES]);
}

/** Starts a server by Authlib. It rotates refresh tokens, and has no metadata, device flow or revocation endpoint. */
export async function startAuthlib({
  redirectUris,
  accessTokenTtl,
}: OAuthServerOptions): Promise<OAuthServer & AsyncDisposable> {
  const settings = { redirectUris, accessTokenTtl, scopes: APPLIANCE_SCOPES, client: CLIENT, user: USER };
  const program = join(import.meta.dirname, 'authlib_program.py');
  const { origin, ...process } = await startServerOnOwnPort('authlib', [PYTHON, program, JSON.stringify(settings)]);
  return {
    ...process,
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
  };
}
