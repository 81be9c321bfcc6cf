import { fstatSync } from 'node:fs';
import { Failure } from '../core/failure.ts';
import { isSameAddress } from '../system/addresses.ts';
import { type ListenConfiguration, ListeningSocket, type OpenedPort, type PortName } from './listening-socket.ts';

/** A socket that was listening before this process was started. */
export interface ActivatedSocket {
  readonly socket: ListeningSocket;
  /** What it is for, where its unit says so; else its port tells. */
  readonly name: PortName | null;
}

/** The first of the descriptors that are passed on (sd_listen_fds(3)). */
const SD_LISTEN_FDS_START = 3;

/**
 * Takes over the sockets that a service manager has opened (sd_listen_fds(3)), and takes the variables that tell of them out
 * of the environment: they are not meant for programs that this one starts.
 * @returns none where there are none, or where they are another process's
 * @throws Failure `config_invalid`
 */
export async function activatedSockets(env: NodeJS.ProcessEnv, pid: number): Promise<readonly ActivatedSocket[]> {
  const { LISTEN_PID: owner, LISTEN_FDS: count = '0', LISTEN_FDNAMES: names = '' } = env;
  for (const variable of ['LISTEN_PID', 'LISTEN_PIDFDID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[variable];
  if (owner !== String(pid)) return [];
  if (!/^\d{1,4}$/.test(count)) {
    throw new Failure('config_invalid', `LISTEN_FDS: found "${count}"; it is how many sockets systemd passes on`);
  }
  const sockets: ActivatedSocket[] = [];
  try {
    for (let index = 0; index < Number(count); index++) {
      const given = names.split(':')[index];
      const name = given === 'http' || given === 'https' ? given : null;
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
    // Whatever else it is may be a part of Node's own, which must not be touched.
    if (!fstatSync(descriptor).isSocket()) throw new Error('it is no socket');
    return await ListeningSocket.listen({ fd: descriptor });
  } catch (cause) {
    const message = `the socket unit: number ${descriptor - SD_LISTEN_FDS_START + 1} of its sockets is none that listens for TCP; it may have ListenStream= lines with ports, or with IP addresses and ports, and nothing else that listens`;
    throw new Failure('config_invalid', message, { cause });
  }
}

/**
 * Tells which of the sockets are for which port: by name, else by the port that the configuration has. All of them must be
 * for one of the two, and none may be open to more than `addresses` allow.
 * @throws Failure `config_invalid`
 */
export function assignToPorts(
  activated: readonly ActivatedSocket[],
  { addresses, ports }: ListenConfiguration,
): Record<PortName, OpenedPort> {
  for (const { socket, name } of activated) {
    const at = `systemd listens on port ${socket.port} of ${socket.address}`;
    if (name === null && socket.port !== ports.http && socket.port !== ports.https) {
      const keys = `lan.http_port (${ports.http}) nor lan.https_port (${ports.https})`;
      throw invalidConfiguration(
        `${at}, which is neither ${keys}: let these keys and the socket unit name the same ports`,
      );
    }
    if (!addresses.some((address) => isAllowedBy(socket.address, address))) {
      throw invalidConfiguration(
        `lan.listen: ${at}, which is not in the list: take the key out, and the socket unit alone says where the hub listens`,
      );
    }
  }
  const of = (name: PortName): OpenedPort => {
    const wanted = ports[name];
    const sockets = activated
      .filter((one) => one.name === name || (one.name === null && one.socket.port === wanted))
      .map(({ socket }) => socket);
    const [port, ...others] = new Set(sockets.map((socket) => socket.port));
    if (port === undefined) {
      throw invalidConfiguration(
        `lan.${name}_port: systemd listens for the hub, but not on port ${wanted}: give the socket unit a ListenStream= line for it, or disable that unit`,
      );
    }
    if (others.length > 0) {
      throw invalidConfiguration(
        `lan.${name}_port: systemd listens on ports ${[port, ...others].join(' and ')} under the name ${name}: let the socket unit have one of them`,
      );
    }
    return { port, sockets };
  };
  return { https: of('https'), http: of('http') };
}

/** Whether who may listen at `allowed` may listen at `address`. */
function isAllowedBy(address: string, allowed: string): boolean {
  return allowed === (address.includes(':') ? '::' : '0.0.0.0') || isSameAddress(address, allowed);
}

function invalidConfiguration(message: string): Failure {
  return new Failure('config_invalid', message);
}
