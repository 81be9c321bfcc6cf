import { describe, expect, test } from 'vitest';
import { HubProcess } from '../../support/hub-process.ts';
import { authlibSkipReason, type Quirk, startAuthlib } from '../../support/oauth-servers/authlib.ts';
import { setUpOnce, skipIfUnavailable } from '../../support/set-up.ts';
import { connect, loginByScript, type PortalTable, portalTable, tokenOf } from './hub-portal.ts';
import { testRefreshes } from './hub-refreshes.ts';

/** In seconds; longer than the lifetime that the hub supposes if a server names none. */
const TTL = 86_400;

/** A server with quirks, what a hub needs to be told of them, and what comes out. */
interface Case {
  readonly quirks: readonly Quirk[];
  readonly keys?: PortalTable['keys'];
  /** Of the token after a refresh; default: as requested. */
  readonly scope?: string;
  /** The state of the connection after the server has revoked the login; default: a new login is needed. */
  readonly revoked?: { readonly state: string; readonly problem: { readonly code: string } };
}

const NEEDS_LOGIN = { state: 'needs_pairing', problem: { code: 'refused' } };
const CASES: Readonly<Record<string, Case>> = {
  plain: { quirks: [] },
  'string-expires-in': { quirks: ['string-expires-in'] },
  'comma-scopes': { quirks: ['comma-scopes'], keys: { scope_separator: ',' } },
  'no-token-type': { quirks: ['no-token-type'] },
  'no-new-refresh-token': { quirks: ['no-new-refresh-token'] },
  'narrowed-scope': { quirks: ['narrowed-scope'], scope: 'monitoring' },
  // A page may also be from a firewall or a proxy: the hub tries again, for an hour at least.
  'html-errors': { quirks: ['html-errors'], revoked: { state: 'retrying', problem: { code: 'portal_rejected' } } },
  'invalid-grant-401': { quirks: ['invalid-grant-401'] },
  // Only presets know envelopes; this cloud has no PKCE, but the server insists on it.
  envelope: { quirks: ['envelope', 'comma-scopes'], keys: { preset: 'withings', pkce: true } },
};

describe('a hub at a server with quirks', () => {
  let hub: HubProcess;
  const servers = new Map<string, Awaited<ReturnType<typeof startAuthlib>>>();
  setUpOnce(
    async (parts) => {
      hub = parts.use(await HubProcess.prepare());
      for (const [name, { quirks, keys }] of Object.entries(CASES)) {
        const server = parts.use(
          await startAuthlib({ redirectUris: [hub.callbackAddress], accessTokenTtl: TTL, quirks }),
        );
        servers.set(name, server);
        const table = portalTable(server, keys);
        await hub.addPortal(name, table.keys, table.secrets);
      }
      await hub.launch();
    },
    { skipReason: authlibSkipReason },
  );

  test.for(Object.entries(CASES))(
    'logs in, refreshes and notices the end of the login with %s',
    async ([name, expected]) => {
      const server = servers.get(name);
      if (server === undefined) throw new Error('it was not started');
      const appliance = await hub.addAppliance(name, 'monitoring control', name);
      await connect(hub, name, loginByScript(server, hub, name));
      const issued = async () => {
        const { status, body } = await hub.requestToken(appliance);
        return { status, scope: body['scope'], isLong: Number(body['expires_in']) > TTL / 2 };
      };
      expect(await issued()).toEqual({ status: 200, scope: 'monitoring control', isLong: true });

      const first = await tokenOf(hub, appliance);
      // The second refresh shows that the hub kept the right refresh token after the first.
      for (let refreshes = 1; refreshes <= 2; refreshes++) await hub.ask((control) => control.refresh(name));
      const scope = expected.scope ?? 'monitoring control';
      expect(await issued()).toEqual({ status: 200, scope, isLong: true });
      expect(await tokenOf(hub, appliance)).not.toBe(first);
      expect(await hub.connection(name)).toMatchObject({ state: 'active', problem: null, scope });

      await server.revokeRefreshTokens();
      await hub.ask((control) => control.refresh(name));
      expect(await hub.connection(name)).toMatchObject(expected.revoked ?? NEEDS_LOGIN);
      expect(await issued()).toMatchObject({ status: 200 });
    },
  );
});

describe('a hub at a server that keeps its refresh tokens', () => {
  skipIfUnavailable(authlibSkipReason);

  testRefreshes({
    start: (redirectUri, accessTokenTtl) =>
      startAuthlib({ redirectUris: [redirectUri], accessTokenTtl, quirks: ['no-new-refresh-token'] }),
    keys: {},
    reuse: 'accepted',
  });
});
