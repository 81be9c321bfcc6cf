import { watchClock } from '../../src/broker/time/clock-watch.ts';
import { StoreMaintenance } from '../../src/hub/store-maintenance.ts';
import { AddressChangeHandler } from '../../src/mdns/networks/address-change-handler.ts';
import { BrokerHarness, type BrokerHarnessOptions } from '../broker/broker-harness.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NAMES = ['wallbox', 'heat-pump', 'inverter', 'battery', 'boiler'];

/**
 * Five appliances that request tokens every two minutes in virtual time, at a hub that maintains its store, monitors
 * its clock, and gets a status request every few minutes.
 */
export async function startFiveAppliances(options: BrokerHarnessOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const home = stack.use(await BrokerHarness.start(options));
  const { time } = home;
  const ids: string[] = [];
  for (const name of NAMES) {
    ids.push(await home.addPairedAppliance(name));
    await time.pass(7 * MINUTE);
  }
  const { environment } = home;
  const lan = { address: '192.168.1.7' };
  const follower = new AddressChangeHandler({
    address: () => lan.address,
    handlers: [() => home.run.pairings.onAddressChanged(), () => home.run.grants.onNetworkChanged()],
    log: environment.log,
  });
  const housekeeping = stack.use(new StoreMaintenance(home.run.store, environment));
  housekeeping.start();
  stack.use(
    watchClock({
      environment,
      isSynchronized: async () => true,
      onSet: () => undefined,
      onSynchronized: () => undefined,
    }),
  );
  const every = (interval: number, first: number, run: () => void) => {
    time.after(first, () => {
      run();
      every(interval, interval, run);
    });
  };
  for (const [index, id] of ids.entries()) {
    every(2 * MINUTE, index * 20 * SECOND, () => void home.run.tokenIssuer.issue(id, null));
  }
  // The nightly snapshot is requested here, because its schedule uses the machine's real clock.
  every(DAY, 5 * HOUR, () => housekeeping.requestSnapshot());
  every(10 * MINUTE, MINUTE, () => {
    for (const { name } of home.run.appliances.list()) home.statusOf(name);
  });
  await time.pass(2 * HOUR);
  const running = stack.move();
  return {
    home,
    ids,
    moveTo(address: string) {
      lan.address = address;
      follower.notify();
    },
    /** Advances the time by `ms`. @returns the events in that time, before the log's rate limit */
    async pass(ms: number) {
      const before = home.events.length;
      await time.pass(ms);
      return home.events.slice(before).filter(({ level }) => level !== 'debug');
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** The number of lines of each event. */
export function countEvents(lines: readonly { readonly event: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { event } of lines) counts[event] = (counts[event] ?? 0) + 1;
  return counts;
}

/** The events of every day. */
export const DAILY = { snapshot_written: 1, daily_summary: 1 };
