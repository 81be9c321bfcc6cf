import { describe } from 'vitest';
import { startOidcProvider } from '../../support/oauth-servers/oidc-provider.ts';
import { testLostAnswers, testRefreshes } from './hub-refreshes.ts';

describe('a hub at oidc-provider', () => {
  const strict = {
    start: (redirectUri: string, accessTokenTtl: number) =>
      startOidcProvider({ redirectUris: [redirectUri], accessTokenTtl }),
    keys: { login: 'redirect', retry_lost_answer: 'late' },
    reuse: 'refused',
  } as const;
  testRefreshes(strict);
  testLostAnswers(strict);
});
