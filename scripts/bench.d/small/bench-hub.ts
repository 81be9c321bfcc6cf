import { copyFile, cp } from 'node:fs/promises';
import { join } from 'node:path';
import { startEmulator } from '../../../src/emulator/index.ts';
import { pairFleet } from '../../../test/reliability/fleet.ts';
import type { FleetMember } from '../../../test/reliability/stored-fleet.ts';
import type { HubProcess } from '../../../test/support/hub-process.ts';
import { createLan, lanSkipReason } from '../../../test/support/netns.ts';
import { NotifySocket } from '../../../test/support/notify-socket.ts';
import { prepareHub } from '../hub.ts';
import type { BenchOptions, BenchSubject } from '../suite.ts';

/** In seconds: so long that nothing is refreshed during the measurement, when the hub cannot reach the portal. */
const TOKEN_LIFETIME = 86_400;
/** The value of `WATCHDOG_USEC` that the unit's `WatchdogSec` leads to, in µs. */
const WATCHDOG = '90000000';

/** A hub with paired appliances that can be started like the service of a package. */
export interface SmallMachineBench extends AsyncDisposable {
  readonly subject: BenchSubject;
  readonly hub: HubProcess;
  readonly fleet: readonly FleetMember[];
  /** A command that runs other programs where they can reach the hub. */
  readonly within: readonly string[];
  /** Whether it is on a network of its own, on which it announces itself. */
  readonly hasNeighbours: boolean;
  /** Starts the hub. @returns the time until READY=1, in ms */
  launch(): Promise<number>;
}

/**
 * Pairs the appliances at a hub on loopback, and copies its state to a second hub. The second one is in its own network
 * namespace if possible, because a hub on loopback has no segment on which to announce itself.
 */
export async function openSmallMachineBench(
  subject: BenchSubject,
  appliances: number,
  bench: BenchOptions,
): Promise<SmallMachineBench> {
  const scratch = join(bench.scratch, subject.name.replaceAll(' ', '-'));
  const main = await packagedProgram(subject, join(scratch, 'package'));
  await using emulator = await startEmulator({ tokenLifetime: TOKEN_LIFETIME });
  await using first = await prepareHub(subject, { emulator, main });
  await first.launch();
  const names = Array.from({ length: appliances }, (_, index) => `appliance-${index + 1}`);
  const fleet = await pairFleet(first, emulator, names);
  await first.kill('SIGTERM');

  await using parts = new AsyncDisposableStack();
  const skipReason = await lanSkipReason();
  if (skipReason !== null) bench.progress(`small: without mDNS: ${skipReason}`);
  const lan = skipReason === null ? parts.use(await createLan(['hub'])) : null;
  const within = lan === null ? [] : ['ip', 'netns', 'exec', lan.hosts.hub.namespace];
  const notify = parts.use(await NotifySocket.listen());
  const network = lan === null ? {} : { LATCHKEY_LAN_ADDRESS: 'auto', LATCHKEY_LAN_LISTEN: '0.0.0.0,::' };
  const hub = parts.use(
    await prepareHub(subject, {
      emulator,
      main,
      within,
      metrics: '127.0.0.1:9480',
      env: {
        ...network,
        NOTIFY_SOCKET: notify.path,
        WATCHDOG_USEC: WATCHDOG,
        CACHE_DIRECTORY: join(scratch, 'cache'),
      },
    }),
  );
  await cp(join(first.directory, 'state'), join(hub.directory, 'state'), { recursive: true });
  const resources = parts.move();
  return {
    subject,
    hub,
    fleet,
    within,
    hasNeighbours: lan !== null,
    async launch() {
      notify.messages.length = 0;
      const before = performance.now();
      await hub.launch();
      await notify.waitForAssignment('READY=1');
      return performance.now() - before;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/**
 * Builds the program of a subject as in its packages, with the subject's own bundler script.
 * @param folder for the program
 * @returns the path of its main.js
 */
async function packagedProgram({ root }: BenchSubject, folder: string): Promise<string> {
  const { bundle } = (await import(join(root, 'scripts/deb.d/bundle.ts'))) as typeof import('../../deb.d/bundle.ts');
  await bundle(root, process.arch === 'arm64' ? 'arm64' : 'x64', join(folder, 'dist'));
  await copyFile(join(root, 'package.json'), join(folder, 'package.json'));
  return join(folder, 'dist/main.js');
}
