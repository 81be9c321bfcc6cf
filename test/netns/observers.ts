import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scaleDeadline } from '../support/deadlines.ts';
import type { Host, Process } from '../support/netns.ts';

/** The programs that the observers run: for `lanSkipReason`. */
export const OBSERVER_TOOLS = [
  '/usr/bin/python3',
  '/usr/sbin/avahi-daemon',
  '/usr/bin/avahi-browse',
  '/usr/bin/dbus-daemon',
];

/** A hub as an observer found and resolved it. */
export interface ResolvedService {
  readonly instanceName: string;
  /** With `.local`, without a final dot. */
  readonly host: string;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly txt: Readonly<Record<string, string>>;
  /** Seconds on CLOCK_MONOTONIC. */
  readonly at: number;
}

const TYPE = '_latchkey._tcp';

/** Watches for hubs from one host. */
export interface ServiceObserver {
  /** The first sighting that `matches`, since the observer started; throws if there is none in time. */
  found(matches?: (sighting: ResolvedService) => boolean, within?: number): Promise<ResolvedService>;
  /** Waits until the instance is gone, with a timeout: without a goodbye it takes minutes. */
  gone(instanceName: string): Promise<void>;
  /** The instances that were lost so far, once per loss. */
  losses(): readonly string[];
}

/** python3-zeroconf on this host, at its IPv4 address or another one. */
export async function observeWithZeroconf(host: Host, address = host.address): Promise<ServiceObserver> {
  const script = join(import.meta.dirname, 'zeroconf-observer.py');
  const python = host.spawn('/usr/bin/python3', [script, `${TYPE}.local.`, address]);
  await python.line((line) => JSON.parse(line).event === 'watching' || undefined);
  const name = (full: string) => full.slice(0, -`.${TYPE}.local.`.length);
  return {
    found: (matches = () => true, within) =>
      python.line((line) => {
        const { event, name: full, host: target, ...rest } = JSON.parse(line);
        if (event !== 'up') return undefined;
        const sighting: ResolvedService = { ...rest, instanceName: name(full), host: target.replace(/\.$/, '') };
        return matches(sighting) ? sighting : undefined;
      }, within),
    async gone(instanceName) {
      await python.line((line) => {
        const { event, name: full } = JSON.parse(line);
        return (event === 'down' && name(full) === instanceName) || undefined;
      });
    },
    losses: () =>
      linesOf(python).flatMap((line) => {
        const { event, name: full } = JSON.parse(line);
        return event === 'down' ? name(full) : [];
      }),
  };
}

/** avahi-daemon on a host, and its clients. Disposing of it ends the daemon. */
export interface Avahi extends AsyncDisposable {
  /** Watches with `avahi-browse`. */
  browse(): ServiceObserver;
  /** Browses once, and returns the services that are there. */
  browseOnce(): Promise<readonly ResolvedService[]>;
  /** The IPv4 address of a host name. */
  resolve(name: string): Promise<string>;
  /** Announces a service of this host, until the host is disposed. */
  publish(instanceName: string, port: number): Process;
  /** The daemon's log so far. */
  readonly said: string;
}

/**
 * Starts an avahi-daemon with its own message bus on this host.
 * @param name the host's, as avahi announces it
 */
export async function startAvahi(host: Host, name = 'observer'): Promise<Avahi> {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-avahi-'));
  const script = join(import.meta.dirname, 'avahi.sh');
  // In its own process namespace, so that the message bus ends with the first process.
  const isolated = ['--mount', '--pid', '--fork', '--kill-child=SIGKILL', script, directory, name];
  const daemon = host.spawn('/usr/bin/unshare', isolated);
  await daemon.errorLine((line) => line.includes('Server startup complete') || undefined);
  const env = { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${directory}/bus` };
  const avahiBrowse = (options: string) => host.spawn('/usr/bin/avahi-browse', [options, TYPE], { env });
  return {
    browse: () => observer(avahiBrowse('-rp')),
    async browseOnce() {
      const once = avahiBrowse('-rpt');
      await once.end(scaleDeadline(10_000));
      return once.output.split('\n').flatMap((line) => parseSighting(line) ?? []);
    },
    async resolve(name) {
      const found = await host.run('/usr/bin/avahi-resolve', ['-4', '-n', name], { env });
      return found.trim().split('\t')[1] ?? '';
    },
    publish: (instanceName, port) =>
      host.spawn('/usr/bin/avahi-publish', ['-s', instanceName, TYPE, String(port), 'id=other'], { env }),
    get said() {
      return daemon.output;
    },
    async [Symbol.asyncDispose]() {
      await daemon.stop('SIGKILL'); // unshare ignores SIGTERM, and kills its child when it ends
      await rm(directory, { recursive: true });
    },
  };
}

function observer(browse: Process): ServiceObserver {
  return {
    found: (matches = () => true, within) =>
      browse.line((line) => {
        const sighting = parseSighting(line);
        return sighting !== undefined && matches(sighting) ? sighting : undefined;
      }, within),
    async gone(instanceName) {
      await browse.line((line) => {
        const [event, , , name = ''] = line.split(';');
        return (event === '-' && unescapeName(name) === instanceName) || undefined;
      });
    },
    losses: () =>
      linesOf(browse).flatMap((line) => {
        const [event, , , name = ''] = line.split(';');
        return event === '-' ? unescapeName(name) : [];
      }),
  };
}

/** The complete lines that a program wrote so far. */
function linesOf({ output }: Process): readonly string[] {
  return output.split('\n').slice(0, -1);
}

/** Reads avahi-browse's `=;interface;protocol;name;type;domain;host;address;port;txt`. */
function parseSighting(line: string): ResolvedService | undefined {
  const [event, , , name = '', , , host = '', address = '', port, ...txt] = line.split(';');
  if (event !== '=') return undefined;
  const pairs = [...txt.join(';').matchAll(/"([^"=]*)=([^"]*)"/g)].map(([, key = '', value = '']) => [key, value]);
  return {
    instanceName: unescapeName(name),
    host,
    addresses: [address],
    port: Number(port),
    txt: Object.fromEntries(pairs),
    at: Number(process.hrtime.bigint()) / 1e9,
  };
}

/** `\032` is a space: avahi writes special characters in decimal. */
function unescapeName(name: string): string {
  const bytes = name.replace(/\\(\d{3})/g, (_, code) => String.fromCharCode(Number(code))).replace(/\\(.)/g, '$1');
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** A packet that was on the network. */
export interface CapturedPacket {
  readonly from: string;
  readonly kind: 'query' | 'probe' | 'response';
  /** The readable text in it. */
  readonly text: string;
  /** The whole packet. */
  readonly hex: string;
  /** Seconds on CLOCK_MONOTONIC. */
  readonly at: number;
}

/** Listens on this host without sending a query. @returns the packets so far */
export async function captureMdns(host: Host): Promise<() => readonly CapturedPacket[]> {
  const script = join(import.meta.dirname, 'mdns-listener.ts');
  const listener = host.spawn(process.execPath, [script, host.address]);
  await listener.line((line) => line.includes('listening') || undefined);
  return () =>
    linesOf(listener).flatMap((line) => (line.includes('"heard"') ? (JSON.parse(line) as CapturedPacket) : []));
}
