import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { doesNotApply, fail } from '../judgement.ts';
import type { GroupSituation } from '../situation.ts';
import { isGranted, isRefresh, type WireRequest } from '../wire.ts';
import { afterRestart, REPLACE, rejectFirstTokenAgain, rotated } from './checks.ts';

const CONFIDENTIAL = 'RFC 6749, 10.4: "refresh tokens MUST be kept confidential in transit and storage"';

/** What becomes of tokens between two runs of the program. */
export const STORAGE: readonly GroupSituation[] = [
  {
    name: 'restart',
    source: REPLACE,
    right: 'after a restart the client goes on with the newest refresh token, not with that of its environment',
    settings: { onReuse: 'revoke-family' },
    async happens(sitting) {
      await rotated(sitting);
      sitting.emulator.change({ tokenLifetime: 3600 });
      await sitting.refreshed(1, sitting.mark);
      // It has had all the time to store what it got.
      const used = sitting.mark;
      await sitting.until('four more calls', () => sitting.calls(used).filter(isGranted).length >= 4);
      await sitting.stop();
      sitting.refuseAccessTokens();
      const since = sitting.mark;
      sitting.start();
      await afterRestart(sitting, since);
      const isFirst = ({ logged }: WireRequest) => logged.form['refresh_token'] === sitting.refreshToken;
      if (sitting.refreshes(since).some(isFirst))
        fail('after the restart the client sent the refresh token of its environment, which was used before');
      if (sitting.loginsSince(since) > 0) fail('after the restart the client asked for a new login');
      await sitting.recovered(since);
      return 'after the restart a refresh with the newest refresh token';
    },
  },
  {
    name: 'killed-before-the-answer',
    right: 'a client that was killed while it waited for new tokens still has the old refresh token',
    source:
      'RFC 6749, 6: "The authorization server MAY issue a new refresh token, in which case the client MUST discard the old refresh token", and not before',
    settings: { refreshGraceTime: 60, onReuse: 'revoke-family' },
    async happens(sitting) {
      await rotated(sitting);
      // A call with the new token shows that the client has stored what came with it, if it does so at all.
      await sitting.working(sitting.mark);
      const restarted = sitting.mark;
      await sitting.restart();
      const first = await sitting.until('a refresh after a restart', () => sitting.refreshes(restarted)[0]);
      rejectFirstTokenAgain(sitting, first);
      const held = sitting.wire.hold('response', isRefresh);
      const lost = await sitting.until('a refresh', () => held.requests[0]);
      await sitting.client.kill();
      held.release();
      const since = sitting.mark;
      sitting.start();
      const comesBack = () => sitting.refreshes(since)[0] ?? sitting.loginsSince(since) > 0;
      const again = await sitting.until('a refresh or a login', comesBack);
      if (again === true) return fail('after the kill the client asked for a new login');
      if (again.logged.form['refresh_token'] !== lost.logged.form['refresh_token'])
        fail('another refresh token was sent');
      await sitting.recovered(since);
      return 'killed during a refresh, the client sent the same refresh token after its restart';
    },
  },
  {
    name: 'readable-by-others',
    source: CONFIDENTIAL,
    settings: { refreshRotation: 'never' },
    right: 'no other user of the machine can read the files with tokens',
    async happens(sitting) {
      await sitting.refreshed(2);
      await sitting.until(
        'two more calls',
        () => sitting.calls(sitting.wire.requests.findLastIndex(isRefresh)).length > 0,
      );
      const secrets = sitting.emulator.secretsIssued('refresh_token', 'access_token');
      const found: string[] = [];
      for (const { path, text, mode } of await filesIn(sitting.stateFolder)) {
        if (!secrets.some((secret) => text.includes(secret))) continue;
        found.push(path);
        if ((mode & 0o044) !== 0) fail(`${path} contains a token and has the mode ${(mode & 0o777).toString(8)}`);
      }
      if (found.length === 0) doesNotApply('no file in STATE_DIR contains a token as it is');
      return `only its owner can read ${found.join(', ')}`;
    },
  },
  {
    name: 'secrets-in-the-output',
    source: CONFIDENTIAL,
    settings: { refreshRotation: 'never' },
    right: 'the program prints no token and no secret, also not with an error',
    async happens(sitting) {
      await sitting.working();
      const since = sitting.mark;
      await sitting.faultNextRefresh({
        kind: 'status',
        status: 500,
        body: '{"error":"server_error"}',
      });
      await sitting.unlessStopped(() => sitting.calls(since).length > 2);
      await sitting.stop();
      const kinds = ['access_token', 'refresh_token'] as const;
      for (const kind of kinds) {
        const printed = sitting.emulator.secretsIssued(kind).some((secret) => sitting.client.output.includes(secret));
        if (printed) fail(`the program printed ${kind === 'access_token' ? 'an access token' : 'a refresh token'}`);
      }
      if (sitting.client.output.includes(sitting.emulator.clientSecret)) fail('the program printed the client secret');
      return 'no secret in what the program printed during refreshes, one of which failed';
    },
  },
];

/** The files below a folder, with their text. A folder that others can't enter protects what is in it. */
async function filesIn(folder: string, above = ''): Promise<{ path: string; text: string; mode: number }[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const all = await Promise.all(
    entries.map(async (entry) => {
      const [file, path] = [join(folder, entry.name), join(above, entry.name)];
      const { mode, size } = await stat(file);
      if (entry.isDirectory()) return (mode & 0o011) === 0 ? [] : filesIn(file, path);
      return entry.isFile() && size < 10_000_000 ? [{ path, text: await readFile(file, 'latin1'), mode }] : [];
    }),
  );
  return all.flat();
}
