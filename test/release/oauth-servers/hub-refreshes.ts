import { expect, test } from 'vitest';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import type { OAuthServer } from '../../support/oauth-servers/oauth-server.ts';
import type { Passage } from '../../support/token-endpoint-proxy.ts';
import { LOST_ANSWER, ProxiedConnection } from './proxied-connection.ts';

/** A server, and what it does if a refresh token is used twice. */
interface RefreshTests {
  /** @param accessTokenTtl in seconds */
  readonly start: (redirectUri: string, accessTokenTtl: number) => Promise<OAuthServer>;
  /** Keys of the portal besides those that every test has. */
  readonly keys: Readonly<Record<string, string | boolean>>;
  /**
   * `refused` is `invalid_grant`, by which the hub knows at once that a login is needed. `rejected` is any other 4xx,
   * after which the hub tries again.
   */
  readonly reuse: 'accepted' | 'refused' | 'rejected';
}

/** What happens to each of ten refreshes, and to the hub after one that passed (`kill`). */
const ROUND = ['pass', 'kill', 'pass', 'cut', 'pass', 'hold before', 'pass', 'kill', 'pass', 'lose'] as const;
const ROUNDS = 5;

/** A lifetime of access tokens in seconds that a lost answer is watched over: short, and long enough to look. */
const SHORT_TTL = 20;

/** Declares the test that fifty refreshes among kills and lost answers end no login that need not end. */
export function testRefreshes({ start, keys, reuse }: RefreshTests): void {
  test('of fifty refreshes among kills and lost answers the hub loses no login that it could keep', async () => {
    await using parts = new AsyncDisposableStack();
    const hub = parts.use(await HubProcess.prepare());
    // With this lifetime the hub does not refresh by itself.
    const server = parts.use(await start(hub.callbackAddress, 3600));
    const connection = await ProxiedConnection.prepare('boiler', hub, server, keys, parts);
    await hub.launch();
    await connection.logIn();

    for (let round = 0; round < ROUNDS; round++) {
      for (const step of ROUND) {
        const before = await connection.issuedToken();
        if (step === 'lose') await expectLoss(connection, round % 2 === 0 ? 'commit then drop' : 'hold after', reuse);
        else if (step === 'cut' || step === 'hold before') await expectUnseen(connection, step, reuse);
        else await connection.refreshWith('pass');
        await connection.expectNewToken(before);
        if (step !== 'kill') continue;
        const issued = await connection.issuedToken();
        await hub.kill();
        await hub.launch();
        expect(await connection.issuedToken()).toBe(issued);
      }
    }

    const { refreshes } = connection.proxy;
    const granted = refreshes.filter((status) => status === 200).length;
    const refused = refreshes.filter((status) => status === 400).length;
    const unseen = refreshes.filter((status) => status === null).length;
    const lostLogins = reuse === 'accepted' ? 0 : ROUNDS;
    expect({ unseen, refused, logins: connection.logins }).toEqual({
      unseen: 2 * ROUNDS,
      refused: lostLogins,
      logins: 1 + lostLogins,
    });
    expect(granted).toBeGreaterThanOrEqual(ROUND.length * ROUNDS);
    expect(await connection.status()).toMatchObject({ state: 'active', problem: null });
  });
}

/** A refresh that the server never saw: the hub reports that it can't know that, and nothing is lost. */
async function expectUnseen(
  connection: ProxiedConnection,
  passage: Passage,
  reuse: RefreshTests['reuse'],
): Promise<void> {
  const token = await connection.issuedToken();
  await connection.refreshWith(passage);
  // Where a second use is accepted the hub tries again by itself within seconds, which may be over.
  if (reuse !== 'accepted') await connection.expectReportedLoss(token);
  await connection.refresh();
  await connection.untilActive();
}

/** A refresh whose answer is lost: a login is needed exactly where the server accepts no refresh token twice. */
async function expectLoss(
  connection: ProxiedConnection,
  passage: Passage,
  reuse: RefreshTests['reuse'],
): Promise<void> {
  const token = await connection.issuedToken();
  await connection.refreshWith(passage);
  if (reuse === 'accepted') return connection.untilActive();
  await connection.expectReportedLoss(token);
  await connection.refresh();
  await expectEnd(connection, reuse);
  expect(await connection.issuedToken()).toBe(token);
  await connection.logIn();
}

/** The hub says that a login is needed, or that the portal rejects what may be the lost login; and when it was lost. */
async function expectEnd(connection: ProxiedConnection, reuse: RefreshTests['reuse']): Promise<void> {
  const message = expect.stringMatching(LOST_ANSWER);
  expect(await connection.status()).toMatchObject(
    reuse === 'refused'
      ? { state: 'needs_pairing', problem: { code: 'refused', message } }
      : { state: 'retrying', problem: { code: 'answer_lost', message } },
  );
}

/** Declares the test of what happens without a person at a server that accepts no refresh token twice. */
export function testLostAnswers({ start, keys, reuse }: RefreshTests): void {
  test('after a lost answer the hub issues the access token to its end before it sends the old refresh token', async () => {
    await using parts = new AsyncDisposableStack();
    const hub = parts.use(await HubProcess.prepare());
    const server = parts.use(await start(hub.callbackAddress, SHORT_TTL));
    const connections: ProxiedConnection[] = [];
    for (const name of ['killed', 'dropped', 'cut']) {
      connections.push(await ProxiedConnection.prepare(name, hub, server, keys, parts));
    }
    const [killed, dropped, cut] = connections;
    if (killed === undefined || dropped === undefined || cut === undefined) throw new Error('three were prepared');
    await hub.launch();
    for (const connection of connections) await connection.logIn();

    await loseAnswer(killed, 'hold after');
    await loseAnswer(dropped, 'commit then drop');
    await loseAnswer(cut, 'cut');
    await Promise.all(connections.map(expectTokenToItsEnd));

    for (const connection of [killed, dropped]) {
      await eventually(async () => connection.proxy.refreshes.includes(400));
      if (reuse === 'refused') await hub.until(connection.name, ({ state }) => state === 'needs_pairing');
      await expectEnd(connection, reuse);
      expect(await connection.issuedToken()).toBeNull();
      await connection.logIn();
      await connection.expectNewToken(null);
    }
    await cut.untilActive();
    expect(connections.map(({ logins }) => logins)).toEqual([2, 2, 1]);
  });
}

/** Gives the connection a fresh access token, and loses the answer to the next refresh. */
async function loseAnswer(connection: ProxiedConnection, passage: Passage): Promise<void> {
  await connection.refreshWith('pass');
  const token = await connection.issuedToken();
  await connection.refreshWith(passage);
  await connection.expectReportedLoss(token);
}

/** Watches that the hub sends no refresh as long as it issues the token that it has. */
async function expectTokenToItsEnd(connection: ProxiedConnection): Promise<void> {
  const sent = connection.proxy.refreshes.length;
  const token = await connection.issuedToken();
  await eventually(async () => {
    const sentBefore = connection.proxy.refreshes.length;
    const issued = await connection.issuedToken();
    if (issued === null || issued !== token) return true;
    expect(sentBefore).toBe(sent);
    return false;
  }, 2 * SHORT_TTL);
}
