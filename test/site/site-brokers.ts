import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { createBrokerAdministration } from '../../src/broker/administration.ts';
import { createLanService } from '../../src/broker/lan-service.ts';
import { type Broker, type BrokerOptions, openBroker } from '../../src/broker/open-broker.ts';
import type { BrokerStore, Environment } from '../../src/broker/ports.ts';
import type { LanService } from '../../src/core/lan-service.ts';
import type { LogFields } from '../../src/core/log.ts';
import type { ConnectionEvent } from '../../src/core/reports/history.ts';
import type { SiteNews } from '../../src/core/site.ts';
import type { DatabaseAddress } from '../../src/store/postgres/database/connections.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import { HUB } from '../broker/broker-services.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { logTo } from '../support/log-to.ts';
import type { TestDatabase } from '../support/postgres/server.ts';
import { withMethods } from '../support/store-calls.ts';
import { addressOf, openSiteStore, siteServer } from './site-harness.ts';

/** A test waits so long for what usually takes a tenth of a second. */
const MAX_WAIT_MS = scaleDeadline(20_000);

/** A deadline on the boot clock that no test reaches. */
export const IN_AN_HOUR = systemClock().now().uptime + 3_600_000;

/** A hub of a test site: a real broker on a real store, in real time. */
export interface SiteBroker extends AsyncDisposable {
  readonly broker: Broker;
  readonly store: PostgresStore;
  readonly administration: ReturnType<typeof createBrokerAdministration>;
  readonly service: LanService;
  /** What it has logged and emitted. */
  readonly logged: { readonly event: string; readonly fields: LogFields }[];
  readonly emitted: ConnectionEvent[];
}

/** Two hubs of one site, on an empty database. */
export interface TestSite extends AsyncDisposable {
  readonly database: TestDatabase;
  readonly address: DatabaseAddress;
  readonly a: SiteBroker;
  readonly b: SiteBroker;
}

export async function startSite(): Promise<TestSite> {
  await using parts = new AsyncDisposableStack();
  const database = await (await siteServer()).createDatabase();
  const address = addressOf(database.url);
  const a = parts.use(await startSiteBroker(address, 'latchkey-0000000a'));
  const b = parts.use(await startSiteBroker(address, 'latchkey-0000000b'));
  const owned = parts.move();
  return { database, address, a, b, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * Starts a hub.
 * @param wrap changes the store that its broker uses
 * @param settings of the broker; default: without a portal
 */
export async function startSiteBroker(
  address: DatabaseAddress,
  hubId: string,
  wrap: (store: PostgresStore) => BrokerStore = (store) => store,
  settings: Partial<Pick<BrokerOptions, 'portals' | 'pairingTimes' | 'declarations'>> = {},
): Promise<SiteBroker> {
  await using parts = new AsyncDisposableStack();
  // Each hub is a machine of its own.
  const boot = randomUUID();
  const store = parts.use(await openSiteStore(address, hubId, boot));
  const logged: SiteBroker['logged'] = [];
  const emitted: ConnectionEvent[] = [];
  const environment: Environment = {
    clock: systemClock(boot),
    timers: systemTimers,
    random: systemRandom,
    log: logTo((event, fields) => logged.push({ event, fields })),
    emit: (event) => emitted.push(event),
  };
  const broker = parts.use(
    await openBroker({
      environment,
      store: wrap(store),
      portals: { names: ['home'], get: () => undefined, nameOf: () => undefined },
      pairingTimes: { lifetime: 900_000, pollInterval: 5000 },
      declarations: { connections: [], appliances: [], file: '/etc/l.toml' },
      jitterOffset: () => 0.5,
      ...settings,
    }),
  );
  await broker.resumePairings();
  const links = {
    endpoint: (path: string) => `https://hub${path}`,
    stableEndpoint: (path: string) => `https://hub.local${path}`,
    shortLink: () => null,
    fingerprint: () => '',
  };
  const administration = createBrokerAdministration(broker, links);
  const started = environment.clock.now();
  const service = createLanService(broker, {
    hub: HUB,
    started,
    caFingerprint: () => '',
    tokenRequested: () => undefined,
  });
  const owned = parts.move();
  return { broker, store, administration, service, logged, emitted, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The same store, which delivers news only when the hub looks for them. */
export function withoutNotifications(store: PostgresStore): BrokerStore {
  const held: SiteNews[] = [];
  let deliver = async (_news: SiteNews) => {};
  return withMethods(store, {
    watch(watcher) {
      if (watcher.news === undefined) return store.watch(watcher);
      deliver = watcher.news;
      store.watch({ ...watcher, news: async (news) => void held.push(news) });
    },
    async catchUp() {
      await store.catchUp();
      for (const news of held.splice(0)) await deliver(news);
      return true;
    },
  });
}

/** Waits until `read` gives `value`, because another hub of the site has changed something. */
export async function expectSoon<Value>(read: () => Value, value: Awaited<Value>): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS;
  // Expectations that fail cost much more than this comparison.
  while (!isDeepStrictEqual(await read(), value) && performance.now() < deadline) await sleep(10);
  expect(await read()).toEqual(value);
}
