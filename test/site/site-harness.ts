import { randomUUID } from 'node:crypto';
import { afterAll } from 'vitest';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import type { DatabaseAddress } from '../../src/store/postgres/connections.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';
import type { PostgresProxy } from '../support/postgres/proxy.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';

export const SITE_KEY = new Uint8Array(STORE_KEY_BYTES).fill(7);

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
 * Ends the server with the last test of this file or group: call it outside of tests. Files that share a process do not
 * share the server.
 * @returns {@link siteServer}
 */
export function useSiteServer(): typeof siteServer {
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

/** Opens the store of a hub of a site as after the hub's start. */
export async function openSiteStore(
  address: DatabaseAddress,
  hubId: string,
  boot: string = randomUUID(),
): Promise<PostgresStore> {
  const options = { address, hubId, sealing: jweSealing(SITE_KEY), clock: systemClock(boot), timers: systemTimers };
  const store = await openPostgresStore({ ...options, random: { uuid: randomUUID } });
  await store.startupDone();
  return store;
}
