import { fstatSync } from 'node:fs';
import { Failure } from '../core/failure.ts';
import { isSameAddress } from '../system/addresses.ts';
import { type ListenConfiguration, ListeningSocket, type OpenedPort, type PortName } from './listening-socket.ts';

/** A listening socket that a service manager opened and passed to this process. */
export interface ActivatedSocket {
  readonly socket: ListeningSocket;
  /**
   * From `FileDescriptorName=` in the socket unit; null if the unit names no known port, so that the port number
   * decides.
   */
  readonly name: PortName | null;
}

/** The first descriptor that systemd passes (sd_listen_fds(3)). */
const SD_LISTEN_FDS_START = 3;

/**
 * The sockets that a service manager has opened (sd_listen_fds(3)). Removes their variables from `env`, because they
 * are not meant for child processes.
 * @returns empty if there are none, or if they belong to another process
 * @throws Failure `config_invalid`
 */
export async function activatedSockets(env: NodeJS.ProcessEnv, pid: number): Promise<readonly ActivatedSocket[]> {
  const { LISTEN_PID: owner, LISTEN_FDS: count = '0', LISTEN_FDNAMES: names = '' } = env;
  for (const variable of ['LISTEN_PID', 'LISTEN_PIDFDID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[variable];
  if (owner !== String(pid)) return [];
  if (!/^\d{1,4}$/.test(count)) {
    throw new Failure('config_invalid', `LISTEN_FDS: found "${count}"; it must be the number of sockets from systemd`);
  }
  const sockets: ActivatedSocket[] = [];
  try {
    for (let index = 0; index < Number(count); index++) {
      const unitName = names.split(':')[index];
      const name = unitName === 'http' || unitName === 'https' ? unitName : null;
      sockets.push({ socket: await socketFromDescriptor(SD_LISTEN_FDS_START + index), name });
    }
  } catch (error) {
    for (const { socket } of sockets) socket.close();
    throw error;
  }
  return sockets;
}

async function socketFromDescriptor(descriptor: number): Promise<ListeningSocket> {
  try {
    // Any other descriptor may belong to Node itself and must not be touched.
    if (!fstatSync(descriptor).isSocket()) throw new Error('not a socket');
    return await ListeningSocket.listen({ fd: descriptor });
  } catch (cause) {
    const message = `socket unit: socket number ${descriptor - SD_LISTEN_FDS_START + 1} is not a listening TCP socket; use only ListenStream= lines with a port, or with an IP address and a port`;
    throw new Failure('config_invalid', message, { cause });
  }
}

/**
 * Assigns each socket to a port of the hub: by its name, otherwise by its port number. Each socket must match one of
 * the two ports, and must listen on one of `addresses`.
 * @throws Failure `config_invalid`
 */
export function assignToPorts(
  activated: readonly ActivatedSocket[],
  { addresses, ports }: ListenConfiguration,
): Record<PortName, OpenedPort> {
  for (const { socket, name } of activated) {
    const listens = `systemd listens on port ${socket.port} of ${socket.address}`;
    if (name === null && socket.port !== ports.http && socket.port !== ports.https) {
      const keys = `lan.http_port (${ports.http}) nor lan.https_port (${ports.https})`;
      throw invalidConfiguration(
        `${listens}, which is neither ${keys}: use the same ports in these keys and in the socket unit`,
      );
    }
    if (!addresses.some((address) => isAllowedBy(socket.address, address))) {
      throw invalidConfiguration(
        `lan.listen: ${listens}, which is not in the list: remove this key, so that only the socket unit sets where the hub listens`,
      );
    }
  }
  const openedPort = (name: PortName): OpenedPort => {
    const configured = ports[name];
    const sockets = activated
      .filter((one) => one.name === name || (one.name === null && one.socket.port === configured))
      .map(({ socket }) => socket);
    const [port, ...others] = new Set(sockets.map((socket) => socket.port));
    if (port === undefined) {
      throw invalidConfiguration(
        `lan.${name}_port: systemd listens for the hub, but not on port ${configured}: add a ListenStream= line for this port to the socket unit, or disable the unit`,
      );
    }
    if (others.length > 0) {
      throw invalidConfiguration(
        `lan.${name}_port: systemd listens on ports ${[port, ...others].join(' and ')} under the name ${name}: keep only one of them in the socket unit`,
      );
    }
    return { port, sockets };
  };
  return { https: openedPort('https'), http: openedPort('http') };
}

/** Whether an entry of `lan.listen` permits listening on `address`. */
function isAllowedBy(address: string, allowed: string): boolean {
  return allowed === (address.includes(':') ? '::' : '0.0.0.0') || isSameAddress(address, allowed);
}

function invalidConfiguration(message: string): Failure {
  return new Failure('config_invalid', message);
}
