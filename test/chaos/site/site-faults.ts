import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/hub-process.ts';
import type { StopMode } from '../../support/postgres/process.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import type { ChaosSite } from './chaos-site.ts';
import { DATABASE_ADDRESS } from './database.ts';
import type { SiteHub } from './site-hub.ts';

/** What may happen to a hub. */
type HubFault = 'kill' | 'pause' | 'cut from database' | 'cut from portal' | 'cut from lan';
/** What may happen to the database. */
export type DatabaseFault = StopMode | 'kill' | 'promotion';

const HUB_FAULTS: readonly HubFault[] = [
  ...(['kill', 'kill', 'kill', 'pause', 'pause', 'pause'] as const),
  ...(['cut from database', 'cut from database', 'cut from portal', 'cut from portal', 'cut from lan'] as const),
];
const DATABASE_FAULTS: readonly DatabaseFault[] = ['fast', 'immediate', 'kill', 'promotion'];

/** Injects faults into a site. Each kind of choice comes from a seed. */
export class SiteFaults {
  /** How often each fault of the database has happened. */
  readonly databaseFaults: Record<DatabaseFault, number> = { smart: 0, fast: 0, immediate: 0, kill: 0, promotion: 0 };
  /** How often a hub was added and removed. */
  guests = 0;
  /** How often a connection was unpaired during its refresh, by hubs without a fault. */
  unpairings = 0;
  /** How many requests a firewall has refused. */
  refusedByFirewall = 0;
  /** What went wrong that must not. */
  readonly broken: string[] = [];
  readonly #site: ChaosSite;
  readonly #stop: AbortSignal;
  readonly #progress: (line: string) => void;

  /** @param stop ends faults early */
  constructor(site: ChaosSite, stop: AbortSignal, progress: (line: string) => void) {
    this.#site = site;
    this.#stop = stop;
    this.#progress = progress;
  }

  /**
   * Injects faults until the run is stopped: the hubs, the database and the guest each have a sequence of their own.
   */
  async run(seed: number): Promise<void> {
    await Promise.all([
      ...this.#site.hubs.map((hub, index) => this.#hubFaults(hub, new SeededRandom(seed + index))),
      this.#portalFaults(new SeededRandom(seed + 300)),
      this.#databaseFaults(new SeededRandom(seed + 100)),
      this.#guestHubs(new SeededRandom(seed + 200)),
    ]);
  }

  /**
   * Kills a hub during an import over a grant, and starts it again.
   * @param seconds how long it is away
   * @param random chooses the connection, and the time of the kill
   */
  async kill(hub: SiteHub, seconds: number, random: SeededRandom): Promise<void> {
    this.#progress(`${hub.name} is killed, for ${seconds} s`);
    const importing = this.#site.importOver(random.pick(this.#site.connections), hub).catch(() => undefined);
    await sleep(300 * random.fraction());
    const end = await hub.kill();
    await importing;
    await this.#wait(seconds);
    try {
      await hub.launch();
    } catch (error) {
      this.broken.push(
        `${hub.name} did not start again: ${error instanceof Error ? error.message.slice(-400) : error}`,
      );
    }
    end();
  }

  async pause(hub: SiteHub, seconds: number): Promise<void> {
    this.#progress(`${hub.name} is paused for ${seconds} s`);
    const resume = hub.pause();
    await this.#wait(seconds);
    resume();
  }

  async cut(hub: SiteHub, from: 'database' | 'portal' | 'lan', seconds: number): Promise<void> {
    const others = this.#site.members.filter((other) => other !== hub).map(({ host }) => host.address);
    const addresses = {
      database: [DATABASE_ADDRESS],
      portal: [this.#site.addressOf('portal')],
      lan: [this.#site.addressOf('appliances'), ...others],
    };
    this.#progress(`${hub.name} is cut off from the ${from} for ${seconds} s`);
    const heal = await hub.cut(`cut_from_${from}`, addresses[from]);
    await this.#wait(seconds);
    await heal();
  }

  /** A firewall before the portals refuses all refreshes. */
  async blockPortal(seconds: number): Promise<void> {
    this.#progress(`a firewall blocks the portal for ${seconds} s`);
    const end = await this.#site.blockPortals();
    await this.#wait(seconds);
    this.refusedByFirewall += await end();
  }

  /** Unpairs a connection during its refresh by another hub. The portal has nothing left of its grant. */
  async unpair(): Promise<void> {
    const [hub, other] = this.#site.hubs.filter(({ name, isUp }) => isUp && !this.#site.faults.isFaulty(name));
    if (hub === undefined || other === undefined) return;
    const { length } = this.#site.faults.faults;
    const grant = await this.#site.unpairDuringRefresh(hub, other).catch(() => null);
    const isRevoked = grant !== null && (await eventually(() => this.#isNewestRevoked(grant), 5).catch(() => false));
    // A fault may have hit one of the hubs, or the database.
    if (this.#site.faults.faults.length > length || !(hub.isUp && other.isUp)) return;
    this.unpairings += 1;
    if (!isRevoked) this.broken.push(`${other.name} has unpaired a connection, and its newest token was not revoked`);
  }

  async #isNewestRevoked(id: string): Promise<boolean> {
    await this.#site.portalLog.collect();
    const grant = (await this.#site.portalLog.grants()).find((each) => each.id === id);
    return grant !== undefined && this.#site.portalLog.wasRevoked(id, grant.generation);
  }

  async harmDatabase(fault: DatabaseFault): Promise<void> {
    this.#progress(`the database has a fault: ${fault}`);
    const end = this.#site.faults.begin('database_away', null);
    if (fault === 'promotion') await this.#site.database.promote(end);
    else await this.#site.database.restart(fault).finally(end);
    this.databaseFaults[fault] += 1;
  }

  async guest(seconds: number): Promise<void> {
    this.#progress(`a hub is added, for ${seconds} s`);
    await this.#site.addGuest();
    await this.#wait(seconds);
    await this.#site.removeGuest();
    this.guests += 1;
  }

  async #hubFaults(hub: SiteHub, random: SeededRandom): Promise<void> {
    for (;;) {
      const gap = random.whole(10, 60);
      const fault = random.pick(HUB_FAULTS);
      const isLong = random.fraction() < 0.25;
      const seconds = random.whole(5, fault === 'pause' && isLong ? 300 : fault === 'kill' ? 30 : 60);
      await this.#wait(gap);
      if (this.#stop.aborted) return;
      if (fault === 'kill') await this.kill(hub, seconds, random);
      else if (fault === 'pause') await this.pause(hub, seconds);
      else await this.cut(hub, fault.replace('cut from ', '') as 'database' | 'portal' | 'lan', seconds);
      if (!hub.isUp) {
        this.broken.push(`${hub.name} has ended by itself: ${hub.process.ended}`);
        return;
      }
    }
  }

  async #databaseFaults(random: SeededRandom): Promise<void> {
    for (;;) {
      const gap = random.whole(40, 150);
      const fault = random.pick(DATABASE_FAULTS);
      await this.#wait(gap);
      if (this.#stop.aborted) return;
      await this.harmDatabase(fault);
    }
  }

  async #portalFaults(random: SeededRandom): Promise<void> {
    for (;;) {
      const [gap, seconds] = [random.whole(120, 300), random.whole(20, 90)];
      await this.#wait(gap);
      if (this.#stop.aborted) return;
      await this.unpair();
      await this.blockPortal(seconds);
    }
  }

  async #guestHubs(random: SeededRandom): Promise<void> {
    for (;;) {
      const [gap, seconds] = [random.whole(60, 240), random.whole(30, 120)];
      await this.#wait(gap);
      if (this.#stop.aborted) return;
      await this.guest(seconds);
    }
  }

  async #wait(seconds: number): Promise<void> {
    await sleep(1000 * seconds, undefined, { signal: this.#stop }).catch(() => undefined);
  }
}
