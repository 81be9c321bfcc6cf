import { join } from 'node:path';
import { Appliances } from '../../src/broker/appliances/appliances.ts';
import { Connections } from '../../src/broker/connections/connections.ts';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { grantFromTokenResponse } from '../../src/core/grants/grant.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { loadStoreKey } from '../../src/store/keys/store-key.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { ensureStateDirectory } from '../../src/store/state-directory.ts';
import { systemClock } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import { type HubProcess, stateParameterOf } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

/** The credentials of an appliance of a fleet. */
export type FleetMember = Pick<CredentialsResponse, 'name' | 'client_id' | 'client_secret'>;

/** The portal at which the appliances of a fleet are paired. */
export type FleetPortal = Pick<Emulator, 'baseUrl' | 'frontendUrl' | 'clientId' | 'clientSecret' | 'login'>;

/** The emulator's name in the hub's configuration. */
const PORTAL = 'home';
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
    const { appliance, secret } = await appliances.add(name, { connections: [], scope: null, portal: null });
    const outcome = await granted(emulator, portal);
    const now = clock.now();
    const obtained = { ...now, uptime: now.uptime - age, wall: now.wall - age };
    const none = { connection: appliance.connection, generation: 0, scope: null, requestedScope: null, issuer };
    const { tokens } = outcome;
    const refreshToken = tokens.refreshToken ?? new Secret('');
    await store.grants.replace(grantFromTokenResponse(none, refreshToken, tokens, obtained, obtained.wall));
    return { name, client_id: appliance.clientId, client_secret: secret.reveal() };
  }

  const fleet: FleetMember[] = [];
  for (let from = 0; from < names.length; from += AT_ONCE) {
    fleet.push(...(await Promise.all(names.slice(from, from + AT_ONCE).map(member))));
  }
  rememberSecrets(fleet.map(({ client_secret }) => client_secret));
  return fleet;
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
