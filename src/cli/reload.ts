import { Command } from 'commander';
import type { ReloadOutcome } from '../core/administration.ts';
import { systemTimers } from '../system/clock.ts';
import { connectHub, isAway } from './hub-connection.ts';
import { fail, print } from './terminal/output.ts';

/** How often it is asked how the reload stands, in ms. */
const POLL_INTERVAL = 250;
/** How long there may be no hub before it is given up, in ms: a slow disk makes for a slow start. */
const MAX_ABSENCE = 60_000;

/** `latchkey reload` */
export function reloadCommand(): Command {
  return new Command('reload')
    .description('reload the configuration; an invalid file is rejected and the old one stays in force')
    .action(async (_options: unknown, command: Command) => {
      const id = await begin(command);
      const outcome = await outcomeOf(id, command);
      switch (outcome.state) {
        case 'done':
          return print('The hub runs with the configuration as it is now.');
        case 'failed':
          return fail(outcome.message);
        default:
          return fail('the hub was started anew meanwhile: its log says why');
      }
    });
}

async function begin(command: Command): Promise<string> {
  await using hub = await connectHub(command);
  return await hub.reload();
}

/** Waits until the reload has ended. The hub goes meanwhile, and another one comes. */
async function outcomeOf(id: string, command: Command): Promise<ReloadOutcome> {
  for (let gone = 0; ; ) {
    await systemTimers.sleep(POLL_INTERVAL);
    try {
      await using hub = await connectHub(command);
      const outcome = await hub.reloadOutcome(id);
      if (outcome.state !== 'under_way') return outcome;
      gone = 0;
    } catch (error) {
      gone += POLL_INTERVAL;
      if (!isAway(error) || gone > MAX_ABSENCE) throw error;
    }
  }
}
