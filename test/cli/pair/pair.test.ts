import { beforeEach, expect, test } from 'vitest';
import type { ScriptedPairing } from '../../control/scripted-pairing.ts';
import { waitFor } from '../../support/wait-for.ts';
import { serveFakeAdministration, shareFakeAdministration } from '../command.ts';
import { eventsIn as lines } from './pair-all-session.ts';

const url = 'https://portal.example/authorize?state=0123456789';
const waiting = { event: 'waiting', authorizeUrl: url, expiresIn: 900 } as const;
/** The event as `pair --json` prints it. */
const printed = { event: 'waiting', authorize_url: url, expires_in: 900 };
const unreachable = { event: 'connecting', problem: 'connect ECONNREFUSED 10.0.0.1:443', expiresIn: 840 } as const;

const hub = shareFakeAdministration();

beforeEach(() => {
  hub.administration.pairings.clear();
  hub.administration.set({ name: 'wallbox' });
});

/** Waits for the pairing that a command starts. */
function pairing(): Promise<ScriptedPairing> {
  return waitFor(() => {
    const [started] = [...hub.administration.pairings.values()];
    if (started === undefined) throw new Error('no pairing was started');
    return started;
  }, 10_000);
}

test('pair --json prints one object per line, the link first and then the result', async () => {
  hub.administration.script = [{ event: 'connecting', problem: null, expiresIn: 900 }, waiting];
  const pair = hub.start('pair', 'wallbox', '--json');
  expect(lines(await pair.stdout(/\n/))).toEqual([printed]);
  (await pairing()).push({ ...waiting, expiresIn: 800 }, { event: 'paired', scope: 'A B' });
  const { status, stdout, stderr } = await pair.ended;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(lines(stdout)).toEqual([printed, { event: 'paired', scope: 'A B' }]);
});

test('pair names the permissions that the portal did not grant', async () => {
  hub.administration.script = [waiting, { event: 'paired', scope: 'A', missingScope: ['B', 'C'] }];
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox');
  expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringMatching(/scope A\n$/) });
  expect(stderr).toContain('the portal did not grant B, C: if wallbox needs that, log in again and allow it\n');
  const json = await hub.latchkey('pair', 'wallbox', '--json');
  expect(lines(json.stdout).at(-1)).toEqual({ event: 'paired', scope: 'A', missing_scope: ['B', 'C'] });
});

test('pair names the portal where a person logs in if the hub has several, and the end of a code that is renewed', async () => {
  await using several = await serveFakeAdministration();
  several.administration.set({ name: 'wallbox', portal: 'tado' });
  several.administration.script = [
    { ...waiting, expiresIn: 290, isRenewed: true },
    { event: 'paired', scope: null },
  ];
  expect((await several.latchkey('pair', 'wallbox')).stdout).toMatch(/^Log in to connect wallbox:/);
  several.administration.set({ name: 'car', portal: 'home' });
  const { stdout, stderr } = await several.latchkey('pair', 'wallbox');
  expect(stdout).toMatch(/^Log in at tado to connect wallbox:/);
  expect(stderr).toContain('a new code comes in 4 min');
});

const lost = { event: 'failed', reason: 'answer_lost', message: 'its answer was lost\u001b[2J; try again' } as const;

test("pair of a failed pairing reports the hub's reason and what to do", async () => {
  hub.administration.script = [waiting, lost];
  const result = await hub.latchkey('pair', 'wallbox', '--json');
  expect(result.status).toBe(1);
  expect(lines(result.stdout)).toEqual([printed, { event: 'failed', reason: 'answer_lost' }]);
  expect(result.stderr).toMatch(/^latchkey: wallbox was not paired: its answer was lost.*; try again\n$/);
  expect(result.stderr).not.toContain('\u001b');
  hub.administration.script = [lost];
  expect(await hub.latchkey('pair', 'wallbox')).toMatchObject({ status: 1, stdout: '' });
});

test('pair prints the link, its QR code and the result for a person', async () => {
  hub.administration.script = [waiting, { event: 'paired', scope: 'A B' }];
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox');
  expect(status).toBe(0);
  expect(stdout).toContain(`  ${url}\n`);
  expect(stdout).toMatch(/█▀|▀█|█▄|▄█/);
  expect(stdout).toMatch(/wallbox is connected, scope A B\n$/);
  expect(stdout).not.toContain('\u001b');
  expect(stderr).toBe('waiting for login, expires in 15 min\n');
});

test('pair reports an unreachable portal once for each problem, and never as a result', async () => {
  const other = { ...unreachable, problem: 'getaddrinfo EAI_AGAIN' };
  hub.administration.script = [unreachable, { ...unreachable, expiresIn: 830 }, other, unreachable, waiting];
  const pair = hub.start('pair', 'wallbox', '--json');
  expect(lines(await pair.stdout(/\n/))).toEqual([printed]);
  (await pairing()).push({ event: 'paired', scope: null });
  expect((await pair.ended).stderr).toBe(
    'the portal is unreachable (connect ECONNREFUSED 10.0.0.1:443): check the internet connection; the hub keeps trying for 14 min\n' +
      'the portal is unreachable (getaddrinfo EAI_AGAIN): check the internet connection; the hub keeps trying for 14 min\n',
  );
});

test('pair reports each kind of failed login once, and goes on waiting with the same link', async () => {
  const failed = { ...waiting, lastFailure: 'refused_by_user' } as const;
  hub.administration.script = [waiting, failed, { ...failed, expiresIn: 600 }, { event: 'paired', scope: null }];
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox', '--json');
  expect([status, lines(stdout)]).toEqual([0, [printed, { event: 'paired', scope: null }]]);
  expect(stderr).toBe(
    'the login did not succeed (refused at the login): log in again, with the newest link of the pairing\n',
  );
});

test('pair --no-wait ends when it has printed the link', async () => {
  hub.administration.script = [{ event: 'connecting', problem: null, expiresIn: 900 }];
  const pair = hub.start('pair', 'wallbox', '--no-wait', '--json');
  const started = await pairing();
  started.push(waiting);
  const { status, stdout, stderr } = await pair.ended;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(lines(stdout)).toEqual([printed]);
  await waitFor(() => expect(started.followers).toBe(0));
});

test('pair --no-wait reports an unreachable portal after ten seconds', async () => {
  hub.administration.script = [unreachable];
  const before = performance.now();
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox', '--no-wait', '--json');
  expect(performance.now() - before).toBeGreaterThan(9500);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(
    /ECONNREFUSED[\s\S]*latchkey: the portal is unreachable .*the pairing continues: .* the link as soon as there is one/,
  );
});

test('pair --timeout ends the command and not the pairing', async () => {
  hub.administration.script = [waiting];
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox', '--timeout', '1', '--json');
  expect(status).toBe(1);
  expect(lines(stdout)).toEqual([printed]);
  expect(stderr).toMatch(/^latchkey: wallbox was not paired within 1 s; the pairing continues.*\n$/);
});

test('Ctrl-C ends pair and not the pairing', async () => {
  hub.administration.script = [waiting];
  const pair = hub.start('pair', 'wallbox', '--json');
  await pair.stdout(/\n/);
  pair.process.kill('SIGINT');
  expect(await pair.ended).toMatchObject({
    status: 130,
    stderr: expect.stringMatching(/^latchkey: .*the pairing continues.*latchkey status.*\n$/),
  });
  const started = await pairing();
  await waitFor(() => expect(started.followers).toBe(0));
});

test.each([
  ['link_ended', /new link .*no longer valid.*\n\n.*-fresh\n/],
  ['address_changed', /new link \(the hub's address has changed; .* with the previous link\):\n\n.*-fresh\n/],
] as const)('pair shows a fresh link below the old one, with the reason: %s', async (reason, words) => {
  const fresh = { ...waiting, authorizeUrl: `${url}-fresh`, reason };
  hub.administration.script = [waiting, fresh, { event: 'paired', scope: null }];
  const { stdout } = await hub.latchkey('pair', 'wallbox');
  expect(stdout.indexOf(url)).toBeLessThan(stdout.indexOf(fresh.authorizeUrl));
  expect(stdout).toMatch(words);
  expect(lines((await hub.latchkey('pair', 'wallbox', '--json')).stdout).slice(0, 2)).toEqual([
    printed,
    { ...printed, authorize_url: fresh.authorizeUrl, reason },
  ]);
});

test('pair fails if the hub stops meanwhile', async () => {
  const gone = await serveFakeAdministration();
  gone.administration.set({ name: 'wallbox' });
  gone.administration.script = [waiting];
  const pair = gone.start('pair', 'wallbox', '--json');
  await pair.stdout(/\n/);
  await gone[Symbol.asyncDispose]();
  expect(await pair.ended).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^latchkey: the hub stopped .*latchkey status.*\n$/),
  });
});
