import { readdir, readFile, readlink } from 'node:fs/promises';

/** A program that listens on a TCP port of this machine. */
export interface Listener {
  /** Null where this user may not see whose it is. */
  readonly program: string | null;
}

/** `TCP_LISTEN` of the kernel's tcp_states.h. */
const LISTENING = '0A';
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];

/** Who listens on a TCP port, by the kernel's tables; null where nobody does. Nothing is connected or bound. */
export async function listenerOn(port: number): Promise<Listener | null> {
  const tables = await Promise.all(TABLES.map((file) => readFile(file, 'utf8').catch(() => '')));
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = tables.flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)));
  // Columns: sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode
  const row = rows.find(([, local, , state]) => state === LISTENING && local?.endsWith(`:${hex}`));
  return row === undefined ? null : { program: await ownerOf(row[9] ?? '') };
}

async function ownerOf(inode: string): Promise<string | null> {
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of processes) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const file of files) {
      const target = await readlink(`/proc/${pid}/fd/${file}`).catch(() => '');
      if (target !== `socket:[${inode}]`) continue;
      const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
      return `${name.trim()}, process ${pid}`;
    }
  }
  return null;
}
