import { describe } from 'vitest';
import {
  djangoOAuthToolkitSkipReason,
  startDjangoOAuthToolkit,
} from '../../support/oauth-servers/django-oauth-toolkit.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { testLogins } from './hub-logins.ts';
import { portalTable } from './hub-portal.ts';
import { testRefreshes } from './hub-refreshes.ts';

describe('a hub at django-oauth-toolkit', () => {
  skipIfUnavailable(djangoOAuthToolkitSkipReason);

  testLogins({
    skipReason: djangoOAuthToolkitSkipReason,
    start: (redirectUris) => startDjangoOAuthToolkit({ redirectUris }),
    methods: {
      basic: (server) => portalTable(server, { client_auth: 'basic' }),
      post: (server) => portalTable(server, { client_auth: 'post' }),
    },
    logins: ['redirect', 'paste'],
  });

  testRefreshes({
    start: (redirectUri, accessTokenTtl) =>
      startDjangoOAuthToolkit({ redirectUris: [redirectUri], accessTokenTtl, gracePeriod: 600 }),
    keys: { refresh_ends_access_token: true },
    reuse: 'accepted',
  });
});
