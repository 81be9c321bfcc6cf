import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LoggedRequest, startEmulator } from '../../../src/emulator/index.ts';
import { fetchPage } from '../../../test/reliability/fleet.ts';
import { eventually, type HubProcess, type HubProcessOptions } from '../../../test/support/hub-process.ts';

/** What one pairing asked of the portal. */
interface PairingCost {
  readonly links: number;
  readonly polls: number;
  readonly exchanges: number;
  /** From its beginning to the person's login, in ms. */
  readonly waited: number;
}

/** What the hub has asked of the portal's token endpoint since it was started. */
interface TokenCost {
  /** Of each refresh: how long the token before it had been there, in ms. */
  readonly ages: readonly number[];
  readonly requests: number;
  readonly connections: number;
  /** Sent to the portal and by it on all of these together, with TLS. */
  readonly bytes: number;
  /** Requests of the hub that are neither for a pairing nor for tokens. */
  readonly others: number;
}

/** A hub and its portal, which speaks TLS, where all that the hub asks is counted. */
export interface PortalCostBench extends AsyncDisposable {
  /**
   * Pairs a further appliance.
   * @param way how the code gets to the hub
   * @param wait how long nobody logs in, in ms
   */
  pair(name: string, way: 'redirect' | 'polling', wait: number): Promise<PairingCost>;
  /** Every appliance asks for its token so often in so many ms. @returns how many tokens were handed out */
  ask(every: number, during: number): Promise<number>;
  cost(): TokenCost;
}

/**
 * Starts a portal and a hub.
 * @param lifetime of the portal's tokens, in s
 * @param scratch a folder for the portal's CA
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
      let handedOut = 0;
      for (const end = performance.now() + during; performance.now() < end; await sleep(every)) {
        for (const member of members) {
          const { status } = await hub.requestToken(member);
          if (status !== 200) throw new Error(`a hand-out was answered ${status}`);
          handedOut += 1;
        }
      }
      return handedOut;
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

/** How old each token was when it was replaced, in ms. Equal secrets look equal in the log. */
function agesOf(requests: readonly LoggedRequest[]): number[] {
  const given = new Map<unknown, number>();
  const ages: number[] = [];
  for (const { endpoint, time, form, answer } of requests) {
    if (endpoint !== 'token') continue;
    const before = given.get(form['refresh_token']);
    if (before !== undefined) ages.push(Date.parse(time) - before);
    given.set(answer['refresh_token'], Date.parse(time));
  }
  return ages;
}

/** Counts the connections that come to a port of this process, and what goes over them. */
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
