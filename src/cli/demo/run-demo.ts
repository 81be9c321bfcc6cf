import { request } from 'undici';
import type { Timers } from '../../core/clock.ts';
import type { PairingStatus } from '../../core/pairings/pairing-administration.ts';
import type { DemoAppliance, DemoEnvironment } from './environment.ts';
import type { DemoCounters, DemoOutput } from './output.ts';

/** How often each appliance asks for its token, in ms. */
const REQUEST_INTERVAL = 500;

/** What a person is told of a link before they open it, lest they take it for a fault. */
const UNREACHABLE_PAGE_NOTE =
  "This login is meant to end on a page that can't be reached, as on a phone that is not at home.";

/** How the demo is run. */
export interface RunDemoOptions {
  /** Log in by itself, where a person would open the link. */
  readonly auto: boolean;
  readonly timers: Timers;
  /** Milliseconds until the end; null for none. */
  remainingMs(): number | null;
  /** Hears the name of an appliance whenever it has used a token. */
  onTokenUsed(appliance: string): void;
  /** Ends the demo. */
  readonly signal: AbortSignal;
}

/** Pairs the appliances and has them use their tokens until the end. */
export async function runDemo(
  environment: DemoEnvironment,
  output: DemoOutput,
  direction: RunDemoOptions,
): Promise<DemoCounters> {
  const { onTokenUsed: onServed } = direction;
  const figures: DemoCounters = { appliances: 0, hand_outs: 0, bad_hand_outs: 0, refreshes: 0 };
  const count = () => {
    // The first generation comes from the pairing.
    figures.refreshes = environment.emulator.grants().reduce((sum, { generation }) => sum + generation - 1, 0);
    output.figures(figures, direction.remainingMs());
  };
  await Promise.all(
    environment.appliances.map(async (member) => {
      const scope = await pairDemoAppliance(environment, member, output, direction);
      if (scope === undefined) return;
      figures.appliances += 1;
      while (!direction.signal.aborted) {
        const use = await member.appliance.useToken();
        if (use.kind !== 'late') figures.hand_outs += 1;
        if (use.kind === 'good') onServed(member.appliance.name);
        else if (use.kind !== 'late') figures.bad_hand_outs += 1;
        output.writeTokenUse(
          member.appliance.name,
          use.kind === 'not_paired' ? { kind: 'bad', reason: 'the hub says it is not paired' } : use,
          scope,
        );
        count();
        await direction.timers.sleep(REQUEST_INTERVAL, direction.signal);
      }
    }),
  );
  return figures;
}

/** @returns the scope; undefined if the pairing failed or the demo ended before */
async function pairDemoAppliance(
  { administration, emulator }: DemoEnvironment,
  { appliance, codeDelivery: way, redirect }: DemoAppliance,
  output: DemoOutput,
  { auto, signal }: RunDemoOptions,
): Promise<string | null | undefined> {
  const { name } = appliance;
  const id = await administration.pair(name);
  for await (const report of administration.followPairing(id, signal)) {
    if (report.event === 'waiting') {
      output.writeEvent(name, `waits for a login (${way.before})`);
      if (auto) await logIn(emulator, report, redirect === 'hub');
      else
        output.writeLine(
          `\n    ${report.authorizeUrl}\n${redirect === 'nowhere' ? `    ${UNREACHABLE_PAGE_NOTE}\n` : ''}`,
        );
    }
    if (report.event === 'paired') {
      output.writeEvent(name, `${output.style('green', '✓')} ${output.style('bold', 'is connected')} (${way.after})`);
      return report.scope;
    }
    if (report.event === 'failed') {
      output.writeEvent(name, `was not paired: ${report.reason}`);
      return undefined;
    }
  }
  return undefined;
}

/** Does what a person with a browser does. */
async function logIn(
  emulator: DemoEnvironment['emulator'],
  { authorizeUrl }: Extract<PairingStatus, { event: 'waiting' }>,
  redirected: boolean,
): Promise<void> {
  const state = new URL(authorizeUrl).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'demo' });
  if (!redirected) return;
  const page = await request(location);
  await page.body.dump();
}
