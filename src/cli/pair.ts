import { Command } from 'commander';
import { systemTimers } from '../system/clock.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { connectHub } from './hub-connection.ts';
import { fail } from './output.ts';
import { pairingFailure } from './pairing-failure.ts';
import { watchPairing } from './pairing-watch.ts';

interface Options {
  readonly wait: boolean;
  readonly timeout?: number;
  readonly json?: boolean;
}

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
  const pairing = await hub.pair(name);
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  using display = await createDisplay(name, options.json === true);
  const outcome = await watchPairing((signal) => hub.followPairing(pairing, signal), display, {
    wait: options.wait,
    timeout: options.timeout ?? null,
    interrupted: interrupted.signal,
    timers: systemTimers,
  });
  process.off('SIGINT', interrupt);
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
      return fail('stopped watching; the pairing goes on: "latchkey status" shows how it stands', 130);
  }
}

async function createDisplay(name: string, json: boolean) {
  if (json) return new (await import('./pairing-json.ts')).JsonDisplay();
  return new (await import('./pairing-text.ts')).TextDisplay(name);
}
