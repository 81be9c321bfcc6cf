/**
 * Another device, which sends one packet several times. Arguments: its IPv4 address, the number of packets, the ms
 * between two of them, and one of `goodbye NAME` (a goodbye for a hub's service, in the hub's name), `questions`
 * (queries for hubs, sixty in a packet), `service NAME HOST` (claims that a hub's service is on that host, at the usual
 * port), `address HOST ADDRESS` (claims that the host has this IPv4 address), or `large BYTES` (queries the types of
 * services, in a packet that known answers make this large). `on input` after a service or an address delays the first
 * packet until a line on stdin. `respond` after an address repeats the claim for each query for the host as well.
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
// From mDNS's own port: a query from another port gets a unicast response.
const socket = createSocket({ type: 'udp4', reuseAddr: true }).bind(5353, address, async () => {
  socket.setMulticastInterface(address);
  console.log('ready');
  if (when === 'on input') await once(process.stdin, 'data');
  if (when === 'respond') respond();
  for (let remaining = Number(times); remaining > 0; remaining--) {
    socket.send(packet, 5353, '224.0.0.251', () => remaining === 1 && end());
    if (pause !== '0') await sleep(Number(pause));
  }
});

function end() {
  console.log('sent');
  socket.close();
  process.stdin.destroy();
}

/** Repeats the packet for each query that names the host; the hub does not compress the names in its probes. */
function respond() {
  socket.addMembership('224.0.0.251', address);
  socket.on('message', (query, from) => {
    const isQuery = query.length > 12 && (query.readUInt16BE(2) & 0x8000) === 0;
    if (isQuery && from.address !== address && query.includes(hostName(instance)))
      socket.send(packet, 5353, '224.0.0.251');
  });
}

/** A response with the type's PTR record for the instance, with a TTL of 0. */
function goodbye(): Buffer {
  const data = Buffer.concat([label(instance), TO_TYPE]);
  return Buffer.concat([header(0x84, 0, 1), TYPE, Buffer.from([...PTR_IN, 0, 0, 0, 0, 0, data.length]), data]);
}

/** A response with the instance's SRV record: priority and weight 0, port 8443. */
function service(): Buffer {
  const target = hostName(host);
  const fixed = Buffer.from([0, 33, 0x80, 1, 0, 0, 0, 120, 0, 6 + target.length, 0, 0, 0, 0, 8443 >> 8, 8443 & 0xff]);
  return Buffer.concat([header(0x84, 0, 1), label(instance), TYPE, fixed, target]);
}

/** A response with the host's A record. */
function hostAddress(): Buffer {
  const fixed = Buffer.from([0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, ...host.split('.').map(Number)]);
  return Buffer.concat([header(0x84, 0, 1), hostName(instance), fixed]);
}

function questions(count: number): Buffer {
  const again = Buffer.concat([TO_TYPE, Buffer.from(PTR_IN)]);
  return Buffer.concat([header(0, count, 0), TYPE, Buffer.from(PTR_IN), ...Array(count - 1).fill(again)]);
}

/** The known answers are of another type: none of them suppresses a response. */
function large(bytes: number): Buffer {
  const services = Buffer.concat([...['_services', '_dns-sd', '_udp', 'local'].map(label), Buffer.alloc(1)]);
  const [name, fixed] = [label('x'.repeat(63)), Buffer.from([0, 0, 16, 0, 1, 0, 0, 0, 120, 0, 100])];
  const answer = Buffer.concat([name, fixed, Buffer.from([99]), Buffer.alloc(99, 'y')]);
  const count = Math.floor(bytes / answer.length);
  const whole = [header(0, 1, count), services, Buffer.from(PTR_IN), ...Array(count).fill(answer)];
  return Buffer.concat(whole);
}

function header(flags: number, questionCount: number, answerCount: number): Buffer {
  return Buffer.from([0, 0, flags, 0, 0, questionCount, answerCount >> 8, answerCount & 0xff, 0, 0, 0, 0]);
}

function hostName(name: string): Buffer {
  return Buffer.concat([...name.split('.').map(label), Buffer.alloc(1)]);
}

function label(text: string): Buffer {
  return Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)]);
}
