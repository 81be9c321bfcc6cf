// Drives one server over raw sockets: an HTTP library would need more of its core than the server does. Takes a job as JSON,
// see load.ts, and prints what came of it. Its time is that of the sockets' own: an answer counts when it is here whole.
import { connect, createSecureContext } from 'node:tls';

const job = JSON.parse(process.argv[2]);
const { port, chains, connections = 'kept', rate = null, addresses = ['127.0.0.1'] } = job;
const secureContext = createSecureContext();
const latencies = [];
let sent = 0;
let errors = 0;
let example = null;
let counting = false;
let stopping = false;

let busy = 0;
setTimeout(() => {
  counting = true;
  const [began, before] = [performance.now(), process.cpuUsage()];
  setTimeout(() => {
    counting = false;
    stopping = true;
    const { user, system } = process.cpuUsage(before);
    busy = (user + system) / 1000 / (performance.now() - began);
  }, job.seconds * 1000);
}, job.warmUp * 1000);
if (rate !== null) await paced();
else await Promise.all(chains.map(connections === 'kept' ? onOneConnection : onNewConnections));
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(share * latencies.length))] ?? null;
console.log(
  JSON.stringify({
    rate: latencies.length / job.seconds,
    p50: at(0.5),
    p99: at(0.99),
    sent,
    errors,
    example,
    busy,
  }),
);

/** One request after the other on a connection that stays. */
async function onOneConnection(chain, index) {
  const connection = await open(index);
  while (connection !== null && !stopping) {
    const began = performance.now();
    if (!(await ask(connection, chain))) break;
    count(began);
  }
  connection?.end();
}

/** A connection for every request, from the first packet on; the client closes it, as programs do that ask once. */
async function onNewConnections(chain, index) {
  while (!stopping) {
    const began = performance.now();
    const connection = await open(index);
    if (connection === null) break;
    const good = await ask(connection, chain);
    if (good) count(began);
    connection.end();
    if (!good) break;
  }
}

/** Requests at even distances, whatever has become of those before: each counts from when it was due. */
async function paced() {
  const idle = (await Promise.all(chains.map((_chain, index) => open(index)))).flatMap((connection, index) =>
    connection === null ? [] : [{ connection, chain: chains[index] }],
  );
  const all = [...idle];
  const waiting = [];
  const first = performance.now();
  let due = 0;
  let underWay = 0;
  const serve = async (one, began) => {
    underWay += 1;
    const good = await ask(one.connection, one.chain);
    underWay -= 1;
    if (!good) return;
    count(began);
    const next = waiting.shift();
    if (next === undefined) idle.push(one);
    else void serve(one, next);
  };
  while (!stopping && errors === 0) {
    // The core is its own: a timer would come a millisecond late.
    await new Promise(setImmediate);
    for (; first + (1000 * due) / rate <= performance.now(); due += 1) {
      const began = first + (1000 * due) / rate;
      const one = idle.shift();
      if (one === undefined) waiting.push(began);
      else void serve(one, began);
    }
  }
  waiting.length = 0;
  while (underWay > 0 && errors === 0) await new Promise(setImmediate);
  for (const { connection } of all) connection.end();
}

function count(began) {
  if (counting) latencies.push(performance.now() - began);
}

/** @returns null where there is none, which is counted as an error */
function open(index) {
  const { promise, resolve } = Promise.withResolvers();
  const localAddress = addresses[index % addresses.length];
  const to = { host: '127.0.0.1', port, localAddress, noDelay: true };
  // Nobody looks at the certificate.
  const socket = connect({ ...to, secureContext, rejectUnauthorized: false });
  const connection = { socket, received: '', answered: null, end: () => socket.end() };
  socket.setEncoding('latin1');
  socket.once('secureConnect', () => resolve(connection));
  socket.on('data', (chunk) => receive(connection, chunk));
  socket.on('error', (error) => {
    fail(String(error));
    resolve(null);
    connection.answered?.(false);
  });
  socket.on('close', () => connection.answered?.(false));
  return promise;
}

/** Sends a chain's request. @returns whether the answer was good */
function ask(connection, chain) {
  const { promise, resolve } = Promise.withResolvers();
  sent += 1;
  connection.answered = (answer) => {
    connection.answered = null;
    if (answer === false) fail('the connection was closed');
    resolve(answer !== false && isGood(answer, chain));
  };
  connection.socket.write(chain.request);
  return promise;
}

function receive(connection, chunk) {
  connection.received += chunk;
  const { received } = connection;
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return;
  const length = /content-length: (\d+)/i.exec(received)?.[1];
  if (length === undefined) throw new Error(`no length: ${received.slice(0, 300)}`);
  if (received.length < end + 4 + Number(length)) return;
  connection.received = '';
  connection.answered?.(received);
}

function isGood(answer, chain) {
  if (Number(answer.slice(9, 12)) !== 200 || (chain.expected !== undefined && !answer.includes(chain.expected))) {
    fail(answer.slice(0, 500));
    return false;
  }
  return true;
}

function fail(what) {
  errors += 1;
  example ??= what;
}
