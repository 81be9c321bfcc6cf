/**
 * Announces a hub, as a program on a host of a test's LAN. The first argument is JSON: `instanceName`, `id`, `httpsPort`,
 * `txt`, `setting` (as `lan.address`), and `repeats` (false: it announces itself once, and then only answers). Each line of stdin announces it anew, at the address that the host then has.
 * SIGTERM says goodbye.
 */
import { createInterface } from 'node:readline';
import { announce } from '../../src/mdns/announcer.ts';
import { readLan } from '../../src/mdns/lan-watch.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';

const { setting, repeats, ...hub } = JSON.parse(process.argv[2] ?? '');
const announcement = await announce({
  ...hub,
  address: here(),
  timers: repeats ? systemTimers : { ...systemTimers, after: () => () => {} },
  random: systemRandom,
  onError: (error) => say({ event: 'error', message: String(error) }),
});
const commands = createInterface(process.stdin).on('line', async () => {
  await announcement.update({ address: here() });
  ready();
});

process.once('SIGTERM', async () => {
  commands.close();
  process.stdin.destroy();
  await announcement[Symbol.asyncDispose]();
  say({ event: 'gone' });
});

ready();

function here() {
  const { address } = readLan(setting);
  if (address === null) throw new Error('no LAN address');
  return address;
}

function ready() {
  say({ event: 'ready', name: announcement.instanceName });
}

/** `at`: seconds on CLOCK_MONOTONIC, as in the observers. */
function say(event: object) {
  console.log(JSON.stringify({ ...event, at: Number(process.hrtime.bigint()) / 1e9 }));
}
