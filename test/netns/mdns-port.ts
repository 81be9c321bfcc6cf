import type { Host, Process } from '../support/netns.ts';

/** A program that holds UDP port 5353 and shares it with nobody. */
export async function occupyMdnsPort(host: Host): Promise<Process> {
  const keep =
    "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5353)); print('kept', flush=True); time.sleep(60)";
  const keeper = host.spawn('/usr/bin/python3', ['-c', keep]);
  await keeper.line((line) => line === 'kept' || undefined);
  return keeper;
}
