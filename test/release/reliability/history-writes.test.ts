import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { canTraceSystemCalls, type SystemCall, traceSystemCalls } from '../../chaos/system-calls.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

const REFRESHES = 3;

/** The disk writes of one refresh. */
function work(calls: readonly SystemCall[]) {
  const journal = calls.filter(({ on }) => on.endsWith('/latchkey.db-wal'));
  const writes = journal.filter(({ name }) => name === 'pwrite64').length;
  return {
    syncs: journal.length - writes,
    /** Each page is written as a header and the page itself. */
    pages: Math.floor(writes / 2),
    isMovedToDatabase: calls.some(({ name, on }) => name === 'pwrite64' && on.endsWith('/latchkey.db')),
  };
}

it('a refresh takes two syncs with or without history, which adds at most one page and survives a kill', async (ctx) => {
  if (!canTraceSystemCalls()) ctx.skip('needs strace, and the permission to use it');
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator });
  await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  // Waits for the snapshot that follows a pairing.
  await eventually(async () => /"connection_paired".*"snapshot_written"/s.test(readFileSync(hub.log, 'utf8')));
  const refresh = () => hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  const watched = async () => {
    const calls = await traceSystemCalls(hub.pid, ['fsync', 'fdatasync', 'pwrite64'], async () => {
      await refresh();
    });
    return work(calls);
  };
  // This refresh writes the history line of the pairing.
  await refresh();
  await hub.kill('SIGKILL');
  await hub.launch();
  // The kill has discarded history that was not written yet.
  const without = await watched();
  const each = [];
  for (let count = 0; count < REFRESHES; count++) each.push(await watched());
  for (const { syncs, pages, isMovedToDatabase } of each) {
    // A WAL checkpoint has one more sync.
    expect(syncs).toBe(isMovedToDatabase ? 3 : 2);
    expect(pages).toBeLessThanOrEqual(without.pages + 1);
  }
  await hub.kill('SIGKILL');
  await hub.launch();
  // There are two lines if the test runs at midnight.
  const refreshes = async () => {
    const history = await hub.ask((control) => control.request('history', { name: 'wallbox' }));
    expect(history.at(-1)).toMatchObject({ kind: 'paired', count: 1 });
    return history.reduce((sum, { kind, count }) => (kind === 'refreshed' ? sum + count : sum), 0);
  };
  // All but the last refresh of each run, whose line was not written by a later refresh.
  expect(await refreshes()).toBe(REFRESHES);
  await refresh();
  await hub.kill('SIGTERM');
  await hub.launch();
  expect(await refreshes()).toBe(REFRESHES + 1);
});
