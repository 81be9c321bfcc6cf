import { request } from 'undici';
import type { Timers } from '../../core/clock.ts';
import type { PairingReport } from '../../core/pairing-report.ts';
import type { Household, Member } from './household.ts';
import type { DemoFigures, Show } from './show.ts';

/** How often each appliance asks for its token, in ms. */
const PACE = 500;

/** How the demo is run. */
export interface Direction {
  /** Log in by itself, where a person would open the link. */
  readonly auto: boolean;
  readonly timers: Timers;
  /** Milliseconds until the end; null for none. */
  left(): number | null;
  /** Hears the name of an appliance whenever it has used a token. */
  onServed(appliance: string): void;
  /** Ends the demo. */
  readonly signal: AbortSignal;
}

/** Pairs the appliances and has them use their tokens until the end. */
export async function play(household: Household, show: Show, direction: Direction): Promise<DemoFigures> {
  const { onServed } = direction;
  const figures: DemoFigures = { appliances: 0, hand_outs: 0, bad_hand_outs: 0, refreshes: 0 };
  const count = () => {
    // The first generation comes from the pairing.
    figures.refreshes = household.emulator.grants().reduce((sum, { generation }) => sum + generation - 1, 0);
    show.figures(figures, direction.left());
  };
  await Promise.all(
    household.members.map(async (member) => {
      const scope = await pair(household, member, show, direction);
      if (scope === undefined) return;
      figures.appliances += 1;
      while (!direction.signal.aborted) {
        const use = await member.appliance.useToken();
        if (use.kind !== 'late') figures.hand_outs += 1;
        if (use.kind === 'good') onServed(member.appliance.name);
        else if (use.kind !== 'late') figures.bad_hand_outs += 1;
        show.tellUse(
          member.appliance.name,
          use.kind === 'not_paired' ? { kind: 'bad', reason: 'the hub says it is not paired' } : use,
          scope,
        );
        count();
        await direction.timers.sleep(PACE, direction.signal);
      }
    }),
  );
  return figures;
}

/** @returns the scope; undefined where the pairing came to nothing before the end */
async function pair(
  { administration, emulator }: Household,
  { appliance, story, redirected }: Member,
  show: Show,
  { auto, signal }: Direction,
): Promise<string | null | undefined> {
  const { name } = appliance;
  const id = await administration.pair(name);
  for await (const report of administration.followPairing(id, signal)) {
    if (report.event === 'waiting') {
      show.tell(name, `waits for a login (${story})${auto ? '' : `\n\n    ${report.authorize_url}\n`}`);
      if (auto) await logIn(emulator, report, redirected);
    }
    if (report.event === 'paired') {
      show.tell(name, show.style('bold', 'is connected'));
      return report.scope;
    }
    if (report.event === 'failed') {
      show.tell(name, `was not paired: ${report.reason}`);
      return undefined;
    }
  }
  return undefined;
}

/** Does what a person with a browser does. */
async function logIn(
  emulator: Household['emulator'],
  { authorize_url }: Extract<PairingReport, { event: 'waiting' }>,
  redirected: boolean,
): Promise<void> {
  const state = new URL(authorize_url).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'demo' });
  if (!redirected) return;
  const page = await request(location);
  await page.body.dump();
}
