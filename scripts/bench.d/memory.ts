// How much memory a hub comes to need: with the appliances of a home, and with all that strangers on the LAN can do to it.
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

/** A hub gives one device 250 connections, and 1000 in all, for each of its ports. */
const DEVICES = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14'];
const CONNECTIONS_PER_DEVICE = 250;
/** The header of a TLS record with a handshake of 512 bytes, and no handshake. */
const CLIENT_HELLO_BEGIN = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 252]);

const seconds = Number(process.argv[2] ?? 20);
if (!Number.isInteger(seconds) || seconds < 1 || seconds > 3600) {
  console.error('scripts/bench-memory: allowed is how many seconds each load takes, 1 to 3600');
  process.exit(2);
}
const only = process.argv[3] ?? '';
const load = loadavg()[0] ?? 0;
await using emulator = await startEmulator({ tokenLifetime: 15 });

/** A hub with the five appliances of a home, started as the service starts it. */
interface Home {
  readonly hub: HubProcess;
  readonly fleet: readonly CredentialsResponse[];
}

/** What is done to a hub; it gives what is worth a note. */
type MemoryScenario = (home: Home) => Promise<string>;

const own: MemoryScenario = async ({ hub, fleet }) => {
  await using load = await TokenLoad.start(hub, emulator, fleet, 500);
  await sleep(seconds * 1000);
  return `${load.handOuts.length} tokens, ${load.refused.length + load.refusals.length + load.unanswered} bad`;
};

const storm: MemoryScenario = async ({ hub }) => {
  const until = performance.now() + seconds * 1000;
  let made = 0;
  await Promise.all(
    places().map(async (from) => {
      while (performance.now() < until) {
        const socket = await secure(hub, from).catch(() => null);
        if (socket === null) await sleep(10);
        else made += 1;
        socket?.destroy();
      }
    }),
  );
  return `${made} handshakes`;
};

const tokens: MemoryScenario = (home) =>
  crowd(home.hub, secure, async (sockets) => {
    const answers = await Promise.all(sockets.map((socket, index) => answered(socket, requestOf(home, index))));
    return `${answers.filter((ok) => ok).length} tokens`;
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

/** A body of the most that is read, over both ports; of every second one the last byte never comes. */
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
  'TLS handshakes on 1,000 connections at a time, without end': storm,
  '1,000 connections begin a handshake and say no more': silence,
  '1,000 connections send a request each that never ends': endless,
  '2,000 connections, 1,000 of them over HTTP, send a full body each, or all of it but a byte': bodies,
  '1,000 connections ask for /pair 32 times each and read nothing': unread('/pair', 32),
  '1,000 connections ask for /openapi.json once each and read nothing': unread('/openapi.json', 1),
  '1,000 connections ask for /openapi.json 32 times each and read nothing': unread('/openapi.json', 32),
  '1,000 connections send 2,000 requests at once': flood,
};
const all: Readonly<Record<string, MemoryScenario>> = {
  'nobody asks': async () => {
    await sleep(1000);
    return '';
  },
  '5 appliances ask twice a second': own,
  '1,000 connections are made at once, get a token each and stay': tokens,
  ...hostile,
  'all of these one after the other': async (home) => {
    for (const doings of Object.values(hostile)) await doings(home);
    return await own(home);
  },
};

console.log('| what | peak, MB | of that its own, MB | |\n|---|---|---|---|');
for (const [what, doings] of Object.entries(all)) if (what.includes(only)) await measure(what, doings);
console.log(
  `\nNode ${process.versions.node}, ${process.arch}; load average ${load.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after.`,
);

async function measure(what: string, doings: MemoryScenario): Promise<void> {
  await using hub = await HubProcess.start({
    emulator,
    env: { ...SERVICE_ENV },
    flags: SERVICE_FLAGS,
  });
  const fleet = await pairFleet(hub, emulator, ['wallbox', 'heat-pump', 'inverter', 'meter', 'boiler']);
  await sleep(1000);
  // proc(5): the peak begins anew.
  writeFileSync(`/proc/${hub.pid}/clear_refs`, '5');
  let most = 0;
  const sampler = setInterval(() => {
    most = Math.max(most, megabytes(hub, 'RssAnon'));
  }, 50);
  const note = await doings({ hub, fleet }).finally(() => clearInterval(sampler));
  await sleep(500);
  if (hub.ended !== null) throw new Error(`${what}: the hub has ended: ${hub.ended}`);
  console.log(`| ${what} | ${megabytes(hub, 'VmHWM').toFixed(0)} | ${most.toFixed(0)} | ${note} |`);
}

function megabytes(hub: HubProcess, key: string): number {
  const status = readFileSync(`/proc/${hub.pid}/status`, 'utf8');
  return Number(new RegExp(`${key}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
}

function places(): string[] {
  return DEVICES.flatMap((device) => Array.from({ length: CONNECTIONS_PER_DEVICE }, () => device));
}

type Connect = (hub: HubProcess, from: string) => Promise<Socket>;

/** A thousand connections, which stay for some seconds after what they do. */
async function crowd(hub: HubProcess, connect: Connect, work: (sockets: Socket[]) => Promise<string>): Promise<string> {
  const tried = await Promise.allSettled(places().map((from) => connect(hub, from)));
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

/** To the other port. */
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

function answered(socket: Socket, request: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once('data', (chunk: Buffer) => resolve(chunk.toString().startsWith('HTTP/1.1 200')));
  socket.once('close', () => resolve(false));
  socket.write(request);
  return promise;
}

function requestOf({ hub, fleet }: Home, index: number): string {
  const by = fleet[index % fleet.length];
  if (by === undefined) throw new Error('there are no appliances');
  return tokenRequest(hub.httpsPort, by);
}
