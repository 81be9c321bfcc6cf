import { describe, expect, test } from 'vitest';
import type { PortalKeys } from './hub-at-server.ts';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { type Authlib, authlibSkipReason, type Quirk, startAuthlib } from './servers/authlib.ts';

/** A server with quirks, what a hub needs to be told of them, and what comes out. */
interface Case {
  readonly quirks: readonly Quirk[];
  readonly keys?: PortalKeys;
  /** The response to a refresh; default: the usual one. */
  readonly refreshed?: object;
  /** The scope of the token after it; default: as requested. */
  readonly scope?: string;
  /** The response to a refresh after the login was revoked; default: as in RFC 6749. */
  readonly refused?: { readonly status: number; readonly body: string };
  /** The connection then; default: a new login is needed. */
  readonly revoked?: { readonly state: string; readonly problem: { readonly code: string } };
}

const TOKENS = {
  access_token: expect.any(String),
  refresh_token: expect.any(String),
  token_type: 'Bearer',
  expires_in: TOKEN_LIFETIME,
  scope: 'monitoring control',
};
const REFUSED = { status: 400, body: '{"error": "invalid_grant"}' };
const NEEDS_LOGIN = { state: 'needs_pairing', problem: { code: 'refused' } };
const CASES: Readonly<Record<string, Case>> = {
  plain: { quirks: [] },
  'string-expires-in': { quirks: ['string-expires-in'], refreshed: { ...TOKENS, expires_in: `${TOKEN_LIFETIME}` } },
  'comma-scopes': {
    ...{ quirks: ['comma-scopes'], keys: { scope_separator: ',' } },
    refreshed: { ...TOKENS, scope: 'monitoring,control' },
  },
  'no-token-type': { quirks: ['no-token-type'], refreshed: { ...TOKENS, token_type: undefined } },
  'no-new-refresh-token': { quirks: ['no-new-refresh-token'], refreshed: { ...TOKENS, refresh_token: undefined } },
  'narrowed-scope': {
    ...{ quirks: ['narrowed-scope'], refreshed: { ...TOKENS, scope: 'monitoring' } },
    scope: 'monitoring',
  },
  'html-errors': {
    quirks: ['html-errors'],
    refused: { status: 400, body: '<!doctype html><h1>Sorry</h1>' },
    // A page may also be from a firewall or a proxy: the hub tries again, for an hour at least.
    revoked: { state: 'retrying', problem: { code: 'portal_rejected' } },
  },
  'invalid-grant-401': { quirks: ['invalid-grant-401'], refused: { ...REFUSED, status: 401 } },
  envelope: {
    quirks: ['envelope', 'comma-scopes'],
    // Only presets know envelopes; this cloud has no PKCE, but the server insists on it.
    keys: { preset: 'withings', pkce: true },
    refreshed: { status: 0, body: { ...TOKENS, scope: 'monitoring,control' } },
    refused: { status: 200, body: '{"status": 400, "body": {}, "error": "invalid_grant"}' },
  },
};

describe('a hub at Authlib', () => {
  let servers: Readonly<Record<string, Authlib>> = {};
  const serverOf = (name: string) => servers[name] ?? expect.fail(`${name} was not started`);

  const started = testServer({
    skipReason: authlibSkipReason,
    start: async (redirectUris, parts) => {
      const quirks = Object.fromEntries(Object.entries(CASES).map(([name, { quirks: some }]) => [name, some]));
      ({ servers } = parts.use(await startAuthlib({ redirectUris, accessTokenTtl: TOKEN_LIFETIME, quirks })));
      return serverOf('plain');
    },
    methods: { basic: () => ({ keys: { client_auth: 'basic' } }), post: () => ({ keys: { client_auth: 'post' } }) },
    logins: ['redirect', 'paste'],
    refreshes: { retry_lost_answer: 'late' },
    reuse: 'refused',
    prepare: async (bench) => {
      for (const [name, { keys }] of Object.entries(CASES)) await bench.addPortal(name, serverOf(name), keys);
    },
  });

  test.for(Object.entries(CASES))(
    'the hub logs in, refreshes and notices the end of the login with the quirk %s',
    async ([name, { refreshed = TOKENS, refused = REFUSED, scope = 'monitoring control', revoked = NEEDS_LOGIN }]) => {
      const { bench } = started;
      const server = serverOf(name);
      await bench.connect(name, server);
      const first = await bench.issued(name);
      expect(first).toMatchObject({ status: 200, scope: 'monitoring control' });

      // The second refresh shows that the hub kept the right refresh token after the first.
      for (let refreshes = 1; refreshes <= 2; refreshes++) await bench.refresh(name);
      expect(JSON.parse((await server.lastResponse()).body)).toEqual(refreshed);
      const second = await bench.issued(name);
      expect(second).toMatchObject({ status: 200, scope });
      expect(second.token).not.toBe(first.token);
      // Longer than the lifetime that the hub supposes if a server names none.
      for (const { lifetime } of [first, second]) expect(lifetime).toBeGreaterThan(TOKEN_LIFETIME / 2);
      expect(await bench.hub.connection(name)).toMatchObject({ state: 'active', problem: null, scope });

      await server.revokeRefreshTokens();
      await bench.refresh(name);
      expect(await server.lastResponse()).toEqual(refused);
      expect(await bench.hub.connection(name)).toMatchObject(revoked);
      expect(await bench.issued(name)).toMatchObject({ status: 200 });
    },
  );
});
