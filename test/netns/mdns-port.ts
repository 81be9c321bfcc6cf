import type { Host, Process } from '../support/netns.ts';

/** A program that binds UDP port 5353 exclusively. */
export async function occupyMdnsPort(host: Host): Promise<Process> {
  const script =
    "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5353)); print('kept', flush=True); time.sleep(60)";
  const holder = host.spawn('/usr/bin/python3', ['-c', script]);
  await holder.line((line) => line === 'kept' || undefined);
  return holder;
}
