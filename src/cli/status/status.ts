import { Command } from 'commander';
import type { StatusResponse } from '../../control/messages.ts';
import { systemTimers } from '../../system/clock.ts';
import { connectHub, isHubUnavailable } from '../hub-connection.ts';
import { canRedraw, print, printJson } from '../terminal/output.ts';
import { waitForTerminationSignal } from '../terminal/signals.ts';
import type { StatusDisplay } from './displays.ts';
import { exitStatusOf, statusText } from './text.ts';

/** How often the hub is asked, in ms. */
const POLL_INTERVAL = 1000;
/** How long an answer may take, in ms. */
const ANSWER_TIMEOUT = 5000;

interface Options {
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** `latchkey status` */
export function statusCommand(): Command {
  return new Command('status')
    .description('show how the hub and each appliance stand')
    .option(
      '--watch',
      'go on showing it until Ctrl-C: redrawn each second on a terminal, elsewhere a line for each change',
    )
    .option('--json', 'print JSON; with --watch one object a line, whenever something has changed')
    .addHelpText('after', '\nExit status: 0; 3 where a person is needed; 1 failed; 2 wrong usage.')
    .action(async (options: Options, command: Command) => {
      if (options.watch === true) return watchStatus(options, command);
      await using hub = await connectHub(command);
      const status = await hub.status();
      process.exitCode = exitStatusOf(status.conditions);
      if (options.json === true) printJson(status);
      else print(statusText(status));
    });
}

/** Shows how the hub stands until Ctrl-C, which is how it ends and no failure. A hub that goes is waited for. */
async function watchStatus(options: Options, command: Command): Promise<void> {
  const ended = new AbortController();
  void waitForTerminationSignal().then(() => ended.abort());
  // Before the screen is another one: where there is no hub, that stays to be read.
  let status: StatusResponse | null = await fetchStatus(command);
  using parts = new DisposableStack();
  const display = await createDisplay(options, parts);
  for (;;) {
    if (status === null) display.hubUnavailable();
    else display.show(status);
    await systemTimers.sleep(POLL_INTERVAL, ended.signal);
    if (ended.signal.aborted) return;
    status = await fetchStatus(command).catch((error: unknown) => {
      if (isHubUnavailable(error)) return null;
      throw error;
    });
  }
}

/** @throws Failure `hub_stopping` where there is no answer in time */
async function fetchStatus(command: Command): Promise<StatusResponse> {
  await using hub = await connectHub(command);
  const stop = systemTimers.after(ANSWER_TIMEOUT, () => void hub[Symbol.asyncDispose]());
  try {
    return await hub.status();
  } finally {
    stop();
  }
}

/** @param parts what the terminal is to be left by */
async function createDisplay({ json }: Options, parts: DisposableStack): Promise<StatusDisplay> {
  if (json !== true && canRedraw(process.stdout)) {
    const { StatusScreen } = await import('./screen.ts');
    return parts.use(new StatusScreen());
  }
  const { LineStatusDisplay, JsonStatusDisplay } = await import('./displays.ts');
  return json === true ? new JsonStatusDisplay() : new LineStatusDisplay();
}
