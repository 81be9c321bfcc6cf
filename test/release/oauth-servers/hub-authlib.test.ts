import { describe } from 'vitest';
import { authlibSkipReason, startAuthlib } from '../../support/oauth-servers/authlib.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { testLogins } from './hub-logins.ts';
import { portalTable } from './hub-portal.ts';
import { testLostAnswers, testRefreshes } from './hub-refreshes.ts';

describe('a hub at Authlib', () => {
  skipIfUnavailable(authlibSkipReason);

  testLogins({
    skipReason: authlibSkipReason,
    start: (redirectUris) => startAuthlib({ redirectUris, quirks: [] }),
    methods: {
      basic: (server) => portalTable(server, { client_auth: 'basic' }),
      post: (server) => portalTable(server, { client_auth: 'post' }),
    },
    logins: ['redirect', 'paste'],
  });

  const strict = {
    start: (redirectUri: string, accessTokenTtl: number) =>
      startAuthlib({ redirectUris: [redirectUri], accessTokenTtl, quirks: [] }),
    keys: { retry_lost_answer: 'late' },
    reuse: 'refused',
  } as const;
  testRefreshes(strict);
  testLostAnswers(strict);
});
