import { join } from 'node:path';
import { describe } from 'vitest';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { visitForms } from './servers/form-visitor.ts';
import { APPLIANCE_SCOPES, CLIENT, type OAuthServer, type OAuthServerOptions, USER } from './servers/oauth-server.ts';
import { missingFilesReason, startServerOnOwnPort } from './servers/server-program.ts';

const PYTHON = '/usr/bin/python3';
const PACKAGES = ['authlib', 'flask'].map((name) => `/usr/lib/python3/dist-packages/${name}`);

/** Why the server can't be started here; null if it can. */
function authlibSkipReason(): string | null {
  return missingFilesReason([PYTHON, ...PACKAGES]);
}

/** Starts a server by Authlib. It rotates refresh tokens, and has no metadata, device flow or revocation endpoint. */
async function startAuthlib({
  redirectUris,
  accessTokenTtl,
}: OAuthServerOptions): Promise<OAuthServer & AsyncDisposable> {
  const settings = { redirectUris, accessTokenTtl, scopes: APPLIANCE_SCOPES, client: CLIENT, user: USER };
  const program = join(import.meta.dirname, 'servers/authlib_program.py');
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

describe('a hub at Authlib', () => {
  testServer({
    skipReason: authlibSkipReason,
    start: async (redirectUris, parts) =>
      parts.use(await startAuthlib({ redirectUris, accessTokenTtl: TOKEN_LIFETIME })),
    methods: { basic: () => ({ keys: { client_auth: 'basic' } }), post: () => ({ keys: { client_auth: 'post' } }) },
    logins: ['redirect', 'paste'],
    refreshes: { retry_lost_answer: 'late' },
    reuse: 'refused',
  });
});
