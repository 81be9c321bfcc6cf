/**
 * Announces a hub, as a program on a host of a test's LAN, in the host's first segment. The first argument is JSON:
 * `instanceName`, `id`, `httpsPort`, `txt`, `setting` (as `lan.address`), `repeats` (false: it announces once, and then
 * only responds), and `copies` (whether it takes any other hub for a copy of it). Each line of stdin is JSON with the
 * new announcement, for the segment that the host has then. SIGTERM sends a goodbye.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/core/failure.ts';
import { MdnsResponder } from '../../src/mdns/announcing/mdns-responder.ts';
import { readLan } from '../../src/mdns/networks/lan-watch.ts';
import { OwnNetworks } from '../../src/mdns/networks/segments.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';

const { setting, repeats, copies, httpsPort, txt, ...hub } = JSON.parse(process.argv[2] ?? '');
const announcer = new MdnsResponder({
  ...hub,
  timers: repeats
    ? systemTimers
    : { ...systemTimers, after: (delay, run) => (delay < 1000 ? systemTimers.after(delay, run) : () => {}) },
  random: systemRandom,
  ownNetworks: () => new OwnNetworks(readLan(setting).interfaceCidrs),
  async isClone(address, port) {
    writeEvent({ event: 'checked', address, port });
    return copies;
  },
  onError: (error) => writeEvent({ event: 'error', message: String(error) }),
  onRenamed: () => writeEvent({ event: 'renamed', ...names() }),
  onLost: (failure) => writeEvent({ event: 'lost', message: failure.message }),
});
const commands = createInterface(process.stdin).on('line', (line) => void announce(JSON.parse(line)));

let stopping = false;
process.once('SIGTERM', async () => {
  stopping = true;
  commands.close();
  process.stdin.destroy();
  await announcer[Symbol.asyncDispose]();
  writeEvent({ event: 'gone' });
});

writeEvent({ event: 'started' });
await announce({});

async function announce(changes: object) {
  const segment = await firstSegment();
  if (segment === undefined) return;
  await announcer.announce({ httpsPort, txt, segment, ...changes });
  writeEvent({ event: 'ready', ...names(), missing: announcer.socketProblem && messageOf(announcer.socketProblem) });
}

/**
 * An interface that was plugged in counts as running up to a second later. @throws Error if there is none for ten
 * seconds
 */
async function firstSegment() {
  for (let attempt = 0; attempt < 500; attempt++) {
    const [segment] = readLan(setting).segments;
    if (stopping) return undefined;
    if (segment !== undefined) return segment;
    await sleep(20);
  }
  throw new Error('no segment');
}

function names() {
  const { instanceName: name, host, nameConflict: claimed } = announcer;
  return { name, host, claimed: claimed && messageOf(claimed) };
}

/** `at`: seconds on CLOCK_MONOTONIC, as in the observers. */
function writeEvent(event: object) {
  console.log(JSON.stringify({ ...event, at: Number(process.hrtime.bigint()) / 1e9 }));
}
