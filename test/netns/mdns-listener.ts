/**
 * Listens to mDNS at an IPv4 address of its host (first argument), and writes one line of JSON for each packet: `from`,
 * `kind` (query, probe or response), `text` (the readable text), `hex`, and `at` in seconds on CLOCK_MONOTONIC. It
 * sends no queries.
 */
import { createSocket } from 'node:dgram';

const socket = createSocket({ type: 'udp4', reuseAddr: true });
socket.on('message', (packet, { address }) => {
  if (packet.length < 12) return;
  const isResponse = (packet.readUInt16BE(2) & 0x8000) !== 0;
  const kind = isResponse ? 'response' : packet.readUInt16BE(8) > 0 ? 'probe' : 'query';
  const text = packet.toString('latin1').replace(/[^ -~]+/g, '.');
  writeEvent({ event: 'heard', from: address, kind, text, hex: packet.toString('hex') });
});
socket.bind(5353, '224.0.0.251', () => {
  socket.addMembership('224.0.0.251', process.argv[2]);
  writeEvent({ event: 'listening' });
});

function writeEvent(event: object) {
  console.log(JSON.stringify({ ...event, at: Number(process.hrtime.bigint()) / 1e9 }));
}
