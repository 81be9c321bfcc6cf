import { request } from 'undici';
import type { Emulator } from '../../../src/emulator/index.ts';
import type { RunningCommand } from '../running-command.ts';

/** The events that `pair --json` has printed. */
export function eventsIn(stdout: string): Record<string, unknown>[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** A person logs in through the link that `pair --all --json` shows for a connection, and comes back to the hub. */
export async function logInAtLink(emulator: Emulator, running: RunningCommand, connection: string, user = 'demo') {
  const shown = await running.stdout(new RegExp(`"waiting".*"connection":"${connection}".*\\n`));
  const waiting = eventsIn(shown).findLast((line) => line['event'] === 'waiting' && line['connection'] === connection);
  const state = new URL(String(waiting?.['authorize_url'])).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user });
  await (await request(location)).body.dump();
}
