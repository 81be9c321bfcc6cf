/**
 * A host that claims instance names again and again, with data that is greater than anybody's. The arguments: its IPv4
 * address, for how many seconds, and the names. Says `done` at the end.
 */
import { createSocket } from 'node:dgram';
import { setTimeout as sleep } from 'node:timers/promises';

const [address = '', seconds = '1', ...names] = process.argv.slice(2);
const TARGET = encode('zzzzzzzz.local');

const socket = createSocket({ type: 'udp4', reuseAddr: true });
socket.bind(5353, '224.0.0.251', async () => {
  socket.setMulticastInterface(address);
  for (let turn = 0; turn < Number(seconds) * 10; turn++) {
    for (const name of names) socket.send(claim(name), 5353, '224.0.0.251');
    await sleep(100);
  }
  console.log('done');
  socket.close();
});

/** A response with one SRV record, port 65535. */
function claim(name: string): Buffer {
  const header = Buffer.from([0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
  const fixed = Buffer.from([0, 33, 0x80, 1, 0, 0, 0, 120, 0, 6 + TARGET.length, 0, 0, 0, 0, 0xff, 0xff]);
  return Buffer.concat([header, encode(name, '_latchkey._tcp.local'), fixed, TARGET]);
}

/** A domain name: the first part is one label. */
function encode(first: string, rest = ''): Buffer {
  const labels = rest === '' ? first.split('.') : [first, ...rest.split('.')];
  return Buffer.concat([
    ...labels.map((label) => Buffer.from([Buffer.byteLength(label), ...Buffer.from(label)])),
    Buffer.alloc(1),
  ]);
}
