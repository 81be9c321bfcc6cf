// Measures how much memory a hub uses: with the appliances of a home, and under attack by other devices on the LAN.
import { readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { startEmulator } from '../../src/emulator/index.ts';
import { pairFleet } from '../../test/reliability/fleet.ts';
import { TokenLoad } from '../../test/reliability/load.ts';
import { HubProcess } from '../../test/support/hub-process.ts';
import { SERVICE_ENV, SERVICE_FLAGS } from './hub.ts';
import { tokenRequest } from './load.ts';

/** The hub's connection limits for each of its ports: 250 per address, and 1000 in total. */
const DEVICES = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14'];
const CONNECTIONS_PER_DEVICE = 250;
/** The header of a TLS record that announces a handshake of 512 bytes, without the handshake. */
const CLIENT_HELLO_BEGIN = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 252]);

const seconds = Number(process.argv[2] ?? 20);
if (!Number.isInteger(seconds) || seconds < 1 || seconds > 3600) {
  console.error('scripts/bench-memory: SECONDS: allowed is 1 to 3600, the length of each load');
  process.exit(2);
}
const only = process.argv[3] ?? '';
const load = loadavg()[0] ?? 0;
await using emulator = await startEmulator({ tokenLifetime: 15 });

/** A hub with the five appliances of a home, started like the service. */
interface Home {
  readonly hub: HubProcess;
  readonly fleet: readonly CredentialsResponse[];
}

/** A load on a hub. It returns a remark for the table. */
type MemoryScenario = (home: Home) => Promise<string>;

const appliances: MemoryScenario = async ({ hub, fleet }) => {
  await using load = await TokenLoad.start(hub, emulator, fleet, 500);
  await sleep(seconds * 1000);
  return `${load.handOuts.length} tokens, ${load.refused.length + load.refusals.length + load.unanswered.length} failed`;
};

const storm: MemoryScenario = async ({ hub }) => {
  const until = performance.now() + seconds * 1000;
  let handshakes = 0;
  await Promise.all(
    sourceAddresses().map(async (from) => {
      while (performance.now() < until) {
        const socket = await secure(hub, from).catch(() => null);
        if (socket === null) await sleep(10);
        else handshakes += 1;
        socket?.destroy();
      }
    }),
  );
  return `${handshakes} handshakes`;
};

const tokens: MemoryScenario = (home) =>
  crowd(home.hub, secure, async (sockets) => {
    const results = await Promise.all(sockets.map((socket, index) => isIssued(socket, requestOf(home, index))));
    return `${results.filter((ok) => ok).length} tokens`;
  });

const silence: MemoryScenario = ({ hub }) =>
  crowd(hub, plain, async (sockets) => {
    for (const socket of sockets) socket.write(CLIENT_HELLO_BEGIN);
    return '';
  });

const endless: MemoryScenario = ({ hub }) =>
  crowd(hub, secure, async (sockets) => {
    const head = `content-type: application/x-www-form-urlencoded\r\ncontent-length: 16384\r\nx: ${'x'.repeat(15_000)}`;
    for (const socket of sockets) {
      socket.write(`POST /oauth/token HTTP/1.1\r\nhost: localhost\r\n${head}\r\n\r\n${'x'.repeat(16_000)}`);
    }
    return '';
  });

/** Bodies of the maximum size, on both ports; every second body lacks its last byte. */
const bodies: MemoryScenario = ({ hub }) => {
  const post = (path: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 16384\r\n\r\n${'x'.repeat(length)}`;
  const over = (connect: Connect) =>
    crowd(hub, connect, async (sockets) => {
      for (const [index, socket] of sockets.entries()) socket.write(post('/oauth/token', 16_384 - (index % 2)));
      return '';
    });
  return Promise.all([over(secure), over(unencrypted)]).then((notes) => notes.join(''));
};

const unread =
  (path: string, times: number): MemoryScenario =>
  ({ hub }) =>
    crowd(hub, secure, async (sockets) => {
      const request = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
      for (const socket of sockets) socket.pause().write(request.repeat(times));
      return '';
    });

const flood: MemoryScenario = ({ hub }) =>
  crowd(hub, secure, async (sockets) => {
    const requests = 'GET / HTTP/1.1\r\nhost:a\r\n\r\n'.repeat(2000);
    for (const socket of sockets) socket.write(requests);
    return '';
  });

const hostile: Readonly<Record<string, MemoryScenario>> = {
  'continuous TLS handshakes on 1,000 connections at a time': storm,
  '1,000 connections begin a handshake and send nothing more': silence,
  '1,000 connections each send a request that never ends': endless,
  '2,000 connections, 1,000 of them over HTTP, each send a full body, or all of it except one byte': bodies,
  '1,000 connections request /pair 32 times each and read nothing': unread('/pair', 32),
  '1,000 connections request /openapi.json once each and read nothing': unread('/openapi.json', 1),
  '1,000 connections request /openapi.json 32 times each and read nothing': unread('/openapi.json', 32),
  '1,000 connections each send 2,000 requests at once': flood,
};
const all: Readonly<Record<string, MemoryScenario>> = {
  'no requests': async () => {
    await sleep(1000);
    return '';
  },
  '5 appliances request tokens twice a second': appliances,
  '1,000 connections open at once, get a token each and stay open': tokens,
  ...hostile,
  'all attacks above, one after another': async (home) => {
    for (const scenario of Object.values(hostile)) await scenario(home);
    return await appliances(home);
  },
};

console.log('| load | peak, MB | peak of anonymous memory, MB | |\n|---|---|---|---|');
for (const [name, scenario] of Object.entries(all)) if (name.includes(only)) await measure(name, scenario);
console.log(
  `\nNode ${process.versions.node}, ${process.arch}; load average ${load.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after.`,
);

async function measure(name: string, scenario: MemoryScenario): Promise<void> {
  await using hub = await HubProcess.start({
    emulator,
    env: { ...SERVICE_ENV },
    flags: SERVICE_FLAGS,
  });
  const fleet = await pairFleet(hub, emulator, ['wallbox', 'heat-pump', 'inverter', 'meter', 'boiler']);
  await sleep(1000);
  // proc(5): resets the peak.
  writeFileSync(`/proc/${hub.pid}/clear_refs`, '5');
  let most = 0;
  const sampler = setInterval(() => {
    most = Math.max(most, megabytes(hub, 'RssAnon'));
  }, 50);
  const note = await scenario({ hub, fleet }).finally(() => clearInterval(sampler));
  await sleep(500);
  if (hub.ended !== null) throw new Error(`${name}: the hub has ended: ${hub.ended}`);
  console.log(`| ${name} | ${megabytes(hub, 'VmHWM').toFixed(0)} | ${most.toFixed(0)} | ${note} |`);
}

function megabytes(hub: HubProcess, key: string): number {
  const status = readFileSync(`/proc/${hub.pid}/status`, 'utf8');
  return Number(new RegExp(`${key}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
}

/** A source address for each connection. */
function sourceAddresses(): string[] {
  return DEVICES.flatMap((device) => Array.from({ length: CONNECTIONS_PER_DEVICE }, () => device));
}

type Connect = (hub: HubProcess, from: string) => Promise<Socket>;

/** Opens a thousand connections, which stay open for some seconds after `work`. */
async function crowd(hub: HubProcess, connect: Connect, work: (sockets: Socket[]) => Promise<string>): Promise<string> {
  const tried = await Promise.allSettled(sourceAddresses().map((from) => connect(hub, from)));
  const sockets = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const note = await work(sockets);
  await sleep(8000);
  for (const socket of sockets) socket.destroy();
  return sockets.length === tried.length ? note : `${sockets.length} connected ${note}`;
}

function secure(hub: HubProcess, localAddress: string): Promise<Socket> {
  return opened(connectTls({ ...at(hub, localAddress), rejectUnauthorized: false }), 'secureConnect');
}

function plain(hub: HubProcess, localAddress: string): Promise<Socket> {
  return opened(connectTcp(at(hub, localAddress)), 'connect');
}

/** To the HTTP port. */
function unencrypted(hub: HubProcess, localAddress: string): Promise<Socket> {
  return opened(connectTcp({ ...at(hub, localAddress), port: hub.httpPort }), 'connect');
}

function at(hub: HubProcess, localAddress: string) {
  return { host: '127.0.0.1', port: hub.httpsPort, localAddress };
}

function opened(socket: Socket, event: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  socket.on('error', reject);
  socket.once('close', () => reject(new Error('closed')));
  socket.once(event, () => resolve(socket));
  return promise;
}

function isIssued(socket: Socket, request: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once('data', (chunk: Buffer) => resolve(chunk.toString().startsWith('HTTP/1.1 200')));
  socket.once('close', () => resolve(false));
  socket.write(request);
  return promise;
}

function requestOf({ hub, fleet }: Home, index: number): string {
  const appliance = fleet[index % fleet.length];
  if (appliance === undefined) throw new Error('there are no appliances');
  return tokenRequest(hub.httpsPort, appliance);
}
