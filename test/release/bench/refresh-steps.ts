import { openBroker } from '../../../src/broker/open-broker.ts';
import type { BrokerStore, ConnectedPortal } from '../../../src/broker/ports.ts';
import type { Appliance } from '../../../src/core/appliances/appliance.ts';
import type { Instant } from '../../../src/core/clock.ts';
import type { Connection } from '../../../src/core/connections/connection.ts';
import type { Grant } from '../../../src/core/grants/grant.ts';
import type { Portal } from '../../../src/core/portals/portal.ts';
import { Secret } from '../../../src/core/secret.ts';
import { logTo } from '../../support/log-to.ts';

/** The time between the refreshes of two grants, in ms, independent of the number of grants. */
const APART = 500;
const PORTAL = { name: 'home', origin: 'https://portal.test', clientId: 'hub' };
const TOKENS = { accessToken: new Secret('access'), refreshToken: new Secret('refresh'), scope: null };

/** The cost of one refresh in the deciding code, without portal and disk. */
interface Step {
  /** How often a timer was started, and the clock was read. */
  readonly armed: number;
  readonly readings: number;
  /** The maximum number of timers at once. */
  readonly timers: number;
}

/** Runs a broker with `grants` grants for `steps` refreshes, on a manual clock. */
export async function measureRefreshSteps(grants: number, steps: number): Promise<Step> {
  const time = new HandMovedTime();
  const tokens = { ...TOKENS, lifetime: (grants * APART) / 0.8 };
  let refreshed = 0;
  const portal: Pick<Portal, 'refresh'> = {
    refresh: async () => ({ kind: 'granted', tokens, portalTime: time.now().wall }),
  };
  const connected: ConnectedPortal = {
    portal: portal as Portal,
    identity: { ...PORTAL, otherOrigins: [] },
    credentialLocation: { portal: PORTAL.name },
    retryLostAnswer: 'late',
    loginLifetime: null,
    idleLifetime: null,
    refreshEndsAccessToken: false,
  };
  const silent = () => undefined;
  await openBroker({
    environment: {
      clock: time,
      timers: time,
      random: { token: () => '', uuid: () => '', below: () => 0, fraction: () => 0.5 },
      log: logTo(silent),
      emit: silent,
    },
    store: storeOf(
      Array.from({ length: grants }, (_, index) => {
        const request = { requestedScope: null, issuer: PORTAL };
        const state = {
          doubt: null,
          refused: null,
          accessTokenRejectedAt: null,
          misconfigured: null,
          portalTime: null,
        };
        const obtained = { ...time.now(), uptime: -index * APART };
        return { connection: `appliance-${index}`, generation: 1, obtained, ...tokens, ...state, ...request };
      }),
      () => {
        refreshed += 1;
      },
    ),
    portals: { names: [PORTAL.name], get: () => connected, nameOf: () => PORTAL.name },
    pairingTimes: { lifetime: 900_000, pollInterval: 5000 },
    declarations: { connections: [], appliances: [], file: '' },
    jitterOffset: () => 0.5,
  });

  const until = async (count: number) => {
    while (refreshed < count) {
      time.fire();
      await new Promise(setImmediate);
    }
  };
  await until(grants);
  const before = { refreshed, armed: time.armed, readings: time.readings };
  await until(refreshed + steps);
  const each = (sum: number) => sum / (refreshed - before.refreshed);
  return {
    armed: each(time.armed - before.armed),
    readings: each(time.readings - before.readings),
    timers: time.most,
  };
}

/**
 * A store that holds these grants and their appliances, and nothing else.
 * @param onRefreshed called when a grant is replaced
 */
function storeOf(grants: readonly Grant[], onRefreshed: () => void): BrokerStore {
  const credentials = { kind: 'secret', hash: '' } as const;
  const appliances = grants.map(({ connection: id }): Appliance => {
    return {
      id,
      clientId: id,
      name: id,
      connection: id,
      credentials,
      origin: 'added',
      waitingSince: null,
      softwareId: null,
    };
  });
  const connections = grants.map(({ connection: id }): Connection => {
    return { id, name: id, portal: PORTAL.name, scope: null, origin: 'implicit' };
  });
  const store: Partial<BrokerStore> = {
    setting: async () => null,
    saveSetting: async () => undefined,
    site: null,
    connections: async () => connections,
    appliances: async () => appliances,
    grants: async () => grants.map((grant) => ({ grant, attempt: null })),
    sessions: async () => [],
    invites: async () => [],
    beginAttempt: async () => ({ kind: 'begun', sendBefore: null }),
    async replaceGrant() {
      onRefreshed();
      return true;
    },
    setHistorySource: () => undefined,
    usage: async () => new Map(),
    setUsageSource: () => undefined,
    damagedGrants: new Set(),
    damagedConnections: new Set(),
    damagedAppliances: new Set(),
    rejectedSessions: new Set(),
    hasRejectedInvites: false,
  };
  return store as BrokerStore;
}

/** A clock that only advances to the next timer. */
class HandMovedTime {
  armed = 0;
  readings = 0;
  most = 0;
  #uptime = 0;
  readonly #timers = new Set<{ readonly at: number; readonly run: () => void }>();

  now(): Instant {
    this.readings += 1;
    return { boot: 'one', uptime: this.#uptime, wall: this.#uptime };
  }

  after(delay: number, run: () => void): () => void {
    const timer = { at: this.#uptime + delay, run };
    this.#timers.add(timer);
    this.armed += 1;
    this.most = Math.max(this.most, this.#timers.size);
    return () => this.#timers.delete(timer);
  }

  sleep(): Promise<void> {
    return Promise.reject(new Error('sleep is not expected here'));
  }

  /** Advances to the next timer and runs it. */
  fire(): void {
    const [next] = [...this.#timers].sort((a, b) => a.at - b.at);
    if (next === undefined) throw new Error('there is no timer');
    this.#timers.delete(next);
    this.#uptime = Math.max(this.#uptime, next.at);
    next.run();
  }
}
