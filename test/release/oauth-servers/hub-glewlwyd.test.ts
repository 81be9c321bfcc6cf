import { describe } from 'vitest';
import { glewlwydSkipReason, startGlewlwyd } from '../../support/oauth-servers/glewlwyd.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { testLogins } from './hub-logins.ts';
import { portalTable } from './hub-portal.ts';
import { testLostAnswers, testRefreshes } from './hub-refreshes.ts';

describe('a hub at glewlwyd', () => {
  skipIfUnavailable(glewlwydSkipReason);

  testLogins({
    skipReason: glewlwydSkipReason,
    start: (redirectUris) => startGlewlwyd({ redirectUris }),
    methods: {
      basic: (server) => portalTable(server, { client_auth: 'basic' }),
      post: (server) => portalTable(server, { client_auth: 'post' }),
    },
    logins: ['device', 'redirect', 'paste'],
  });

  const strict = {
    start: (redirectUri: string, accessTokenTtl: number) =>
      startGlewlwyd({ redirectUris: [redirectUri], accessTokenTtl }),
    keys: { login: 'redirect', retry_lost_answer: 'late' },
    // It refuses a refresh token with HTTP 400 and no body, which a firewall could also send.
    reuse: 'rejected',
  } as const;
  testRefreshes(strict);
  testLostAnswers(strict);
});
