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

/** So that nothing is refreshed while it is looked at, in seconds: the portal is not where the hub is then. */
const TOKEN_LIFETIME = 86_400;
/** What the unit's `WatchdogSec` tells the service, in µs. */
const WATCHDOG = '90000000';

/** A hub that is not running, as a package's service runs it, with appliances that are paired. */
export interface SmallMachineBench extends AsyncDisposable {
  readonly subject: BenchSubject;
  readonly hub: HubProcess;
  readonly fleet: readonly FleetMember[];
  /** The program, and its arguments, that others have to become in order to reach it. */
  readonly within: readonly string[];
  /** Whether it is on a network with neighbours, and announces itself there. */
  readonly hasNeighbours: boolean;
  /** Starts it, and gives how long that took until the service was READY, in ms. */
  launch(): Promise<number>;
}

/**
 * Pairs the appliances at a hub on loopback, and takes what it has kept to another one, which is in a network of its own
 * where that can be had: a hub on loopback has nobody to announce itself to.
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
  const alone = await lanSkipReason();
  if (alone !== null) bench.progress(`small: without mDNS: ${alone}`);
  const lan = alone === null ? parts.use(await createLan(['hub'])) : null;
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
 * Builds the program of a subject as its packages have it, by its own rules.
 * @param folder where it is put
 * @returns its main.js
 */
async function packagedProgram({ root }: BenchSubject, folder: string): Promise<string> {
  const { bundle } = (await import(join(root, 'scripts/deb.d/bundle.ts'))) as typeof import('../../deb.d/bundle.ts');
  await bundle(root, process.arch === 'arm64' ? 'arm64' : 'x64', join(folder, 'dist'));
  await copyFile(join(root, 'package.json'), join(folder, 'package.json'));
  return join(folder, 'dist/main.js');
}
