import { Command } from 'commander';
import { detectInvocation } from '../../system/command-invocation.ts';
import { parseDurationSeconds } from '../terminal/duration.ts';
import { printJson, reportFailure } from '../terminal/output.ts';
import { waitForTerminationSignal } from '../terminal/signals.ts';
import type { DemoEnvironment } from './environment.ts';
import type { DemoCounters, DemoOutput } from './output.ts';

interface DemoOptions {
  readonly auto?: boolean;
  readonly lan?: boolean;
  /** Seconds. */
  readonly for?: number;
  readonly json?: boolean;
}

/**
 * On a slow machine `--auto` continues after `--for` until each appliance has used a token, but at most for this long,
 * in ms: the demo's result is a count and must not depend on the machine's speed.
 */
const MAX_OVERTIME_MS = 300_000;

/** `latchkey demo` */
export function demoCommand(): Command {
  return new Command('demo')
    .description('run an emulated portal, a hub and four simulated appliances on this machine, and show what they do')
    .option('--auto', 'log in automatically instead of waiting for a person with a browser')
    .option('--lan', 'listen on an address in the home network, so that a phone can open the links')
    .option('--for <duration>', 'end after this time, such as 45 or 45s (seconds) or 10m', parseDurationSeconds)
    .option('--json', 'print the counters as JSON at the end')
    .action(demo);
}

async function demo(options: DemoOptions): Promise<void> {
  const [{ createLog }, { systemClock, systemTimers }, { setUpDemo }, { DemoOutput }, { runDemo, writeHubPage }] =
    await Promise.all([
      import('../../system/log.ts'),
      import('../../system/clock.ts'),
      import('./environment.ts'),
      import('./output.ts'),
      import('./run-demo.ts'),
    ]);
  const clock = systemClock();
  const output = new DemoOutput(options.json ? process.stderr : process.stdout, () => clock.now().wall);
  const ending = new AbortController();
  void waitForTerminationSignal().then(() => ending.abort());

  await using parts = new AsyncDisposableStack();
  const environment = await setUpDemo(parts, clock, createLog('error'), options.lan === true);
  // The commands on the hub's page: without this they would reach another hub of this machine, or none.
  process.env['LATCHKEY_PROGRAM'] =
    `LATCHKEY_HUB_CONTROL_SOCKET=${environment.controlSocket} ${detectInvocation().program}`;
  printIntroduction(environment, output, options.auto === true);
  if (options.auto !== true) await writeHubPage(environment, output);
  const waitingFor = new Set(options.auto === true ? appliancesOf(environment).map(({ name }) => name) : []);
  let isOver = false;
  if (options.for !== undefined) {
    const endInTime = () => {
      isOver = true;
      if (waitingFor.size === 0) ending.abort();
    };
    parts.defer(systemTimers.after(options.for * 1000, endInTime));
    parts.defer(systemTimers.after(options.for * 1000 + MAX_OVERTIME_MS, () => ending.abort()));
  }
  const end = options.for === undefined ? null : clock.now().uptime + options.for * 1000;
  const remainingMs = () => (end === null ? null : end - clock.now().uptime);
  const counters = await runDemo(environment, output, {
    auto: options.auto === true,
    timers: systemTimers,
    remainingMs,
    signal: ending.signal,
    onTokenUsed: (appliance) => {
      waitingFor.delete(appliance);
      if (isOver && waitingFor.size === 0) ending.abort();
    },
  });
  output.clearCounters();
  printConclusion(counters, environment, output, options);
}

function printIntroduction(environment: DemoEnvironment, output: DemoOutput, auto: boolean): void {
  const { emulators, tokenLifetime } = environment;
  output.writeLine(
    `${output.style('bold', 'Latchkey demo')}: two portals, a hub and ${appliancesOf(environment).length} appliances, two of which share the login solar, all on this machine.`,
  );
  output.writeLine(
    `Portals ${emulators.map(({ frontendUrl }) => frontendUrl).join(' and ')} (emulated; tokens expire after ${tokenLifetime} s, so that you can watch the refreshes)`,
  );
  output.writeLine(
    auto
      ? 'Logging in automatically.'
      : `Log in at each link as ${output.style('bold', 'demo')}, password ${output.style('bold', 'demo')}.
One of the three logins ends on an unreachable page on purpose: the hub gets its code anyway.`,
  );
  output.writeLine();
}

function printConclusion(
  counters: DemoCounters,
  environment: DemoEnvironment,
  output: DemoOutput,
  { auto, json, for: limit }: DemoOptions,
): void {
  const { appliances, hand_outs, bad_hand_outs, refreshes } = counters;
  const all = appliancesOf(environment).length;
  output.writeLine();
  output.writeLine(
    `${appliances} of ${all} appliances paired, ${hand_outs} tokens issued and used, ${bad_hand_outs} of them bad, ${refreshes} refreshes.`,
  );
  if (json) printJson(counters);
  if (bad_hand_outs > 0) reportFailure(`${bad_hand_outs} of ${hand_outs} issued tokens were bad: see the lines above`);
  else if (auto && limit !== undefined && appliances < all) {
    reportFailure('not all appliances were paired: see the lines above');
  }
}

function appliancesOf({ connections }: DemoEnvironment) {
  return connections.flatMap(({ appliances }) => appliances);
}
