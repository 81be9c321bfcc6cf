import { describe } from 'vitest';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { glewlwydSkipReason, startGlewlwyd } from './servers/glewlwyd.ts';

describe('a hub at glewlwyd', () => {
  testServer({
    skipReason: glewlwydSkipReason,
    start: async (redirectUris, parts) =>
      parts.use(await startGlewlwyd({ redirectUris, accessTokenTtl: TOKEN_LIFETIME })),
    methods: { basic: () => ({ keys: { client_auth: 'basic' } }), post: () => ({ keys: { client_auth: 'post' } }) },
    logins: ['device', 'redirect', 'paste'],
    refreshes: { retry_lost_answer: 'late' },
    // It refuses a refresh token with HTTP 400 and no body, which a firewall could also send.
    reuse: 'rejected',
    keepsAccessTokens: true,
  });
});
