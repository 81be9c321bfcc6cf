import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../project/checkout.ts';
import { MAIN } from '../support/program.ts';
import { stateFolder } from '../support/state-folder.ts';

const COMMITS = 20;

/** Saves settings, one after another. A call of `access` marks each that is confirmed. */
const SCRIPT = `
  import { access } from 'node:fs/promises';
  import { openStore } from ${JSON.stringify(join(dirname(MAIN), 'store/sqlite/open-store.js'))};
  import { jweSealing } from ${JSON.stringify(join(dirname(MAIN), 'store/keys/sealing.js'))};
  await using store = await openStore(process.argv[1], jweSealing(new Uint8Array(32)), Date.now);
  await access('/');
  for (let count = 0; count < ${COMMITS}; count++) {
    await store.settings.save({ name: String(count) });
    await access('/');
  }`;

/** A call of the file system, as Node traces it. */
interface TraceEvent {
  readonly name: string;
  /** `e` for the end of an asynchronous call. */
  readonly ph: string;
  readonly ts: number;
}

test('each commit is confirmed after one sync, and not before the sync has ended', async () => {
  using folder = stateFolder();
  const trace = join(folder.path, 'trace.json');
  const flags = ['--trace-event-categories', 'node.fs.async', '--trace-event-file-pattern', trace];
  const script = ['--input-type=module', '-e', SCRIPT, folder.path];
  expect(await runCommand(process.execPath, [...flags, ...script])).toMatchObject({ status: 0, stderr: '' });
  const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8')) as { traceEvents: TraceEvent[] };
  const calls = traceEvents
    .filter(({ name, ph }) => ph === 'e' && ['access', 'fdatasync'].includes(name))
    .sort((a, b) => a.ts - b.ts)
    .map(({ name }) => name);
  const begun = calls.indexOf('access') + 1;
  const commits = Array.from({ length: COMMITS }, () => ['fdatasync', 'access']).flat();
  expect(calls.slice(begun, begun + commits.length)).toEqual(commits);
});
