import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { visitForms } from './servers/form-visitor.ts';
import { APPLIANCE_SCOPES, CLIENT, type OAuthServer, type OAuthServerOptions, USER } from './servers/oauth-server.ts';
import { missingFilesReason, startServerOnOwnPort } from './servers/server-program.ts';

const PYTHON = '/usr/bin/python3';
const PACKAGES = ['django', 'oauth2_provider'].map((name) => `/usr/lib/python3/dist-packages/${name}`);

/** Why django-oauth-toolkit can't be started here; null if it can. */
function djangoOAuthToolkitSkipReason(): string | null {
  return missingFilesReason([PYTHON, ...PACKAGES]);
}

/** For how long a refresh token that was used is still accepted, in seconds. */
const GRACE_PERIOD = 600;

/**
 * Starts a Django project with django-oauth-toolkit. It rotates refresh tokens, but accepts a used one during the grace
 * period; it has no metadata and no device flow.
 */
async function startDjangoOAuthToolkit({
  redirectUris,
  accessTokenTtl,
}: OAuthServerOptions): Promise<OAuthServer & AsyncDisposable> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-django-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  const database = join(folder, 'django.db');
  const program = join(import.meta.dirname, 'servers/django_oauth_toolkit_program.py');
  const settings = {
    database,
    redirectUris,
    accessTokenTtl,
    gracePeriod: GRACE_PERIOD,
    scopes: APPLIANCE_SCOPES,
    client: CLIENT,
    user: USER,
  };
  const { origin } = starting.use(
    await startServerOnOwnPort('django-oauth-toolkit', [PYTHON, program, JSON.stringify(settings)]),
  );
  const resources = starting.move();
  return {
    issuer: null,
    endpoints: {
      authorization: `${origin}/o/authorize/`,
      token: `${origin}/o/token/`,
      revocation: `${origin}/o/revoke_token/`,
      introspection: `${origin}/o/introspect/`,
    },
    client: CLIENT,
    async loginByScript(url) {
      const end = await visitForms(url, { username: USER.name, password: USER.password, allow: 'Authorize' });
      if (end.text !== null) throw new Error(`login failed: ${end.text}`);
      return end.url;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

describe('a hub at django-oauth-toolkit', () => {
  testServer({
    skipReason: djangoOAuthToolkitSkipReason,
    start: async (redirectUris, parts) =>
      parts.use(await startDjangoOAuthToolkit({ redirectUris, accessTokenTtl: TOKEN_LIFETIME })),
    methods: { basic: () => ({ keys: { client_auth: 'basic' } }), post: () => ({ keys: { client_auth: 'post' } }) },
    logins: ['redirect', 'paste'],
    refreshes: { refresh_ends_access_token: true },
    reuse: 'accepted',
  });
});
