import { setTimeout as sleep } from 'node:timers/promises';
import type { FleetMember } from '../../../test/reliability/stored-fleet.ts';
import type { HubProcess } from '../../../test/support/hub-process.ts';
import type { GrantedRefresh } from '../permissive-portal.ts';

/** The pause between two requests for the same token, in ms. */
const PAUSE = 2;
/** A hub that does not issue the new token by then is broken, in ms. */
const TIMEOUT = 30_000;

/** Measures how soon each hub issues the new token after a refresh. */
export class NewTokenWatch {
  /** From the portal's response to the new token from the hub that has refreshed it, in ms. */
  readonly first: number[] = [];
  /** From then on until each other hub has issued it, in ms. */
  readonly others: number[] = [];
  readonly #hubs: readonly HubProcess[];
  readonly #members: ReadonlyMap<string, FleetMember>;
  readonly #running: Promise<void>[] = [];

  /** @param fleet whose client ids are the ids of their connections, see `addMadeUpFleet` */
  constructor(hubs: readonly HubProcess[], fleet: readonly FleetMember[]) {
    this.#hubs = hubs;
    this.#members = new Map(fleet.map((member) => [member.client_id, member]));
  }

  /** Call this when the portal sends its response. */
  add(refresh: GrantedRefresh): void {
    this.#running.push(this.#watch(refresh, performance.now()));
  }

  /** Waits until every hub has issued every new token. @throws Error if one has not in time */
  async end(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #watch({ connection, accessToken }: GrantedRefresh, sent: number): Promise<void> {
    const member = this.#members.get(connection);
    if (member === undefined) return;
    const delays = await Promise.all(
      this.#hubs.map(async (hub) => {
        while (performance.now() < sent + TIMEOUT) {
          const { body } = await hub.requestToken(member);
          if (body['access_token'] === accessToken) return performance.now() - sent;
          await sleep(PAUSE);
        }
        throw new Error(`a hub still issues a former token after ${TIMEOUT} ms`);
      }),
    );
    const first = Math.min(...delays);
    this.first.push(first);
    const others = delays.toSpliced(delays.indexOf(first), 1);
    this.others.push(...others.map((delay) => delay - first));
  }
}
