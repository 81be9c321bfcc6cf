import { readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { TokenLoad } from '../../test/reliability/load.ts';
import type { HubProcess } from '../../test/support/hub-process.ts';
import { measurementTable } from './benchmarks-page.ts';
import { pairAppliances, startHub, tokenLoops } from './hub.ts';
import { type BenchOptions, type Measurements, type Report, runRounds, type Suite } from './suite.ts';

/** The hub's connection limits for each of its ports: 250 per address, and 1000 in total. */
const DEVICES = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14'];
const CONNECTIONS_PER_DEVICE = 250;
/** The header of a TLS record that announces a handshake of 512 bytes, without the handshake. */
const CLIENT_HELLO_BEGIN = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 252]);

const PEAK = 'peak';
const PEAK_OWN = 'peak of anonymous memory';
const ISSUED = 'tokens issued';
const FAILED = 'failed token requests';

/** How much memory a hub uses with the appliances of a home, and under attack by other devices on the LAN. */
export const memorySuite: Suite = { name: 'memory', title: 'Memory under attack', measure, report };

/** A hub with the five appliances of a home, started like the service. */
interface Home {
  readonly hub: HubProcess;
  readonly emulator: Emulator;
  readonly appliances: readonly CredentialsResponse[];
  /** The length of a load, in s, and how long its connections then stay open, in ms. */
  readonly seconds: number;
  readonly rest: number;
}

/** How many tokens were issued during a load, if any were requested. */
type Tokens = { readonly issued: number; readonly failed: number } | null;

/** A load on a hub. */
type MemoryScenario = (home: Home) => Promise<Tokens>;

const appliances: MemoryScenario = async ({ hub, emulator, appliances: fleet, seconds }) => {
  await using load = await TokenLoad.start(hub, emulator, fleet, 500);
  await sleep(seconds * 1000);
  const failed = load.refused.length + load.refusals.length + load.unanswered.length;
  return { issued: load.handOuts.length, failed };
};

const storm: MemoryScenario = async ({ hub, seconds }) => {
  const until = performance.now() + seconds * 1000;
  await Promise.all(
    sourceAddresses().map(async (from) => {
      while (performance.now() < until) {
        const socket = await secure(hub, from).catch(() => null);
        if (socket === null) await sleep(10);
        socket?.destroy();
      }
    }),
  );
  return null;
};

const tokens: MemoryScenario = (home) =>
  crowd(home, secure, async (sockets) => {
    const loops = tokenLoops(home.hub.httpsPort, home.appliances);
    const results = await Promise.all(
      sockets.map((socket, index) => isIssued(socket, loops[index % loops.length]?.request ?? '')),
    );
    const issued = results.filter((ok) => ok).length;
    return { issued, failed: results.length - issued };
  });

const silence: MemoryScenario = (home) =>
  crowd(home, plain, async (sockets) => {
    for (const socket of sockets) socket.write(CLIENT_HELLO_BEGIN);
    return null;
  });

const endless: MemoryScenario = (home) =>
  crowd(home, secure, async (sockets) => {
    const head = `content-type: application/x-www-form-urlencoded\r\ncontent-length: 16384\r\nx: ${'x'.repeat(15_000)}`;
    for (const socket of sockets) {
      socket.write(`POST /oauth/token HTTP/1.1\r\nhost: localhost\r\n${head}\r\n\r\n${'x'.repeat(16_000)}`);
    }
    return null;
  });

/** Bodies of the maximum size, on both ports; every second body lacks its last byte. */
const bodies: MemoryScenario = async (home) => {
  const post = (length: number) =>
    `POST /oauth/token HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 16384\r\n\r\n${'x'.repeat(length)}`;
  const over = (connect: Connect) =>
    crowd(home, connect, async (sockets) => {
      for (const [index, socket] of sockets.entries()) socket.write(post(16_384 - (index % 2)));
      return null;
    });
  await Promise.all([over(secure), over(unencrypted)]);
  return null;
};

const unread =
  (path: string, times: number): MemoryScenario =>
  (home) =>
    crowd(home, secure, async (sockets) => {
      const request = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
      for (const socket of sockets) socket.pause().write(request.repeat(times));
      return null;
    });

const flood: MemoryScenario = (home) =>
  crowd(home, secure, async (sockets) => {
    const requests = 'GET / HTTP/1.1\r\nhost:a\r\n\r\n'.repeat(2000);
    for (const socket of sockets) socket.write(requests);
    return null;
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
    return null;
  },
  '5 appliances request tokens twice a second': appliances,
  '1,000 connections open at once, get a token each and stay open': tokens,
  ...hostile,
  'all attacks above, one after another': async (home) => {
    for (const scenario of Object.values(hostile)) await scenario(home);
    return await appliances(home);
  },
};

async function measure({ quick, subjects, progress }: BenchOptions, measured: Measurements): Promise<void> {
  await using emulator = await startEmulator({ tokenLifetime: 15 });
  const time = quick ? { seconds: 1, rest: 500 } : { seconds: 8, rest: 8000 };
  const scenarios = Object.entries(all).slice(0, quick ? 3 : undefined);
  const turns = scenarios.flatMap(([row, scenario]) => subjects.map((subject) => ({ row, scenario, subject })));
  await runRounds(1, turns, async ({ row, scenario, subject }) => {
    const of = subject.name;
    progress(`memory: ${of}, ${row}`);
    await using hub = await startHub(subject, { emulator });
    const fleet = await pairAppliances(hub, emulator, 5);
    await sleep(1000);
    // proc(5): resets the peak.
    writeFileSync(`/proc/${hub.pid}/clear_refs`, '5');
    let most = 0;
    const sampler = setInterval(() => {
      most = Math.max(most, megabytes(hub, 'RssAnon'));
    }, 50);
    const counts = await scenario({ hub, emulator, appliances: fleet, ...time }).finally(() => clearInterval(sampler));
    await sleep(500);
    if (hub.ended !== null) throw new Error(`${row}: the hub has ended: ${hub.ended}`);
    measured.add(row, PEAK, 'MB', megabytes(hub, 'VmHWM'), { of });
    measured.add(row, PEAK_OWN, 'MB', most, { of });
    if (counts === null) return;
    measured.add(row, ISSUED, '', counts.issued, { of, better: 'more' });
    measured.add(row, FAILED, '', counts.failed, { of });
  });
}

function report(measured: Measurements): Report {
  return { targets: [], tables: [measurementTable(measured, Object.keys(all), [PEAK, PEAK_OWN, ISSUED, FAILED])] };
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
async function crowd(
  { hub, rest }: Home,
  connect: Connect,
  work: (sockets: Socket[]) => Promise<Tokens>,
): Promise<Tokens> {
  const tried = await Promise.allSettled(sourceAddresses().map((from) => connect(hub, from)));
  const sockets = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const counts = await work(sockets);
  await sleep(rest);
  for (const socket of sockets) socket.destroy();
  return counts;
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
