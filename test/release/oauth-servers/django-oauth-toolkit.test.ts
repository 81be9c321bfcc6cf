import { describe } from 'vitest';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { djangoOAuthToolkitSkipReason, startDjangoOAuthToolkit } from './servers/django-oauth-toolkit.ts';

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
