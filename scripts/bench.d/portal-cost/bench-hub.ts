import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LoggedRequest, startEmulator } from '../../../src/emulator/index.ts';
import { fetchPage } from '../../../test/reliability/fleet.ts';
import { eventually, type HubProcess, type HubProcessOptions } from '../../../test/support/hub-process.ts';

/** The requests of one pairing to the portal. */
interface PairingCost {
  readonly links: number;
  readonly polls: number;
  readonly exchanges: number;
  /** From its beginning to the person's login, in ms. */
  readonly waited: number;
}

/** The hub's requests to the portal's token endpoint since the start. */
interface TokenCost {
  /** For each refresh, the age of the token that it replaced, in ms. */
  readonly ages: readonly number[];
  readonly requests: number;
  readonly connections: number;
  /** Sent in both directions on all these connections, including TLS. */
  readonly bytes: number;
  /** Requests that belong neither to a pairing nor to the token endpoint. */
  readonly others: number;
}

/** A hub and its portal, which uses TLS and counts the hub's requests. */
export interface PortalCostBench extends AsyncDisposable {
  /**
   * Pairs another appliance.
   * @param way how the authorization code reaches the hub
   * @param wait time until the login, in ms
   */
  pair(name: string, way: 'redirect' | 'polling', wait: number): Promise<PairingCost>;
  /** Every appliance requests its token every `every` ms, for `during` ms. @returns how many tokens were issued */
  ask(every: number, during: number): Promise<number>;
  cost(): TokenCost;
}

/**
 * Starts a portal and a hub.
 * @param lifetime of the portal's tokens, in s
 * @param scratch a folder for the portal's CA certificate
 */
export async function startPortalCostBench(
  prepare: (options: HubProcessOptions) => Promise<HubProcess>,
  lifetime: number,
  scratch: string,
): Promise<PortalCostBench> {
  await using parts = new AsyncDisposableStack();
  const caFile = join(scratch, 'portal-ca.pem');
  const emulator = parts.use(await startEmulator({ tls: true, caFile, tokenLifetime: lifetime }));
  const connections = parts.use(connectionsTo(Number(new URL(emulator.frontendUrl).port)));
  const hub = parts.use(await prepare({ emulator, portal: `ca_file = "${caFile}"` }));
  await hub.launch();
  const members: Awaited<ReturnType<HubProcess['addAppliance']>>[] = [];
  const running = parts.move();
  return {
    async pair(name, way, wait) {
      const last = emulator.requests.at(-1)?.number ?? 0;
      members.push(await hub.addAppliance(name));
      const begun = performance.now();
      const url = await hub.beginPairing(name);
      await sleep(wait);
      const waited = performance.now() - begun;
      const { location } = await emulator.login({ state: url.searchParams.get('state') ?? '', user: 'demo' });
      if (way === 'redirect') await fetchPage(location);
      await eventually(async () => (await hub.appliance(name)).state === 'active');
      const made = emulator.requests.filter(({ number }) => number > last);
      const count = (of: (request: LoggedRequest) => boolean) => made.filter(of).length;
      return {
        links: count(({ endpoint }) => endpoint === 'config'),
        polls: count(({ endpoint }) => endpoint === 'code/get'),
        exchanges: count(({ form }) => form['grant_type'] === 'authorization_code'),
        waited,
      };
    },
    async ask(every, during) {
      let issued = 0;
      for (const end = performance.now() + during; performance.now() < end; await sleep(every)) {
        for (const member of members) {
          const { status } = await hub.requestToken(member);
          if (status !== 200) throw new Error(`a token request got the status ${status}`);
          issued += 1;
        }
      }
      return issued;
    },
    cost() {
      const known = new Set(['config', 'code/get', 'code/set', 'authorize', 'token']);
      return {
        ages: agesOf(emulator.requests),
        requests: emulator.requests.filter(({ endpoint }) => endpoint === 'token').length,
        others: emulator.requests.filter(({ endpoint }) => !known.has(endpoint)).length,
        ...connections.soFar(),
      };
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/**
 * The age of each token when it was replaced, in ms. Equal secrets are masked equally in the emulator's request log.
 */
function agesOf(requests: readonly LoggedRequest[]): number[] {
  const issuedAt = new Map<unknown, number>();
  const ages: number[] = [];
  for (const { endpoint, time, form, answer } of requests) {
    if (endpoint !== 'token') continue;
    const before = issuedAt.get(form['refresh_token']);
    if (before !== undefined) ages.push(Date.parse(time) - before);
    issuedAt.set(answer['refresh_token'], Date.parse(time));
  }
  return ages;
}

/** Counts the connections to a port of this process, and their bytes. */
function connectionsTo(port: number) {
  const sockets: Socket[] = [];
  const note = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort === port) sockets.push(socket);
  };
  subscribe('net.server.socket', note);
  return {
    soFar: () => ({
      connections: sockets.length,
      bytes: sockets.reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0),
    }),
    [Symbol.dispose]: () => void unsubscribe('net.server.socket', note),
  };
}
