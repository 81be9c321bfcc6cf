/**
 * Sends mutated mDNS packets by multicast, from a host of a test's LAN. It mutates packets that it captures on the
 * network. Arguments: its IPv4 address, a seed, and the number of packets. Writes `sent` at the end.
 */
import { createSocket } from 'node:dgram';
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../support/seeded-random.ts';

const [address = '', seed = '1', count = '1000'] = process.argv.slice(2);
const random = new SeededRandom(Number(seed));
const captured: Buffer[] = [];
/** Values of the wire format: lengths, pointers, types, classes, and the limits of their ranges. */
const BYTES = [0, 1, 0x0c, 0x10, 0x1c, 0x21, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff];

const socket = createSocket({ type: 'udp4', reuseAddr: true });
socket.on('message', (packet, from) => {
  if (from.address !== address && captured.length < 200) captured.push(packet);
});
socket.bind(5353, '224.0.0.251', async () => {
  socket.addMembership('224.0.0.251', address);
  socket.setMulticastInterface(address);
  while (captured.length < 3) await sleep(50);
  for (let sent = 0; sent < Number(count); sent++) {
    await new Promise((resolve) => socket.send(mutate(random.pick(captured)), 5353, '224.0.0.251', resolve));
    // The kernel's receive buffer is limited, and a slow reader loses packets.
    if (sent % 20 === 0) await sleep(5);
  }
  console.log('sent');
  socket.close();
});

function mutate(packet: Buffer): Buffer {
  if (random.whole(1, 20) === 1)
    return Buffer.from(Array.from({ length: random.whole(0, 200) }, () => random.whole(0, 255)));
  let bytes = Buffer.from(packet);
  for (let times = random.whole(1, 8); times > 0; times--) {
    const at = random.whole(0, Math.max(0, bytes.length - 1));
    const kind = random.whole(1, 6);
    if (kind === 1) bytes = bytes.subarray(0, at);
    else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(random.whole(0, at))]);
    else if (kind === 3) bytes = Buffer.concat([bytes, random.pick(captured).subarray(12)]).subarray(0, 8000);
    else if (bytes.length > at) bytes[at] = kind === 4 ? random.pick(BYTES) : random.whole(0, 255);
  }
  return bytes;
}
