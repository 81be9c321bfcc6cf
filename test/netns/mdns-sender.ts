/**
 * A neighbour that sends one packet several times. The arguments: its IPv4 address, how often, the ms between two of them, and
 * `goodbye NAME` (takes a hub's service back, in the hub's words), `questions` (asks for hubs, sixty times a packet),
 * `service NAME HOST` (says that a hub's service is on that host, at the usual port), `address HOST ADDRESS` (says that the host
 * has this IPv4 address), or `large BYTES` (asks which types of service there are, in a packet that known answers make so large).
 * With `when told` behind a service or an address it is sent once there was a line.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const [address = '', times = '1', pause = '0', kind = '', instance = '', host = '', when = ''] = process.argv.slice(2);
const TYPE = Buffer.concat([...['_latchkey', '_tcp', 'local'].map(label), Buffer.alloc(1)]);
const TO_TYPE = Buffer.from([0xc0, 12]);
const PTR_IN = [0, 12, 0, 1];

const packets = {
  goodbye,
  service,
  address: hostAddress,
  large: () => large(Number(instance)),
  questions: () => questions(60),
};
const packet = packets[kind as keyof typeof packets]();
// From mDNS's own port: who asks from another one is answered alone.
const socket = createSocket({ type: 'udp4', reuseAddr: true }).bind(5353, address, async () => {
  socket.setMulticastInterface(address);
  console.log('ready');
  if (when === 'when told') await once(process.stdin, 'data');
  for (let left = Number(times); left > 0; left--) {
    socket.send(packet, 5353, '224.0.0.251', () => left === 1 && end());
    if (pause !== '0') await sleep(Number(pause));
  }
});

function end() {
  console.log('sent');
  socket.close();
  process.stdin.destroy();
}

/** A response with the type's pointer to the instance, and no time to live. */
function goodbye(): Buffer {
  const data = Buffer.concat([label(instance), TO_TYPE]);
  return Buffer.concat([header(0x84, 0, 1), TYPE, Buffer.from([...PTR_IN, 0, 0, 0, 0, 0, data.length]), data]);
}

/** A response with the instance's SRV record: priority and weight 0, port 8443. */
function service(): Buffer {
  const target = Buffer.concat([...host.split('.').map(label), Buffer.alloc(1)]);
  const fixed = Buffer.from([0, 33, 0x80, 1, 0, 0, 0, 120, 0, 6 + target.length, 0, 0, 0, 0, 8443 >> 8, 8443 & 0xff]);
  return Buffer.concat([header(0x84, 0, 1), label(instance), TYPE, fixed, target]);
}

/** A response with the host's A record. */
function hostAddress(): Buffer {
  const fixed = Buffer.from([0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, ...host.split('.').map(Number)]);
  return Buffer.concat([header(0x84, 0, 1), ...instance.split('.').map(label), Buffer.alloc(1), fixed]);
}

function questions(count: number): Buffer {
  const again = Buffer.concat([TO_TYPE, Buffer.from(PTR_IN)]);
  return Buffer.concat([header(0, count, 0), TYPE, Buffer.from(PTR_IN), ...Array(count - 1).fill(again)]);
}

/** The known answers are of another type: none of them is a reason not to answer. */
function large(bytes: number): Buffer {
  const services = Buffer.concat([...['_services', '_dns-sd', '_udp', 'local'].map(label), Buffer.alloc(1)]);
  const [name, fixed] = [label('x'.repeat(63)), Buffer.from([0, 0, 16, 0, 1, 0, 0, 0, 120, 0, 100])];
  const answer = Buffer.concat([name, fixed, Buffer.from([99]), Buffer.alloc(99, 'y')]);
  const count = Math.floor(bytes / answer.length);
  const whole = [header(0, 1, count), services, Buffer.from(PTR_IN), ...Array(count).fill(answer)];
  return Buffer.concat(whole);
}

function header(flags: number, asked: number, answered: number): Buffer {
  return Buffer.from([0, 0, flags, 0, 0, asked, answered >> 8, answered & 0xff, 0, 0, 0, 0]);
}

function label(text: string): Buffer {
  return Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)]);
}
