import { describe } from 'vitest';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { authlibSkipReason, startAuthlib } from './servers/authlib.ts';

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
