// Clouds that end the former access token at each refresh, with several clients in virtual time.
import { describe, expect, test } from 'vitest';
import type { Cloud } from '../../src/clouds/cloud.ts';
import { lanServiceOf } from '../broker/broker-services.ts';
import { PresetHub } from './preset-harness.ts';

/** After a power cut the hub knows the age of a token from the `Date` of the cloud, which has whole seconds; in ms. */
const DATE_MARGIN = 2000;

/** How the clients of the house ask: how much of the lifetime passes between two uses, and their `min_ttl` in ms. */
const CLIENTS = [
  { name: 'boiler', everyPart: 1 / 4, minTtl: 0, keepsToken: true },
  { name: 'dashboard', everyPart: 1 / 20, minTtl: 0, keepsToken: false },
  { name: 'thermostat', everyPart: 1 / 7, minTtl: 300_000, keepsToken: true },
];

/** A program that uses the cloud's API with the hub's tokens, as an OAuth library does: until `expires_in` is over. */
class Client {
  readonly #hub: PresetHub;
  readonly #margin: number;
  readonly #options: (typeof CLIENTS)[number];
  #held: { readonly token: string; readonly until: number } | null = null;
  #nextUse = 0;
  /** The statuses of the API. */
  readonly statuses: number[] = [];
  /** How long its requests for tokens waited, in ms. */
  readonly waits: number[] = [];
  /** When the tokens end that it was told of. */
  readonly ends = new Set<number>();
  isBusy = false;

  /** @param margin how long before its end a token is no longer used, in ms */
  constructor(hub: PresetHub, options: (typeof CLIENTS)[number], margin: number) {
    this.#hub = hub;
    this.#margin = margin;
    this.#options = options;
  }

  /** Uses the API if it is time for that. */
  async work(): Promise<void> {
    const { time } = this.#hub.harness;
    if (this.isBusy || time.wall < this.#nextUse) return;
    this.isBusy = true;
    const { everyPart, keepsToken } = this.#options;
    if (this.#held === null || !keepsToken || time.wall >= this.#held.until) this.#held = await this.#ask();
    this.statuses.push(await this.#hub.call(this.#held.token));
    this.#nextUse = Math.min(time.wall + Math.round(everyPart * this.#hub.lifetime), this.#held.until);
    this.isBusy = false;
  }

  /** Uses the token that it holds, whatever the time. */
  async useHeldToken(): Promise<void> {
    const { wall } = this.#hub.harness.time;
    if (this.#held !== null && wall < this.#held.until) this.statuses.push(await this.#hub.call(this.#held.token));
  }

  async #ask() {
    const { harness } = this.#hub;
    const { name, minTtl } = this.#options;
    const asked = harness.time.wall;
    const appliance = harness.run.appliances.get(name);
    const result = await lanServiceOf(harness).issueToken(appliance, { scope: null, minTtl });
    this.waits.push(harness.time.wall - asked);
    if (result.kind !== 'token') throw new Error(`no token: ${result.kind}`);
    const until = harness.time.wall + 1000 * result.expiresIn - this.#margin;
    this.ends.add(until);
    return { token: result.accessToken.reveal(), until };
  }
}

/** Lets all clients work for this many lifetimes of a token. @param interrupt called once in the middle */
async function workFor(hub: PresetHub, clients: Client[], lifetimes: number, interrupt?: () => Promise<void>) {
  const { time } = hub.harness;
  const end = time.wall + lifetimes * hub.lifetime;
  const middle = time.wall + (lifetimes * hub.lifetime) / 2;
  let failure: unknown = null;
  for (let interrupted = false; time.wall < end; ) {
    if (!interrupted && time.wall >= middle && clients.every(({ isBusy }) => !isBusy)) {
      interrupted = true;
      await interrupt?.();
    }
    for (const client of clients) {
      client.work().catch((error: unknown) => {
        failure ??= error;
      });
    }
    await time.settle();
    // Around a refresh every moment counts; between two of them, time may fly.
    const left = 1000 * (hub.status.refreshIn ?? 0);
    const isBusy = clients.some((client) => client.isBusy);
    await time.pass(isBusy ? 10 : left > 4000 ? Math.min(left - 2000, Math.round(hub.lifetime / 20)) : 250);
    await Promise.all(clients.map((client) => client.useHeldToken()));
    if (failure !== null) throw failure;
  }
}

/** A connected login that all clients use. */
async function start(preset: Cloud, margin = 0) {
  const hub = await PresetHub.start(preset);
  expect(await hub.logIn()).toBe('paired');
  for (const { name } of CLIENTS) await hub.harness.addUser(name, 'house');
  return { hub, clients: CLIENTS.map((client) => new Client(hub, client, margin)) };
}

/** Declares the tests of these presets, whose clouds end the former access token at each refresh. */
export function testEndingTokens(chosen: readonly Cloud[]): void {
  describe.each(chosen)('$name, where a refresh ends the former access token', (preset) => {
    test('no client gets a token that the cloud refuses, and one that asks during a refresh waits for the new one', async () => {
      const { hub, clients } = await start(preset);
      await using _ = hub;
      await workFor(hub, clients, 3.5);
      expect(new Set(clients.flatMap(({ statuses }) => statuses))).toEqual(new Set([200]));
      const refreshes = hub.refreshes.map(({ time }) => Date.parse(time));
      const issued = [hub.emulator.grants()[0]?.createdAt ?? 0, ...refreshes];
      expect(refreshes).toHaveLength(3);
      for (const [index, at] of refreshes.entries()) {
        // Late: in the last minute or so of the token that it ends.
        expect(at - (issued[index] ?? 0)).toBeGreaterThan(hub.lifetime - 90_000);
        expect(at - (issued[index] ?? 0)).toBeLessThan(hub.lifetime);
      }
      // The clients were told of no other end than that of the next refresh, which they ask for at that moment.
      for (const end of clients.flatMap(({ ends }) => [...ends])) {
        const next = refreshes.find((at) => at >= end) ?? Number.POSITIVE_INFINITY;
        if (next < Number.POSITIVE_INFINITY) expect(next - end).toBeLessThan(2000);
      }
      const waits = clients.flatMap((client) => client.waits);
      expect(Math.max(...waits)).toBeGreaterThan(0);
      expect(Math.max(...waits)).toBeLessThan(9500);
    });

    test.each([
      ['a crash of the hub', async ({ harness }: PresetHub) => void (await harness.crash())],
      [
        'a power cut at the hub',
        async ({ harness }: PresetHub) => {
          await harness.crash();
          harness.time.reboot(harness.time.wall + 60_000);
        },
      ],
    ])('%s ends no token that a client holds', async (_what, interrupt) => {
      const { hub, clients } = await start(preset, DATE_MARGIN);
      await using _ = hub;
      await workFor(hub, clients, 2.5, async () => {
        await interrupt(hub);
        await hub.harness.start();
      });
      expect(new Set(clients.flatMap(({ statuses }) => statuses))).toEqual(new Set([200]));
      expect(hub.refreshes.length).toBeGreaterThanOrEqual(2);
    });
  });
}
