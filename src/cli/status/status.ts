import { Command } from 'commander';
import type { StatusResponse } from '../../control/messages.ts';
import { systemTimers } from '../../system/clock.ts';
import { connectHub, isHubUnavailable } from '../hub-connection.ts';
import { canRedraw, print, printJson } from '../terminal/output.ts';
import { waitForTerminationSignal } from '../terminal/signals.ts';
import type { StatusDisplay } from './displays.ts';
import { exitStatusOf, statusText } from './text.ts';

/** How often the hub is polled, in ms. */
const POLL_INTERVAL = 1000;
/** How long a response may take, in ms. */
const RESPONSE_TIMEOUT = 5000;

interface Options {
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** `latchkey status` */
export function statusCommand(): Command {
  return new Command('status')
    .description('show the state of the hub, of each appliance and of the connections that appliances share')
    .option(
      '--watch',
      'keep showing it until Ctrl-C: on a terminal redrawn every second, elsewhere a line for each change',
    )
    .option('--json', 'print JSON; with --watch one object per line, whenever something has changed')
    .addHelpText('after', '\nExit status: 0 fine; 3 somebody must act; 1 failed; 2 wrong usage.')
    .action(async (options: Options, command: Command) => {
      if (options.watch === true) return watchStatus(options, command);
      await using hub = await connectHub(command);
      const status = await hub.request('status');
      process.exitCode = exitStatusOf(status.conditions);
      if (options.json === true) printJson(status);
      else print(statusText(status));
    });
}

/** Shows the status until Ctrl-C, which is the normal end and no failure. If the hub stops, waits for it to return. */
async function watchStatus(options: Options, command: Command): Promise<void> {
  const ending = new AbortController();
  void waitForTerminationSignal().then(() => ending.abort());
  // Before the alternate screen is entered, so that the message stays readable if there is no hub.
  let status: StatusResponse | null = await fetchStatus(command);
  using parts = new DisposableStack();
  const display = await createDisplay(options, parts);
  for (;;) {
    if (status === null) display.hubUnavailable();
    else display.show(status);
    await systemTimers.sleep(POLL_INTERVAL, ending.signal);
    if (ending.signal.aborted) return;
    status = await fetchStatus(command).catch((error: unknown) => {
      if (isHubUnavailable(error)) return null;
      throw error;
    });
  }
}

/** @throws Failure `hub_stopping` if there is no response in time */
async function fetchStatus(command: Command): Promise<StatusResponse> {
  await using hub = await connectHub(command);
  const stop = systemTimers.after(RESPONSE_TIMEOUT, () => void hub[Symbol.asyncDispose]());
  try {
    return await hub.request('status');
  } finally {
    stop();
  }
}

/** @param parts restores the terminal when it is disposed of */
async function createDisplay({ json }: Options, parts: DisposableStack): Promise<StatusDisplay> {
  if (json !== true && canRedraw(process.stdout)) {
    const { StatusScreen } = await import('./screen.ts');
    return parts.use(new StatusScreen());
  }
  const { LineStatusDisplay, JsonStatusDisplay } = await import('./displays.ts');
  return json === true ? new JsonStatusDisplay() : new LineStatusDisplay();
}
