import { Command } from 'commander';
import { parseDurationSeconds } from '../terminal/duration.ts';
import { printJson, reportFailure } from '../terminal/output.ts';
import { waitForTerminationSignal } from '../terminal/signals.ts';
import type { DemoEnvironment } from './environment.ts';
import type { DemoCounters, DemoOutput } from './output.ts';

interface DemoOptions {
  readonly auto?: boolean;
  /** Seconds. */
  readonly for?: number;
  readonly json?: boolean;
}

/**
 * On a slow machine a demo that logs in by itself goes on until each appliance has used a token, at most for so many ms: what
 * it shows is counted, not timed.
 */
const MAX_OVERTIME_MS = 300_000;

/** `latchkey demo` */
export function demoCommand(): Command {
  return new Command('demo')
    .description('an emulated portal, a hub and three simulated appliances on this machine, to watch them at work')
    .option('--auto', 'log in by itself instead of waiting for a person with a browser')
    .option('--for <duration>', 'end after so many seconds, or 45s, 10m', parseDurationSeconds)
    .option('--json', 'print the figures as JSON at the end')
    .action(demo);
}

async function demo(options: DemoOptions): Promise<void> {
  const [{ createLog }, { systemClock, systemTimers }, { setUpDemo }, { DemoOutput }, { runDemo: play }] =
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
  const environment = await setUpDemo(parts, clock, createLog('error'));
  printIntroduction(environment, output, options.auto === true);
  const missing = new Set(options.auto === true ? environment.appliances.map(({ appliance }) => appliance.name) : []);
  let isOver = false;
  if (options.for !== undefined) {
    systemTimers.after(options.for * 1000, () => {
      isOver = true;
      if (missing.size === 0) ending.abort();
    });
    parts.defer(systemTimers.after(options.for * 1000 + MAX_OVERTIME_MS, () => ending.abort()));
  }
  const end = options.for === undefined ? null : clock.now().uptime + options.for * 1000;
  const left = () => (end === null ? null : end - clock.now().uptime);
  const figures = await play(environment, output, {
    auto: options.auto === true,
    timers: systemTimers,
    remainingMs: left,
    signal: ending.signal,
    onTokenUsed: (appliance) => {
      missing.delete(appliance);
      if (isOver && missing.size === 0) ending.abort();
    },
  });
  output.clearCounters();
  printConclusion(figures, environment, output, options);
}

function printIntroduction(
  { emulator, appliances: members, tokenLifetime }: DemoEnvironment,
  output: DemoOutput,
  auto: boolean,
): void {
  output.writeLine(
    `${output.style('bold', 'Latchkey demo')}: a portal, a hub and ${members.length} appliances, all on this machine.`,
  );
  output.writeLine(
    `Portal ${emulator.frontendUrl} (emulated; tokens live ${tokenLifetime} s so that refreshes can be watched)`,
  );
  output.writeLine(
    auto
      ? 'Logging in by itself.'
      : `Log in at each link as ${output.style('bold', 'demo')}, password ${output.style('bold', 'demo')}.
One of the three logins is meant to end on a page that can't be reached: the hub gets its code all the same.`,
  );
  output.writeLine();
}

function printConclusion(
  figures: DemoCounters,
  { appliances: members }: DemoEnvironment,
  output: DemoOutput,
  { auto, json, for: limit }: DemoOptions,
): void {
  const { appliances, hand_outs, bad_hand_outs, refreshes } = figures;
  output.writeLine();
  output.writeLine(
    `${appliances} of ${members.length} appliances paired, ${hand_outs} tokens issued and used, ${bad_hand_outs} bad, ${refreshes} refreshes.`,
  );
  if (json) printJson(figures);
  if (bad_hand_outs > 0)
    reportFailure(`${bad_hand_outs} of ${hand_outs} issued tokens were bad: the lines above say why`);
  else if (auto && limit !== undefined && appliances < members.length) {
    reportFailure('not all appliances were paired: the lines above say how far they came');
  }
}
