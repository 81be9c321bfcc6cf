import TinyQueue from 'tinyqueue';
import type { Random } from '../../src/core/random.ts';
import { jitterOffsetFor } from '../../src/hub/identity.ts';
import { type FleetGrant, FleetHub, TOKEN_REQUEST_INTERVAL_MS } from './hub.ts';
import { REFRESH_LATENCY_MS, type SimulatedPortal, TOKEN_LIFETIME_MS, tokenOf } from './portal.ts';
import type { Staleness } from './staleness.ts';

const APPLIANCES = ['wallbox', 'heat-pump', 'inverter'];
/** How long all hubs have been running when the simulation begins, in ms. */
const STEADY_STATE_MS = 30 * 86_400_000;
const PORTAL = { origin: 'https://portal.test', clientId: 'hub', name: 'home' };

export interface FleetOptions {
  readonly hubs: number;
  /** Per hub, up to three. */
  readonly grants: number;
  /** The fraction of the hubs at which an appliance requests one of the tokens every two minutes. */
  readonly asked: number;
  /** Default: the daemon's own. */
  readonly jitterOffset?: typeof jitterOffsetFor;
}

interface Event {
  readonly at: number;
  readonly run: (() => void) | null;
  readonly held: FleetGrant | null;
}

/** A fleet of hubs in virtual time. */
export class Fleet {
  readonly hubs: FleetHub[] = [];
  readonly staleness: Staleness;
  readonly #portal: SimulatedPortal;
  readonly #queue = new TinyQueue<Event>([], (a, b) => a.at - b.at);
  /** The current event of each grant; its other events in the queue are outdated. */
  readonly #planned: (Event | null)[] = [];
  readonly #off = new Set<FleetHub>();
  /** Milliseconds since the beginning. */
  now = 0;

  constructor(options: FleetOptions, portal: SimulatedPortal, random: Pick<Random, 'fraction'>, staleness: Staleness) {
    this.#portal = portal;
    this.staleness = staleness;
    const { hubs, grants, asked, jitterOffset = jitterOffsetFor } = options;
    for (let index = 0; index < hubs; index += 1) {
      const hub = new FleetHub(this, random, -STEADY_STATE_MS);
      const isAsked = random.fraction() < asked;
      for (const appliance of APPLIANCES.slice(0, grants)) {
        const asksFrom = isAsked && hub.grants.length === 0 ? TOKEN_REQUEST_INTERVAL_MS * random.fraction() : null;
        hub.grants.push(
          this.#grant(hub, appliance, jitterOffset(`hub-${index}`, appliance), asksFrom, random.fraction()),
        );
      }
      this.hubs.push(hub);
      for (const held of hub.grants) this.#plan(held);
    }
  }

  /** Runs a function at a time, in ms. */
  at(time: number, run: () => void): void {
    this.#queue.push({ at: time, run, held: null });
  }

  /** Advances the time to `end`, in ms. */
  runUntil(end: number): void {
    for (let next = this.#queue.peek(); next !== undefined && next.at <= end; next = this.#queue.peek()) {
      this.#queue.pop();
      this.now = next.at;
      if (next.held === null) next.run?.();
      else if (this.#planned[next.held.number] === next) this.#check(next.held);
    }
    this.now = end;
  }

  /** Cuts a hub's power from `offAt` to `backAt`, in ms. */
  cut(hub: FleetHub, offAt: number, backAt: number): void {
    hub.offAt = offAt;
    this.at(offAt, () => this.#stop(hub));
    this.at(backAt, () => this.#start(hub, () => hub.boot()));
  }

  /** Restarts the daemon of a hub. @param takes how long that takes, in ms */
  restart(hub: FleetHub, at: number, takes: number): void {
    this.at(at, () => this.#stop(hub));
    this.at(at + takes, () => this.#start(hub, () => hub.restart()));
  }

  #stop(hub: FleetHub): void {
    this.#off.add(hub);
    for (const held of hub.grants) this.#planned[held.number] = null;
  }

  #start(hub: FleetHub, start: () => void): void {
    this.#off.delete(hub);
    start();
    for (const held of hub.grants) {
      this.staleness.excuse(held, this.now);
      this.#plan(held);
    }
  }

  #plan(held: FleetGrant): void {
    // A refresh that a power cut interrupts has no outcome until the power is back.
    if (this.#off.has(held.hub) || held.cutShort !== null) return;
    const { hub } = held;
    // Timers run for whole milliseconds, and never fire early.
    const at = Math.floor(Math.max(this.now, Math.min(hub.dueAt(held), hub.nextAsk(held)))) + 1;
    const event = Number.isFinite(at) ? { at, run: null, held } : null;
    this.#planned[held.number] = event;
    if (event !== null) this.#queue.push(event);
  }

  /** The hub's timer fires, or an appliance requests the token. */
  #check(held: FleetGrant): void {
    const { hub } = held;
    const own = hub.isDue(held);
    if (own || hub.isWorthWaiting(held)) this.#refresh(held, own ? 'own' : 'prompted');
    this.#plan(held);
  }

  #refresh(held: FleetGrant, wanted: 'own' | 'prompted'): void {
    const { hub, number } = held;
    const { refreshToken } = held.grant;
    if (refreshToken === null) throw new Error('the portal gave no refresh token');
    const sent = hub.now();
    const isReceived = this.now + REFRESH_LATENCY_MS < hub.offAt;
    const knew = hub.knowsTheTime;
    const outcome = this.#portal.refresh(this.now, wanted, number, refreshToken, isReceived);
    if (!isReceived) {
      held.cutShort = sent;
      return;
    }
    hub.take(held, outcome, sent);
    if (outcome.kind === 'granted') this.staleness.refreshed(held, this.now);
    if (!knew && hub.knowsTheTime) for (const other of hub.grants) this.#plan(other);
  }

  /**
   * A grant whose next refresh is partly due: in a fleet that has been running for long, phases are evenly distributed.
   * @param phase from 0 to 1, the part of the time until its refresh that has passed
   */
  #grant(hub: FleetHub, appliance: string, jitterOffset: number, asksFrom: number | null, phase: number): FleetGrant {
    const number = this.#planned.push(null) - 1;
    const now = hub.now();
    const age = (0.75 + 0.1 * jitterOffset) * TOKEN_LIFETIME_MS * phase;
    this.staleness.begin(number, -age);
    const grant = {
      ...{ connection: appliance, generation: 1, accessToken: tokenOf(0), refreshToken: tokenOf(0), scope: null },
      ...{ lifetime: TOKEN_LIFETIME_MS, obtained: { ...now, uptime: now.uptime - age, wall: now.wall - age } },
      ...{ portalTime: now.wall - age, doubt: null, refused: null, accessTokenRejectedAt: null, misconfigured: null },
      ...{ requestedScope: null, issuer: PORTAL },
    };
    const none = {
      lastForcedRefresh: null,
      leasedUntil: null,
      throttledUntil: Number.NEGATIVE_INFINITY,
      cutShort: null,
    };
    return { grant, health: { kind: 'good' }, hub, number, jitterOffset, asksFrom, ...none };
  }
}
