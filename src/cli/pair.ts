import { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';
import { systemTimers } from '../system/clock.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { followThrough } from './followed-pairing.ts';
import { connectHub } from './hub-connection.ts';
import { fail } from './output.ts';
import { pairingFailure } from './pairing-failure.ts';
import { JsonDisplay } from './pairing-json.ts';
import { type PairingDisplay, type WatchOutcome, watchPairing } from './pairing-watch.ts';

interface Options {
  readonly wait: boolean;
  readonly timeout?: number;
  readonly json?: boolean;
}

/** What a shell gives a program that Ctrl-C ended. */
const INTERRUPTED = 130;

/** `latchkey pair NAME` */
export function pairCommand(): Command {
  return new Command('pair')
    .description('pair an appliance: shows the link to log in at, and waits until somebody has')
    .argument('<name>', "the appliance's name")
    .option('--no-wait', 'end when the link is there')
    .option(
      '--timeout <duration>',
      'stop waiting after so many seconds, or 45s, 10m; the pairing goes on',
      parseDuration,
    )
    .option('--json', 'print JSON, one object a line')
    .action(pair);
}

async function pair(name: string, options: Options, command: Command): Promise<void> {
  await using hub = await connectHub(command);
  const outcome = await watch(hub, await hub.pair(name), name, options);
  switch (outcome.kind) {
    case 'paired':
    case 'link_shown':
      return;
    case 'failed':
      return fail(pairingFailure(outcome.reason, name));
    case 'portal_out_of_reach':
      return fail(
        `the portal can't be reached (${outcome.problem ?? 'no answer yet'}); the pairing goes on: "latchkey status" shows the link when it is there`,
      );
    case 'timed_out':
      return fail(
        `${name} was not paired within ${formatDuration(options.timeout ?? 0)}; the pairing goes on: "latchkey status" shows how it stands`,
      );
    case 'interrupted':
      return fail('stopped watching; the pairing goes on: "latchkey status" shows how it stands', INTERRUPTED);
  }
}

/** Watches the pairing until it has ended, the limits are reached or Ctrl-C comes. */
async function watch(hub: ControlClient, pairing: string, name: string, options: Options): Promise<WatchOutcome> {
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  using display = options.json === true ? new JsonDisplay() : await textDisplay(name, options.wait);
  return await watchPairing((signal) => followThrough(hub, pairing, signal, systemTimers), display, {
    wait: options.wait,
    timeout: options.timeout ?? null,
    interrupted: interrupted.signal,
    timers: systemTimers,
  });
}

/** Loaded only where it is needed: it brings the QR code's encoder with it. */
async function textDisplay(name: string, waits: boolean): Promise<PairingDisplay & Disposable> {
  const { TextDisplay } = await import('./pairing-text.ts');
  return new TextDisplay(name, waits);
}
