import { expect, test } from 'vitest';
import { startForeignSite } from '../../support/foreign-site.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { expectAccepted, HubAtServer, type PortalKeys, SCOPE } from './hub-at-server.ts';
import type { OAuthServer } from './servers/oauth-server.ts';
import { type Passage, TokenEndpointProxy } from './token-endpoint-proxy.ts';

/** With `paste` the portal redirects to a site that is not the hub's. */
type LoginMethod = 'device' | 'redirect' | 'paste';

/** A server, and what a hub must know of it. */
interface ServerTests<Server extends OAuthServer> {
  readonly skipReason?: () => string | null;
  /** Starts the server. @param parts dispose of it */
  readonly start: (redirectUris: readonly string[], parts: AsyncDisposableStack) => Promise<Server>;
  /** The ways in which it authenticates the hub: the keys of a portal, and secrets instead of the client secret. */
  readonly methods: Readonly<
    Record<
      string,
      (server: Server) => { readonly keys: PortalKeys; readonly secrets?: Readonly<Record<string, string>> }
    >
  >;
  readonly logins: readonly LoginMethod[];
  /** Keys of a portal for refreshes. */
  readonly refreshes: PortalKeys;
  /** What it does if a refresh token is used twice. */
  readonly reuse: 'accepted' | 'refused';
}

/** The lifetime of access tokens in seconds: with it the hub does not refresh by itself. */
export const TOKEN_LIFETIME = 86_400;
/** The file of a client secret that the server does not know. */
const WRONG_SECRET_FILE = 'wrong.secret';
/** The message of a connection whose last refresh got no response, or its beginning. */
const LOST_ANSWER = /^An answer was lost on \d{4}-\d\d-\d\dT/;
const BOILER = 'boiler';

/** What happens to each of several refreshes; `kill`: to the hub after one that passed. */
const PASSAGES = ['pass', 'kill', 'cut', 'hold before', 'pass', 'commit then drop', 'hold after', 'pass'] as const;

/** Declares the tests of one server, with one hub: logins by all methods, and refreshes among kills and lost answers. */
export function testServer<Server extends OAuthServer>(tests: ServerTests<Server>): void {
  const { logins, reuse } = tests;
  const withoutPaste = logins.filter((login) => login !== 'paste');
  const methods = Object.entries(tests.methods);
  // A site of one's own is a matter of the login alone, which is the same for every client authentication.
  const combinations = methods.flatMap(([method, portal], index) =>
    logins
      .filter((login) => login !== 'paste' || index === 0)
      .map((login) => ({ name: `${method}-${login}`, method, login, portal })),
  );
  let server: Server;
  let bench: HubAtServer;
  let proxy: TokenEndpointProxy;

  setUpOnce(
    async (parts) => {
      bench = parts.use(await HubAtServer.prepare());
      const site = parts.use(await startForeignSite(() => 'Logged in'));
      server = await tests.start([bench.hub.callbackAddress, site.url], parts);
      for (const { name, login, portal } of combinations) {
        const { keys, secrets } = portal(server);
        const redirect = login === 'paste' ? { redirect_uri: site.url } : {};
        await bench.addPortal(name, server, { ...keys, login, ...redirect }, secrets);
      }
      for (const login of withoutPaste) {
        const keys = { client_auth: 'basic', client_secret_file: WRONG_SECRET_FILE, login };
        await bench.addPortal(`wrong-${login}`, server, keys, { [WRONG_SECRET_FILE]: 'of-nobody' });
      }
      proxy = parts.use(await TokenEndpointProxy.start(server.endpoints.token));
      const proxied = { ...tests.refreshes, login: 'redirect', token_endpoint: proxy.url };
      await bench.addPortal(BOILER, server, proxied);
      await bench.hub.launch();
    },
    { skipReason: tests.skipReason ?? (() => null) },
  );

  test.for(combinations)(
    'a hub that authenticates by $method gets tokens after a login by $login',
    async ({ name }) => {
      await bench.connect(name, server);
      const { status, token, scope } = await bench.issued(name);
      expect({ status, scope }).toEqual({ status: 200, scope: SCOPE });
      await expectAccepted(server, token);
      await bench.refresh(name);
      await bench.expectNewToken(name, server, token);
      if (server.endpoints.revocation === null) return;
      const { token: last } = await bench.issued(name);
      await bench.hub.ask((control) => control.request('unpair', { name }));
      const revoked = expect.objectContaining({ connection: name });
      await expect.poll(() => bench.hub.events('grant_revoked')).toContainEqual(revoked);
      await expectAccepted(server, last, false);
    },
  );

  test.for(withoutPaste)('a hub with a wrong secret says after a login by %s what to correct', async (login) => {
    const name = `wrong-${login}`;
    const { hub } = bench;
    await hub.addAppliance(name, SCOPE, name);
    await hub.ask((control) => control.request('pair', { name }));
    if (login !== 'device') {
      const { authorize_url: url = '' } = await hub.until(name, ({ authorize_url: link }) => link !== undefined);
      const problem = await bench.bringResponse(name, await server.loginByScript(url));
      expect(problem).toContain('does not accept the hub’s credentials');
    }
    const { pairing_failed: failed } = await hub.until(name, ({ pairing_failed: end }) => end !== undefined);
    expect(failed).toMatchObject({
      reason: 'misconfigured',
      message: expect.stringContaining(`client secret in ${hub.directory}/${WRONG_SECRET_FILE}`),
    });
  });

  /** Forces a refresh whose request passes in this way. If it is held, the hub is killed then and started again. */
  async function refreshWith(passage: Passage): Promise<void> {
    const held = passage === 'pass' ? null : proxy.next(passage);
    const refresh = bench.refresh(BOILER);
    if (passage === 'hold before' || passage === 'hold after') {
      await held;
      await Promise.all([bench.hub.kill(), refresh.catch(() => undefined)]);
      await bench.hub.launch();
    } else await refresh;
  }

  /** Expects that the hub reports a lost answer and when, and still issues this token, which is alive. */
  async function expectReportedLoss(token: unknown): Promise<void> {
    const problem = { code: 'answer_lost', message: expect.stringMatching(LOST_ANSWER) };
    expect(await bench.hub.connection(BOILER)).toMatchObject({ state: 'retrying', problem });
    expect((await bench.issued(BOILER)).token).toBe(token);
    await expectAccepted(server, token);
  }

  /** A refresh that the server never saw: the hub reports that it can't know that, and nothing is lost. */
  async function expectUnseen(passage: Passage, token: unknown): Promise<void> {
    await refreshWith(passage);
    // Where a second use is accepted the hub tries again by itself within seconds, which may be over.
    if (reuse !== 'accepted') await expectReportedLoss(token);
    await bench.refresh(BOILER);
    await bench.hub.until(BOILER, ({ state }) => state === 'active');
  }

  /** A refresh whose answer is lost: a login is needed exactly where the server accepts no refresh token twice. */
  async function expectLoss(passage: Passage, token: unknown): Promise<void> {
    await refreshWith(passage);
    if (reuse === 'accepted') return void (await bench.hub.until(BOILER, ({ state }) => state === 'active'));
    await expectReportedLoss(token);
    await bench.refresh(BOILER);
    const message = expect.stringMatching(LOST_ANSWER);
    const problem = { code: 'refused', message };
    expect(await bench.hub.connection(BOILER)).toMatchObject({ state: 'needs_pairing', problem });
    expect((await bench.issued(BOILER)).token).toBe(token);
    await bench.connect(BOILER, server);
  }

  test('among refreshes with kills and lost answers the hub loses no login that it could keep', async () => {
    await bench.connect(BOILER, server);
    for (const passage of PASSAGES) {
      const { token } = await bench.issued(BOILER);
      if (passage === 'cut' || passage === 'hold before') await expectUnseen(passage, token);
      else if (passage === 'commit then drop' || passage === 'hold after') await expectLoss(passage, token);
      else await refreshWith('pass');
      await bench.expectNewToken(BOILER, server, token);
      if (passage !== 'kill') continue;
      const { token: issued } = await bench.issued(BOILER);
      await bench.hub.kill();
      await bench.hub.launch();
      expect((await bench.issued(BOILER)).token).toBe(issued);
    }
    const count = (status: number | null) => proxy.refreshes.filter((found) => found === status).length;
    expect({ unseen: count(null), refused: count(400) }).toEqual({ unseen: 2, refused: reuse === 'accepted' ? 0 : 2 });
    expect(count(200)).toBeGreaterThanOrEqual(PASSAGES.length);
    expect(await bench.hub.connection(BOILER)).toMatchObject({ state: 'active', problem: null });
  });
}
