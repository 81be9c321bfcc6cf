import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { FAKETIME } from '../../chaos/fake-machine-clocks.ts';
import { canTraceSystemCalls } from '../../chaos/system-calls.ts';
import { scrapeMetrics } from '../../metrics/scrape.ts';
import { countRefreshSends, pairFleet } from '../../reliability/fleet.ts';
import { TokenLoad } from '../../reliability/load.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { logFile } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';

/** The duration of each sync in ms, as on an SD card that is about to fail. */
const SYNC = 500;

it('a disk that takes half a second for every sync delays the hub, but costs no token', async (ctx) => {
  if (!canTraceSystemCalls()) ctx.skip('needs strace, and the permission to use it');
  await using emulator = await startPortal({ tokenLifetime: 8 });
  const syncs = logFile('syncs');
  await using hub = await HubProcess.start({ emulator, within: slowSyncs(SYNC, syncs) });
  const fleet = await pairFleet(hub, emulator, ['cellar', 'roof']);
  const syncsBefore = lines(syncs);
  await using load = await TokenLoad.start(hub, emulator, fleet, 100);
  await eventually(async () => countRefreshSends(emulator).length >= 2, 60);
  // If each issued token waited for its own sync, there would never be more tokens than syncs.
  await eventually(async () => load.handOuts.length > lines(syncs) - syncsBefore, 30);
  await load[Symbol.asyncDispose]();
  expect(load.refused).toEqual([]);
  expect(load.refusals).toEqual([]);
  expect(countRefreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
});

it('a hub whose syncs take seconds for minutes reports store_slow with percentiles', async (ctx) => {
  if (!canTraceSystemCalls()) ctx.skip('needs strace, and the permission to use it');
  if (!existsSync(FAKETIME)) ctx.skip(`needs ${FAKETIME}`);
  await using emulator = await startPortal();
  // The hub's clocks and timers run 10 times as fast: a sync takes 3 s for it, and a minute takes 6 s.
  const clock = ['-E', `LD_PRELOAD=${FAKETIME}`, '-E', 'FAKETIME=+0 x10'];
  const within = slowSyncs(300, '/dev/null', ...clock);
  await using hub = await HubProcess.start({ emulator, within, metrics: '127.0.0.1:0' });
  expect((await hub.status()).hub.problems).toBeUndefined();
  let asked = 0;
  const problem = await eventually(async () => {
    asked += 1;
    await hub.ask((control) => control.request('rotateSetupCode'));
    await sleep(1000);
    return (await hub.status()).hub.problems?.[0];
  }, 60);
  expect(problem).toMatchObject({ code: 'store_slow' });
  const [, longer, count, median] =
    /: (\d+) of the last (\d+) writes .* \(median ([\d.]+) s, /.exec(problem.message) ?? [];
  expect(Number(longer)).toBeGreaterThanOrEqual(Number(count) / 2);
  expect(Number(median)).toBeGreaterThanOrEqual(3);
  await eventually(async () => hub.events('store_slow').length > 0, 60);
  const metrics = await scrapeMetrics((await hub.status()).hub.metrics_port);
  expect(metrics.value('latchkey_hub_problem', { code: 'store_slow' })).toBe(1);
  const upTo = (le: string) => metrics.value('latchkey_store_commit_duration_seconds_bucket', { le }) ?? 0;
  expect(upTo('+Inf') - upTo('2.5')).toBeGreaterThanOrEqual(asked);
  const { stdout } = await hub.cli('doctor');
  expect(stdout).toMatch(/warn +store +.*may be about to fail/);
});

/** The command within which every sync of a daemon takes longer. @param delay in ms @param output for strace's lines */
function slowSyncs(delay: number, output: string, ...options: string[]): string[] {
  const inject = `inject=fsync,fdatasync:delay_exit=${delay * 1000}`;
  return ['strace', '-D', '-f', '-qq', '-o', output, ...options, '-e', 'trace=fsync,fdatasync', '-e', inject];
}

function lines(file: string): number {
  return readFileSync(file, 'utf8').split('\n').length;
}
