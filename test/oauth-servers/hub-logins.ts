import { describe, expect, test } from 'vitest';
import { browserSkipReason, startBrowser } from '../support/browser.ts';
import { HubProcess } from '../support/hub-process.ts';
import type { OAuthServer } from '../support/oauth-servers/oauth-server.ts';
import { setUpOnce, skipIfUnavailable } from '../support/set-up.ts';
import { connect, isAlive, loginByScript, type PortalTable, tokenOf } from './hub-portal.ts';

/** How a hub authenticates and how its users log in. */
interface LoginTests<Server extends OAuthServer> {
  readonly skipReason?: () => string | null;
  readonly start: (redirectUri: string) => Promise<Server>;
  /** The ways in which the server authenticates the hub, and the keys of a portal for each. */
  readonly methods: Readonly<Record<string, (server: Server) => PortalTable>>;
  readonly logins: readonly ('device' | 'redirect')[];
}

/**
 * Declares the tests of a server: by every client authentication and every login, the hub gets tokens, refreshes them
 * and gives them to an appliance.
 */
export function testLogins<Server extends OAuthServer>({
  skipReason = () => null,
  start,
  methods,
  logins,
}: LoginTests<Server>): void {
  describe('logins', () => {
    const names = Object.keys(methods);
    let server: Server;
    let hub: HubProcess;

    setUpOnce(
      async (parts) => {
        hub = parts.use(await HubProcess.prepare());
        server = parts.use(await start(hub.callbackAddress));
        for (const [name, table] of Object.entries(methods)) {
          const { keys, secrets } = table(server);
          for (const login of logins) await hub.addPortal(`${name}-${login}`, { ...keys, login }, secrets);
        }
        await hub.launch();
      },
      { skipReason },
    );

    async function expectLogin(name: string, portal: string, login: (url: string) => Promise<void>): Promise<void> {
      const appliance = await hub.addAppliance(name, 'monitoring control', portal);
      await connect(hub, name, login);
      const { status, body } = await hub.requestToken(appliance);
      expect({ status, scope: body['scope'] }).toEqual({ status: 200, scope: 'monitoring control' });
      const first = String(body['access_token']);
      expect(await isAlive(server, first)).not.toBe(false);
      await hub.ask((control) => control.refresh(name));
      const second = await tokenOf(hub, appliance);
      expect(second).not.toBe(first);
      expect(await isAlive(server, second ?? '')).not.toBe(false);
    }

    test.for(names.flatMap((method) => logins.map((login) => [method, login] as const)))(
      'a hub that authenticates by %s gets tokens after a login by %s without a browser',
      async ([method, login]) => {
        await expectLogin(`${method}-${login}-by-script`, `${method}-${login}`, loginByScript(server, hub));
      },
    );

    describe('with a browser', () => {
      skipIfUnavailable(browserSkipReason);

      test.for(logins)('a hub gets tokens after a login by %s', async (login) => {
        await using browser = await startBrowser();
        const { page } = await browser.visit();
        await expectLogin(`${login}-by-browser`, `${names[0]}-${login}`, async (url) => {
          await server.login(page, url);
          if (login === 'redirect') await page.getByText('is connected').first().waitFor();
        });
      });
    });
  });
}
