import { doesNotApply, fail } from '../judgement.ts';
import type { GroupSituation } from '../situation.ts';
import { bearerOf, isGranted, isRefresh } from '../wire.ts';
import { afterRefusal, REPLACE, refreshedWithoutReuse, rejectFirstTokenAgain, rejectReuse, rotated } from './checks.ts';

const SINGLE_USE = 'RFC 9700, 4.14.2: "the previous refresh token is invalidated"';

/** What happens to refresh tokens that are replaced. */
export const ROTATION: readonly GroupSituation[] = [
  {
    name: 'each-token-once',
    right: 'each refresh sends the refresh token of the newest response, and each token is sent once',
    source: REPLACE,
    settings: { onReuse: 'revoke-family' },
    async happens(sitting) {
      await refreshedWithoutReuse(sitting, 4);
      return 'four refreshes, each with the newest refresh token';
    },
  },
  {
    name: 'kept-before-used',
    right: 'a new refresh token is stored before the access token that came with it is used',
    source: REPLACE,
    settings: { onReuse: 'revoke-family' },
    async happens(sitting) {
      await rotated(sitting);
      // The power fails while the first call with the next access token is under way.
      const known = new Set(sitting.calls().map(bearerOf));
      const call = sitting.wire.hold('request', (one) => one.logged.endpoint === 'whoami' && !known.has(bearerOf(one)));
      await sitting.until('a call with a new access token', () => call.requests[0]);
      await sitting.client.kill();
      call.release();
      const since = sitting.mark;
      sitting.start();
      const refresh = await sitting.until('a refresh after the restart', () => sitting.refreshes(since)[0]);
      await sitting.until('its response', () => refresh.answeredAt);
      rejectFirstTokenAgain(sitting, refresh);
      if (!isGranted(refresh)) fail('after the restart the client sent a refresh token that it had used before');
      return 'killed at the first use of a new access token, the client went on with the new refresh token';
    },
  },
  {
    name: 'no-new-token',
    right: 'the client keeps its refresh token if a response has none',
    source: 'RFC 6749, 6: "The authorization server MAY issue a new refresh token"',
    settings: { refreshRotation: 'never', refreshTokenInRefresh: false },
    async happens(sitting) {
      await sitting.refreshed(3);
      return 'three refreshes with the same refresh token';
    },
  },
  {
    name: 'new-token-now-and-then',
    right: 'the client takes over a new refresh token also after responses that repeated the old one',
    source: REPLACE,
    settings: { refreshRotation: 'never', onReuse: 'revoke-family' },
    async happens(sitting) {
      await sitting.refreshed(2);
      sitting.emulator.change({ refreshRotation: 'always' });
      await refreshedWithoutReuse(sitting, 3, sitting.mark);
      return 'refreshes with the old token, and with each new one as soon as there was one';
    },
  },
  {
    name: 'grace-with-another-token',
    right: 'a refresh whose response was lost is repeated, and the tokens of the second response are used',
    source: SINGLE_USE,
    settings: { refreshGrace: 1, onReuse: 'revoke-family' },
    async happens(sitting) {
      await rotated(sitting);
      await sitting.faultNextRefresh({ kind: 'commit_then_drop' });
      const since = sitting.mark;
      await sitting.recovered(since);
      await sitting.refreshed(2, since);
      return 'the refresh was repeated with the old token, and the next one had the new token';
    },
  },
  {
    name: 'two-processes',
    right: 'of two processes with one STATE_DIR one refreshes, and the other takes over the new tokens',
    source: SINGLE_USE,
    settings: { onReuse: 'revoke-family' },
    async happens(sitting) {
      await rotated(sitting);
      sitting.emulator.change({ tokenLifetime: 3600 });
      await sitting.refreshed(1, sitting.mark);
      sitting.start('?process=2');
      const isSecond = ({ logged }: { logged: { query: object } }) => 'process' in logged.query;
      await sitting.until('a call of the second process', () =>
        sitting.calls().find((one) => isSecond(one) && isGranted(one)),
      );
      const since = sitting.mark;
      // The response to the first refresh is held back until the other process has had the time for one.
      const held = sitting.wire.hold('response', isRefresh);
      sitting.refuseAccessTokens();
      await afterRefusal(sitting, since, 'a refresh', () => held.requests[0]);
      await sitting.unlessStopped(() => sitting.refreshes(since).length > 1);
      held.release();
      await sitting.until('calls of both processes', () => {
        rejectReuse(sitting);
        const good = sitting.calls(since).filter(isGranted);
        return good.some(isSecond) && good.some((one) => !isSecond(one));
      });
      rejectReuse(sitting);
      return 'one refresh, and both processes went on with its access token';
    },
  },
  {
    name: 'ten-requests-at-once',
    right: 'ten requests at once that find the access token dead cause one refresh',
    source: SINGLE_USE,
    settings: { tokenLifetime: 3600, refreshRotation: 'never' },
    async happens(sitting) {
      await sitting.working();
      await sitting.client.kill();
      sitting.extraEnvironment = { API_CONCURRENCY: '10' };
      // The first calls wait for each other.
      const gate = sitting.wire.hold('request', ({ logged }) => logged.endpoint === 'whoami');
      sitting.start();
      await sitting.until('a call', () => gate.requests[0]);
      const isBatch = await sitting.unlessStopped(() => gate.requests.length >= 10, 20);
      if (isBatch === null) {
        doesNotApply(`the program ignores API_CONCURRENCY: it has ${gate.requests.length} request at once under way`);
      }
      sitting.refuseAccessTokens();
      const since = sitting.mark;
      gate.release();
      const areTen = () => sitting.calls(since).filter(isGranted).length >= 10;
      await afterRefusal(sitting, since, 'ten calls with the new access token', areTen);
      const { length } = sitting.refreshes(since);
      if (length > 1) fail(`ten calls that found the access token dead caused ${length} refreshes`);
      return 'ten calls with a dead access token, and one refresh';
    },
  },
];
