import { randomUUID } from 'node:crypto';
import { afterAll } from 'vitest';
import type { Clock, Timers } from '../../src/core/clock.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import type { DatabaseAddress } from '../../src/store/postgres/database/connections.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import type { PostgresProxy } from '../support/postgres/proxy.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { skipIfUnavailable } from '../support/set-up.ts';

const SITE_KEY = new Uint8Array(STORE_KEY_BYTES).fill(7);

/** How to connect to a test database. */
export function addressOf(url: string, port?: number): DatabaseAddress {
  const { hostname, port: own, username, password, pathname } = new URL(url);
  const database = pathname.slice(1);
  return {
    host: hostname,
    port: port ?? Number(own),
    user: username,
    password,
    database,
    tls: null,
    description: `database ${database} on ${hostname}`,
  };
}

let shared: Promise<PostgresServer> | null = null;

/** The PostgreSQL server of a test file that calls {@link useSiteServer}, without TLS. */
export function siteServer(): Promise<PostgresServer> {
  shared ??= startPostgres({ tls: false });
  return shared;
}

/**
 * Ends the server with the last test of this file or group, and skips the tests where there is no PostgreSQL: call it
 * outside of tests. Files that share a process do not share the server.
 * @returns {@link siteServer}
 */
export function useSiteServer(): typeof siteServer {
  skipIfUnavailable(postgresSkipReason);
  afterAll(async () => {
    const server = await shared;
    shared = null;
    await server?.[Symbol.asyncDispose]();
  });
  return siteServer;
}

/** How to connect to a test database, perhaps through a proxy. */
export function siteAddress({ url }: { readonly url: string }, through?: PostgresProxy): DatabaseAddress {
  return addressOf(through === undefined ? url : through.urlOf(url));
}

/** What differs from a usual hub. */
export interface SiteHubOptions {
  readonly boot?: string;
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly key?: Uint8Array;
}

/** Opens the store of a hub of a site, which keeps other hubs from starting until `startupDone`. */
export function startSiteStore(
  address: DatabaseAddress,
  hubId: string,
  { boot = randomUUID(), clock = systemClock(boot), timers = systemTimers, key = SITE_KEY }: SiteHubOptions = {},
): Promise<PostgresStore> {
  const options = {
    address,
    hubId,
    hubName: hubId,
    sealing: jweSealing(key),
    clock,
    timers,
    random: { uuid: randomUUID },
  };
  return openPostgresStore(options);
}

/** Opens the store of a hub of a site as after the hub's start. @param options or only the id of the boot */
export async function openSiteStore(
  address: DatabaseAddress,
  hubId: string,
  options: SiteHubOptions | string = {},
): Promise<PostgresStore> {
  const store = await startSiteStore(address, hubId, typeof options === 'string' ? { boot: options } : options);
  await store.site.startupDone();
  return store;
}

/** Timers of a hub that does nothing by itself from time to time: it looks for no news and has no heartbeat. */
export const NO_INTERVALS: Timers = {
  ...systemTimers,
  sleep: (_, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) resolve();
      else signal?.addEventListener('abort', () => resolve());
    }),
};

/** A clock of which `factor` ms pass in each ms, for deadlines of a hub that a test would wait for too long. */
export function fastClock(factor: number): Clock {
  const clock = systemClock(randomUUID());
  const start = clock.now();
  return { now: () => ({ ...start, uptime: Math.round(start.uptime + (clock.now().uptime - start.uptime) * factor) }) };
}

/** The ids of two hubs. */
export const [HUB_A, HUB_B] = ['latchkey-0000000a', 'latchkey-0000000b'] as const;
