import { request } from 'undici';
import type { Timers } from '../../core/clock.ts';
import { formatDuration } from '../../core/clock.ts';
import { joinNames } from '../../core/connections/connection.ts';
import type { PairingStatus } from '../../core/pairings/pairing-administration.ts';
import { urlAddressScope } from '../../system/addresses.ts';
import type { DemoConnection, DemoEnvironment } from './environment.ts';
import type { DemoCounters, DemoOutput } from './output.ts';
import type { SimulatedAppliance } from './simulated-appliance.ts';

/** How often each appliance asks for its token, in ms. */
const REQUEST_INTERVAL = 500;

/** Printed with the link, so that the user does not take the unreachable page for a fault. */
const UNREACHABLE_PAGE_NOTE = 'This login ends on an unreachable page on purpose, as on a phone that is not at home.';

/** Options of {@link runDemo}. */
export interface RunDemoOptions {
  /** Log in automatically instead of waiting for a person to open the link. */
  readonly auto: boolean;
  readonly timers: Timers;
  /** Milliseconds until the end; null for none. */
  remainingMs(): number | null;
  /** Called with the name of an appliance whenever it has used a token. */
  onTokenUsed(appliance: string): void;
  /** Ends the demo. */
  readonly signal: AbortSignal;
}

/** Pairs the connections and lets their appliances use their tokens until the signal aborts. */
export async function runDemo(
  environment: DemoEnvironment,
  output: DemoOutput,
  options: RunDemoOptions,
): Promise<DemoCounters> {
  const counters: DemoCounters = { appliances: 0, hand_outs: 0, bad_hand_outs: 0, refreshes: 0 };
  const updateCounters = () => {
    // The first generation comes from the pairing.
    const grants = environment.emulators.flatMap((emulator) => emulator.grants());
    counters.refreshes = grants.reduce((sum, { generation }) => sum + generation - 1, 0);
    output.showCounters(counters, options.remainingMs());
  };
  const useTokens = async (appliance: SimulatedAppliance, scope: string | null) => {
    counters.appliances += 1;
    while (!options.signal.aborted) {
      const use = await appliance.useToken();
      if (use.kind !== 'late') counters.hand_outs += 1;
      if (use.kind === 'good') options.onTokenUsed(appliance.name);
      else if (use.kind !== 'late') counters.bad_hand_outs += 1;
      output.writeTokenUse(
        appliance.name,
        use.kind === 'not_paired' ? { kind: 'bad', reason: 'the hub reports that it is not paired' } : use,
        scope,
      );
      updateCounters();
      await options.timers.sleep(REQUEST_INTERVAL, options.signal);
    }
  };
  let unpaired = environment.connections.length;
  await Promise.all(
    environment.connections.map(async (connection) => {
      const scope = await pairDemoConnection(environment, connection, output, options);
      if (scope === undefined) return;
      unpaired -= 1;
      if (unpaired === 0) await writeHubPage(environment, output, 'All of it is connected.');
      await Promise.all(connection.appliances.map((appliance) => useTokens(appliance, scope)));
    }),
  );
  return counters;
}

/** Writes an address that signs a browser in to the hub's page, once. @param before a sentence before it */
export async function writeHubPage(
  { administration }: Pick<DemoEnvironment, 'administration'>,
  output: DemoOutput,
  before = '',
): Promise<void> {
  const { code, signInUrl, signInExpiresIn } = await administration.setupCode();
  output.writeLine(`${before} The hub's page shows its appliances, and connects them:`.trimStart());
  output.writeLink(signInUrl.reveal(), [
    `This address works once, within ${formatDuration(signInExpiresIn)}; after that, sign in with the setup code ${code.reveal()}.`,
    "The browser warns about the hub's own certificate once: choose to continue.",
  ]);
}

/** @returns the scope; undefined if the pairing failed or the demo ended first */
async function pairDemoConnection(
  { administration }: DemoEnvironment,
  { name, appliances, emulator, codeDelivery, redirect }: DemoConnection,
  output: DemoOutput,
  { auto, signal }: RunDemoOptions,
): Promise<string | null | undefined> {
  const id = await administration.pair(name);
  for await (const report of administration.followPairing(id, signal)) {
    if (report.event === 'waiting') {
      const users = joinNames(appliances.map((user) => user.name));
      const isShared = appliances.length > 1;
      const shared = `is one login that ${users} share, each with credentials of its own: it `;
      output.writeEvent(name, `${isShared ? shared : ''}waits for somebody to log in (${codeDelivery.before})`);
      if (auto) await logIn(emulator, report, redirect === 'hub');
      else output.writeLink(shortLinkOf(report), linkNote(report, redirect));
    }
    if (report.event === 'paired') {
      output.writeEvent(
        name,
        `${output.style('green', '✓')} ${output.style('bold', 'is connected')} (${codeDelivery.after})`,
      );
      return report.scope;
    }
    if (report.event === 'failed') {
      output.writeEvent(name, `was not paired: ${report.reason}`);
      return undefined;
    }
  }
  return undefined;
}

/** The short link, because others are too long for a terminal; that of a device login is short, and not for phones. */
function shortLinkOf({ authorizeUrl, shortUrl, userCode }: Extract<PairingStatus, { event: 'waiting' }>): string {
  return userCode === undefined && shortUrl !== undefined ? shortUrl : authorizeUrl;
}

/** What a person has to know about a link. */
function linkNote(
  { userCode, authorizeUrl, shortUrl }: Extract<PairingStatus, { event: 'waiting' }>,
  redirect: DemoConnection['redirect'],
): readonly string[] {
  if (userCode !== undefined) {
    const isLocal = urlAddressScope(authorizeUrl) !== urlAddressScope(shortUrl ?? authorizeUrl);
    return [`Compare the code there: ${userCode}`, ...(isLocal ? ['This link works on this machine only.'] : [])];
  }
  return redirect === 'nowhere' ? [UNREACHABLE_PAGE_NOTE] : [];
}

/** Logs in as a person with a browser would. */
async function logIn(
  emulator: DemoConnection['emulator'],
  { authorizeUrl, userCode }: Extract<PairingStatus, { event: 'waiting' }>,
  redirected: boolean,
): Promise<void> {
  if (userCode !== undefined) return await emulator.approveDevice({ userCode, user: 'demo' });
  const state = new URL(authorizeUrl).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'demo' });
  if (!redirected) return;
  const page = await request(location);
  await page.body.dump();
}
