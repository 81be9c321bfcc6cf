/**
 * A host that claims other hosts' names. It answers each probe for them. In each cycle it announces them ten times a
 * second for two seconds, and is silent for one. Arguments: its IPv4 address, the address that it claims to have, the
 * number of cycles, and the names. Writes `claiming` at the start, and `done` at the end.
 */
import { createSocket } from 'node:dgram';
import { setTimeout as sleep } from 'node:timers/promises';

const [address = '', claimed = '', rounds = '1', ...names] = process.argv.slice(2);
const RECORDS = names.map((name) => ({ name: encode(name), claim: claimOf(encode(name)) }));

const socket = createSocket({ type: 'udp4', reuseAddr: true });
socket.on('message', (packet, from) => {
  const isQuery = packet.length > 12 && (packet.readUInt16BE(2) & 0x8000) === 0;
  if (!isQuery || from.address === address) return;
  for (const { name, claim } of RECORDS) if (packet.includes(name)) send(claim);
});
socket.bind(5353, '224.0.0.251', async () => {
  socket.addMembership('224.0.0.251', address);
  socket.setMulticastInterface(address);
  for (let round = 0; round < Number(rounds); round++) {
    for (let times = 0; times < 20; times++) {
      for (const { claim } of RECORDS) send(claim);
      if (round === 0 && times === 0) console.log('claiming');
      await sleep(100);
    }
    await sleep(1000);
  }
  console.log('done');
  socket.close();
});

function send(packet: Buffer) {
  socket.send(packet, 5353, '224.0.0.251');
}

/** A response with one A record with the cache-flush bit. */
function claimOf(name: Buffer): Buffer {
  const header = Buffer.from([0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
  const fixed = Buffer.from([0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4]);
  return Buffer.concat([header, name, fixed, Buffer.from(claimed.split('.').map(Number))]);
}

/** Reads a domain name; the hub does not compress the names in its probes. */
function encode(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from([Buffer.byteLength(label), ...Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.alloc(1)]);
}
