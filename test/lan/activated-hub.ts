import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';

export const ACTIVATE = '/usr/bin/systemd-socket-activate';

/** Why systemd can open no sockets for a hub here; null if it can. */
export function activationSkipReason(): string | null {
  if (!existsSync(ACTIVATE)) return `${ACTIVATE} is missing`;
  const hasIPv6 = Object.values(networkInterfaces()).some((some) => some?.some(({ address }) => address === '::1'));
  return hasIPv6 ? null : 'this machine has no ::1';
}

/** A hub whose sockets systemd-socket-activate opens. */
export interface ActivatedHub extends AsyncDisposable {
  readonly hub: HubProcess;
  /** The arguments of systemd-socket-activate before the hub's command. Tests add the sockets. */
  readonly activate: string[];
  /** Starts the hub, whose sockets open at once, with a connection to one of its ports. */
  launch(port?: number): Promise<void>;
}

/** Prepares a hub that does not run. @param listen `lan.listen` */
export async function prepareActivated(listen = '["127.0.0.1", "::1"]'): Promise<ActivatedHub> {
  await using emulator = await startEmulator();
  const activate = [ACTIVATE, '-E', 'XDG_CACHE_HOME'];
  await using leftovers = new AsyncDisposableStack();
  const hub = leftovers.use(await HubProcess.prepare({ emulator, within: activate }));
  const file = join(hub.directory, 'latchkey.toml');
  await writeFile(file, (await readFile(file, 'utf8')).replace('listen = ["127.0.0.1"]', `listen = ${listen}`));
  const parts = leftovers.move();
  return {
    hub,
    activate,
    async launch(port = hub.httpsPort) {
      const launched = hub.launch();
      await eventually(() => knock(port).catch(() => null));
      await launched;
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** Connects, which starts the daemon, and closes the connection at once. */
export async function knock(port: number, host = '127.0.0.1'): Promise<true> {
  const socket = connect({ host, port });
  await once(socket, 'connect');
  socket.on('error', () => undefined).destroy();
  return true;
}

/** The CA that a port serves. @param ca the trusted one, PEM; default: any */
export async function fetchCa(origin: string, ca?: string): Promise<string> {
  const dispatcher = new Agent({ connect: ca === undefined ? { rejectUnauthorized: false } : { ca } });
  try {
    const { body } = await request(`${origin}/ca.pem`, { dispatcher });
    return await body.text();
  } finally {
    await dispatcher.destroy();
  }
}
