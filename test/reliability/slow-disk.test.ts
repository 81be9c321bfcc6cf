import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { canTraceSystemCalls } from '../chaos/system-calls.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { countRefreshSends, pairFleet } from './fleet.ts';
import { TokenLoad } from './load.ts';

/** The duration of each sync in ms, as on an SD card that is about to fail. */
const SYNC = 500;

it('a disk that takes half a second for every sync delays the hub, but costs no token', async (ctx) => {
  if (!canTraceSystemCalls()) ctx.skip('needs strace, and the permission to use it');
  await using emulator = await startPortal({ tokenLifetime: 8 });
  const inject = `inject=fsync,fdatasync:delay_exit=${SYNC * 1000}`;
  const syncs = logFile('syncs');
  const within = ['strace', '-D', '-f', '-qq', '-o', syncs, '-e', 'trace=fsync,fdatasync', '-e', inject];
  await using hub = await HubProcess.start({ emulator, within });
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

function lines(file: string): number {
  return readFileSync(file, 'utf8').split('\n').length;
}
