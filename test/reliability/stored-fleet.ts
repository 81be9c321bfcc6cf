import { join } from 'node:path';
import { Appliances } from '../../src/broker/appliances/appliances.ts';
import { Connections } from '../../src/broker/connections/connections.ts';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { type Grant, grantFromTokenResponse } from '../../src/core/grants/grant.ts';
import { nextRefreshAt } from '../../src/core/grants/schedule.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Store } from '../../src/core/store.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { jitterOffsetFor } from '../../src/hub/identity.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { loadStoreKey } from '../../src/store/keys/store-key.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { ensureStateDirectory } from '../../src/store/state-directory.ts';
import { systemClock } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { type HubProcess, stateParameterOf } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

/** The credentials of an appliance of a fleet. */
export type FleetMember = Pick<CredentialsResponse, 'name' | 'client_id' | 'client_secret'>;

/** The portal at which the appliances of a fleet are paired. */
export type FleetPortal = Pick<Emulator, 'baseUrl' | 'frontendUrl' | 'clientId' | 'clientSecret' | 'login'>;

/** The emulator's name in the hub's configuration. */
const PORTAL = 'home';
/** The id of a hub whose fleet is made up; the time of each refresh depends on it. */
const HUB_ID = 'latchkey-00000000';
/** The number of parallel logins. */
const AT_ONCE = 20;

/**
 * Writes paired appliances into the store of a hub that is not running, each with a grant of the emulator. A thousand
 * real pairings, which the callers do not test, would take a minute.
 * @param age the age of their tokens for the hub, in ms
 */
export async function storeFleet(
  hub: Pick<HubProcess, 'directory'>,
  emulator: FleetPortal,
  names: readonly string[],
  age: number,
): Promise<FleetMember[]> {
  const clock = systemClock();
  using store = await openNewStore(hub);
  const appliances = await Appliances.load(store, systemRandom, await Connections.load(store, systemRandom, [PORTAL]));
  await using portal = new HelperPortal({
    baseUrl: emulator.baseUrl,
    frontendUrl: emulator.frontendUrl,
    clientId: emulator.clientId,
    clientSecret: new Secret(emulator.clientSecret),
    credentialLocation: { portal: 'home' },
    ca: [],
  });

  const issuer = { name: PORTAL, origin: new URL(emulator.frontendUrl).origin, clientId: emulator.clientId };
  async function member(name: string): Promise<FleetMember> {
    const { appliance, secret } = await appliances.add(name, { connection: null, scope: null, portal: null });
    const outcome = await granted(emulator, portal);
    const now = clock.now();
    const obtained = { ...now, uptime: now.uptime - age, wall: now.wall - age };
    const none = { connection: appliance.connection, generation: 0, scope: null, requestedScope: null, issuer };
    const { tokens } = outcome;
    const refreshToken = tokens.refreshToken ?? new Secret('');
    await store.replaceGrant(grantFromTokenResponse(none, refreshToken, tokens, obtained, obtained.wall));
    return { name, client_id: appliance.clientId, client_secret: secret.reveal() };
  }

  const fleet: FleetMember[] = [];
  for (let from = 0; from < names.length; from += AT_ONCE) {
    fleet.push(...(await Promise.all(names.slice(from, from + AT_ONCE).map(member))));
  }
  rememberSecrets(fleet.map(({ client_secret }) => client_secret));
  return fleet;
}

/**
 * Writes appliances with made-up tokens into the store of a hub that was never started. Their portal must accept any
 * refresh token. Ten thousand take seconds.
 * @param lifetime of the access tokens, in ms
 * @param dueAt when the hub refreshes each grant by its own schedule, on the boot clock in ms
 */
export async function storeMadeUpFleet(
  hub: Pick<HubProcess, 'directory'>,
  portal: Pick<FleetPortal, 'frontendUrl' | 'clientId'>,
  lifetime: number,
  dueAt: readonly number[],
): Promise<FleetMember[]> {
  using store = await openNewStore(hub);
  await store.saveSetting('hub_id', HUB_ID);
  return await addMadeUpFleet(store, HUB_ID, portal, lifetime, dueAt);
}

/**
 * As {@link storeMadeUpFleet}, for an open store without appliances.
 * @param owner the id of the hub, or of its site; the time of each refresh depends on it
 */
export async function addMadeUpFleet(
  store: Pick<Store, 'saveRegistry' | 'replaceGrant'>,
  owner: string,
  portal: Pick<FleetPortal, 'frontendUrl' | 'clientId'>,
  lifetime: number,
  dueAt: readonly number[],
): Promise<FleetMember[]> {
  const fleet = dueAt.map((due, index) => {
    const [id, name, secret] = [systemRandom.uuid(), `appliance-${index}`, systemRandom.token(32)];
    return { id, name, due, secret };
  });
  const origin = 'implicit' as const;
  await store.saveRegistry({
    addedConnections: fleet.map(({ id, name }) => ({ id, name, portal: PORTAL, scope: null, origin })),
    addedAppliances: fleet.map(({ id, name, secret }) => {
      const credentials = { kind: 'secret', hash: sha256(secret) } as const;
      const none = { waiting: null, softwareId: null };
      return { id, clientId: id, name, connection: id, credentials, origin: 'added', ...none };
    }),
  });
  const write = ({ id, due }: (typeof fleet)[number]) =>
    store.replaceGrant(madeUpGrant(owner, id, portal, lifetime, due));
  for (let from = 0; from < fleet.length; from += 500) await Promise.all(fleet.slice(from, from + 500).map(write));
  rememberSecrets(fleet.map(({ secret }) => secret));
  return fleet.map(({ id, name, secret }) => ({ name, client_id: id, client_secret: secret }));
}

/** The grant of one of these appliances, see {@link addMadeUpFleet}. */
export function madeUpGrant(
  owner: string,
  connection: string,
  { frontendUrl, clientId }: Pick<FleetPortal, 'frontendUrl' | 'clientId'>,
  lifetime: number,
  due: number,
): Grant {
  const now = systemClock().now();
  const issuer = { name: PORTAL, origin: new URL(frontendUrl).origin, clientId };
  const [accessToken, refreshToken] = [new Secret(systemRandom.token(60)), madeUpRefreshToken(connection)];
  const none = { connection, generation: 0, scope: null, requestedScope: null, issuer };
  const tokens = { accessToken, refreshToken, lifetime, scope: null };
  const fresh = grantFromTokenResponse(none, refreshToken, tokens, now, now.wall);
  const jitterOffset = jitterOffsetFor(owner, connection);
  const input = { now, confirmed: null, lastForcedRefresh: null, startedAt: now.uptime, jitterOffset };
  const age = (nextRefreshAt(fresh, input) ?? Number.NaN) - due;
  const obtained = { ...now, uptime: now.uptime - age, wall: now.wall - age };
  return { ...fresh, obtained, portalTime: obtained.wall };
}

/**
 * As long as the emulator's tokens; it begins with the id of its connection, so that a portal can tell which one it is.
 */
function madeUpRefreshToken(connection: string): Secret {
  return new Secret(`${connection}.${systemRandom.token(32)}`);
}

async function openNewStore(hub: Pick<HubProcess, 'directory'>): Promise<SqliteStore> {
  const directory = join(hub.directory, 'state');
  await ensureStateDirectory(directory);
  const key = await loadStoreKey(directory, undefined, () => systemRandom.token(STORE_KEY_BYTES));
  return openStore(directory, jweSealing(key), Date.now);
}

/** Logs in and exchanges the code. */
async function granted(emulator: FleetPortal, portal: HelperPortal) {
  const { signal } = new AbortController();
  const requested = await portal.requestLink({ nonce: '', scope: null }, signal);
  if (requested.kind !== 'link') throw new Error(`there is no link: ${requested.kind}`);
  const { link } = requested;
  await emulator.login({ state: stateParameterOf(link.authorizeUrl), user: 'demo' });
  const polled = await portal.poll(link, signal);
  if (polled.kind !== 'code') throw new Error(`there is no code: ${polled.kind}`);
  const outcome = await portal.exchangeCode(link, { code: polled.code, issuer: null }, null);
  if (outcome.kind !== 'granted') throw new Error(`there are no tokens: ${outcome.kind}`);
  return outcome;
}
