import TinyQueue from 'tinyqueue';
import type { Random } from '../../src/core/random.ts';
import { jitterOffsetFor } from '../../src/hub/identity.ts';
import { type FleetGrant, FleetHub, TOKEN_REQUEST_INTERVAL_MS } from './hub.ts';
import { REFRESH_LATENCY_MS, type SimulatedPortal, TOKEN_LIFETIME_MS, tokenOf } from './portal.ts';
import type { Staleness } from './staleness.ts';

const APPLIANCES = ['wallbox', 'heat-pump', 'inverter'];
/** All hubs have been running for so long, in ms. */
const STEADY_STATE_MS = 30 * 86_400_000;
const PORTAL = { origin: 'https://portal.test', clientId: 'hub', name: 'home' };

export interface FleetOptions {
  readonly hubs: number;
  /** Of each hub, up to three. */
  readonly grants: number;
  /** The part of the hubs where an appliance asks for one of the tokens every other minute. */
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
  /** What is planned for each grant; anything else of it in the queue is out of date. */
  readonly #planned: (Event | null)[] = [];
  readonly #off = new Set<FleetHub>();
  /** Milliseconds from the beginning. */
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

  /** Does something at a time, in ms. */
  at(time: number, run: () => void): void {
    this.#queue.push({ at: time, run, held: null });
  }

  /** Lets the time pass until `end`, in ms. */
  runUntil(end: number): void {
    for (let next = this.#queue.peek(); next !== undefined && next.at <= end; next = this.#queue.peek()) {
      this.#queue.pop();
      this.now = next.at;
      if (next.held === null) next.run?.();
      else if (this.#planned[next.held.number] === next) this.#look(next.held);
    }
    this.now = end;
  }

  /** The power of a hub goes, and comes back at `backAt`, in ms. */
  cut(hub: FleetHub, offAt: number, backAt: number): void {
    hub.offAt = offAt;
    this.at(offAt, () => this.#stop(hub));
    this.at(backAt, () => this.#start(hub, () => hub.boot()));
  }

  /** The daemon of a hub is started again, which takes so many ms. */
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
    // What is under way when the power goes has no end before that.
    if (this.#off.has(held.hub) || held.cutShort !== null) return;
    const { hub } = held;
    // Timers run for whole milliseconds, and never end too early.
    const at = Math.floor(Math.max(this.now, Math.min(hub.dueAt(held), hub.nextAsk(held)))) + 1;
    const event = Number.isFinite(at) ? { at, run: null, held } : null;
    this.#planned[held.number] = event;
    if (event !== null) this.#queue.push(event);
  }

  /** The hub's timer has run out, or an appliance asks. */
  #look(held: FleetGrant): void {
    const { hub } = held;
    const own = hub.isDue(held);
    if (own || hub.isWorthWaiting(held)) this.#refresh(held, own ? 'own' : 'prompted');
    this.#plan(held);
  }

  #refresh(held: FleetGrant, wanted: 'own' | 'prompted'): void {
    const { hub, number } = held;
    const sent = hub.now();
    const isHeard = this.now + REFRESH_LATENCY_MS < hub.offAt;
    const knew = hub.knowsTheTime;
    const outcome = this.#portal.refresh(this.now, wanted, number, held.grant.refreshToken, isHeard);
    if (!isHeard) {
      held.cutShort = sent;
      return;
    }
    hub.take(held, outcome, sent);
    if (outcome.kind === 'granted') this.staleness.refreshed(held, this.now);
    if (!knew && hub.knowsTheTime) for (const other of hub.grants) this.#plan(other);
  }

  /**
   * A grant in the middle of its life: those of a fleet that has been running for long lie evenly.
   * @param phase from 0 to 1, how much of the time until its refresh has passed
   */
  #grant(hub: FleetHub, appliance: string, jitterOffset: number, asksFrom: number | null, phase: number): FleetGrant {
    const number = this.#planned.push(null) - 1;
    const now = hub.now();
    const age = (0.75 + 0.1 * jitterOffset) * TOKEN_LIFETIME_MS * phase;
    this.staleness.begin(number, -age);
    const grant = {
      ...{ appliance, generation: 1, accessToken: tokenOf(0), refreshToken: tokenOf(0), scope: null },
      ...{ lifetime: TOKEN_LIFETIME_MS, obtained: { ...now, uptime: now.uptime - age, wall: now.wall - age } },
      ...{ portalTime: now.wall - age, doubt: null, refused: null, accessTokenRejectedAt: null, misconfigured: null },
      ...{ requestedScope: null, issuer: PORTAL },
    };
    const none = { lastForcedRefresh: null, throttledUntil: Number.NEGATIVE_INFINITY, cutShort: null };
    return { grant, health: { kind: 'good' }, hub, number, jitterOffset, asksFrom, ...none };
  }
}
