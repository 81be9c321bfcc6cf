import { describe, expect, test } from 'vitest';
import type { ApplianceResponse } from '../../../src/control/messages.ts';
import { browserSkipReason, startBrowser } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { HubProcess } from '../../support/hub-process.ts';
import type { OAuthServer } from '../../support/oauth-servers/oauth-server.ts';
import { setUpOnce, skipIfUnavailable } from '../../support/set-up.ts';
import { TokenEndpointProxy } from '../../support/token-endpoint-proxy.ts';
import {
  bringResponse,
  connect,
  isAlive,
  loginByScript,
  type PortalTable,
  portalTable,
  tokenOf,
} from './hub-portal.ts';

/** The file of a client secret that the server does not know. */
const WRONG_SECRET_FILE = 'wrong.secret';

/** How a hub authenticates and how its users log in. */
interface LoginTests<Server extends OAuthServer> {
  readonly skipReason?: () => string | null;
  readonly start: (redirectUris: readonly string[]) => Promise<Server>;
  /** The ways in which the server authenticates the hub, and the keys of a portal for each. */
  readonly methods: Readonly<Record<string, (server: Server) => PortalTable>>;
  readonly logins: readonly LoginMethod[];
}

/** With `paste` the portal redirects to a site that is not the hub's. */
type LoginMethod = 'device' | 'redirect' | 'paste';

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
    let proxy: TokenEndpointProxy;

    setUpOnce(
      async (parts) => {
        hub = parts.use(await HubProcess.prepare());
        const site = parts.use(await startForeignSite(() => 'Logged in'));
        server = parts.use(await start([hub.callbackAddress, site.url]));
        const keysOf = (login: LoginMethod) => ({ login, ...(login === 'paste' && { redirect_uri: site.url }) });
        proxy = parts.use(await TokenEndpointProxy.start(server.endpoints.token));
        for (const [name, table] of Object.entries(methods)) {
          const { keys, secrets } = table(server);
          for (const login of logins) await hub.addPortal(`${name}-${login}`, { ...keys, ...keysOf(login) }, secrets);
        }
        for (const login of logins) {
          const client = { client_auth: 'basic', client_secret_file: WRONG_SECRET_FILE, ...keysOf(login) };
          const { keys, secrets } = portalTable(server, client, { [WRONG_SECRET_FILE]: 'a-secret-of-nobody' });
          await hub.addPortal(`wrong-${login}`, keys, secrets);
          const proxied = portalTable(server, { client_auth: 'basic', ...keysOf(login), token_endpoint: proxy.url });
          await hub.addPortal(`${login}-lost`, proxied.keys, proxied.secrets);
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
        const name = `${method}-${login}-by-script`;
        await expectLogin(name, `${method}-${login}`, loginByScript(server, hub, name));
      },
    );

    test.for(logins)('a login by %s is completed though the hub is killed before it', async (login) => {
      const name = `${login}-killed`;
      await hub.addAppliance(name, 'monitoring control', `${names[0]}-${login}`);
      const { href } = await hub.beginPairing(name);
      await hub.kill();
      await hub.launch();
      await loginByScript(server, hub, name)(href);
      await hub.until(name, ({ state }) => state === 'active', 30);
    });

    test.for(logins)('after a login by %s whose tokens were lost the hub connects by another login', async (login) => {
      const name = `${login}-lost`;
      await hub.addAppliance(name, 'monitoring control', name);
      const { href } = await hub.beginPairing(name);
      void proxy.next('commit then drop');
      const end = await server.loginByScript(href);
      if (login !== 'device') {
        const problem = await bringResponse(hub, name, end);
        expect(problem).toContain(login === 'paste' ? 'answer_lost' : 'The portal’s answer was lost on the way.');
      }
      const isOver = ({ authorize_url: link, pairing_failed: failed }: ApplianceResponse) =>
        failed !== undefined || (link !== undefined && link !== href);
      await hub.until(name, isOver, 60);
      await connect(hub, name, loginByScript(server, hub, name));
    });

    test.for(logins)('a hub with a wrong secret says after a login by %s what to correct', async (login) => {
      const name = `wrong-${login}`;
      await hub.addAppliance(name, 'monitoring control', name);
      await hub.ask((control) => control.pair(name));
      if (login !== 'device') {
        const { authorize_url: url = '' } = await hub.until(name, ({ authorize_url: link }) => link !== undefined);
        const problem = await bringResponse(hub, name, await server.loginByScript(url));
        if (login === 'redirect') expect(problem).toContain('does not accept the hub’s credentials');
      }
      const { pairing_failed: failed } = await hub.until(name, ({ pairing_failed: end }) => end !== undefined);
      expect(failed).toMatchObject({
        reason: 'misconfigured',
        message: expect.stringContaining(`client secret in ${hub.directory}/${WRONG_SECRET_FILE}`),
      });
    });

    describe('with a browser', () => {
      skipIfUnavailable(browserSkipReason);

      test.for(logins)('a hub gets tokens after a login by %s', async (login) => {
        await using browser = await startBrowser();
        const { page } = await browser.visit();
        const name = `${login}-by-browser`;
        await expectLogin(name, `${names[0]}-${login}`, async (url) => {
          const end = await server.login(page, url);
          if (login === 'redirect') await page.getByText('is connected').first().waitFor();
          if (login === 'paste') await bringResponse(hub, name, end);
        });
      });
    });
  });
}
