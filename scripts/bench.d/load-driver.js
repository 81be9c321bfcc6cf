// Sends load to one server over raw sockets, because an HTTP library would need more CPU time than the server. Takes a
// job as JSON (see load.ts) and prints the result. A response counts when it has been received completely.
import net from 'node:net';
import { connect, createSecureContext } from 'node:tls';

const job = JSON.parse(process.argv[2]);
const { port, loops, tls = true, connections = 'kept', rate = null, addresses = ['127.0.0.1'] } = job;
const secureContext = createSecureContext();
const latencies = [];
let sent = 0;
let errors = 0;
let example = null;
let counting = false;
let stopping = false;

let busy = 0;
if (rate !== null) await paced();
else {
  startTimes();
  await Promise.all(loops.map(connections === 'kept' ? onOneConnection : onNewConnections));
}
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(share * latencies.length))] ?? null;
console.log(
  JSON.stringify({
    rate: latencies.length / job.seconds,
    p50: at(0.5),
    p99: at(0.99),
    p999: at(0.999),
    worst: at(1),
    sent,
    errors,
    example,
    busy,
  }),
);

/** Starts the warm-up, and then the time in which requests are counted. */
function startTimes() {
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
}

/** One request after another on a persistent connection. */
async function onOneConnection(loop, index) {
  const connection = await open(index);
  while (connection !== null && !stopping) {
    const began = performance.now();
    if (!(await request(connection, loop))) break;
    count(began);
  }
  connection?.end();
}

/**
 * A new connection for every request, timed from its first packet. The client closes it, like a program with one
 * request.
 */
async function onNewConnections(loop, index) {
  while (!stopping) {
    const began = performance.now();
    const connection = await open(index);
    if (connection === null) break;
    const good = await request(connection, loop);
    if (good) count(began);
    connection.end();
    if (!good) break;
  }
}

/**
 * Requests at regular intervals, even if earlier responses are late. Latencies count from the time a request was due,
 * for all requests that were due while requests were counted.
 */
async function paced() {
  const idle = (await Promise.all(loops.map((_loop, index) => open(index)))).flatMap((connection, index) =>
    connection === null ? [] : [{ connection, loop: loops[index] }],
  );
  const all = [...idle];
  const waiting = [];
  startTimes();
  const first = performance.now();
  let due = 0;
  let underWay = 0;
  const serve = async (one, wanted) => {
    underWay += 1;
    const good = await request(one.connection, one.loop);
    if (wanted.isCounted && good) latencies.push(performance.now() - wanted.began);
    underWay -= 1;
    const next = waiting.shift();
    if (next === undefined) idle.push(one);
    else void serve(one, next);
  };
  while (!stopping && errors === 0) {
    // A busy loop, because a timer would fire up to a millisecond late; the core is used by nothing else.
    await new Promise(setImmediate);
    for (; first + (1000 * due) / rate <= performance.now(); due += 1) {
      const wanted = { began: first + (1000 * due) / rate, isCounted: counting };
      const one = idle.shift();
      if (one === undefined) waiting.push(wanted);
      else void serve(one, wanted);
    }
  }
  while (underWay > 0 && errors === 0) await new Promise(setImmediate);
  for (const { connection } of all) connection.end();
}

function count(began) {
  if (counting) latencies.push(performance.now() - began);
}

/** Opens a connection. @returns null if that failed, which counts as an error */
function open(index) {
  const { promise, resolve } = Promise.withResolvers();
  const localAddress = addresses[index % addresses.length];
  const to = { host: '127.0.0.1', port, localAddress, noDelay: true };
  // The certificate is not checked.
  const socket = tls ? connect({ ...to, secureContext, rejectUnauthorized: false }) : net.connect(to);
  const connection = { socket, received: '', onResponse: null, end: () => socket.end() };
  socket.setEncoding('latin1');
  socket.once(tls ? 'secureConnect' : 'connect', () => resolve(connection));
  socket.on('data', (chunk) => receive(connection, chunk));
  socket.on('error', (error) => {
    fail(String(error));
    resolve(null);
    connection.onResponse?.(false);
  });
  socket.on('close', () => {
    resolve(null);
    connection.onResponse?.(false);
  });
  return promise;
}

/** Sends a loop's request. @returns whether the response was good */
function request(connection, loop) {
  const { promise, resolve } = Promise.withResolvers();
  sent += 1;
  connection.onResponse = (response) => {
    connection.onResponse = null;
    if (response === false) fail('the connection was closed');
    resolve(response !== false && isGood(response, loop));
  };
  if (connection.socket.destroyed) connection.onResponse(false);
  else connection.socket.write(loop.request);
  return promise;
}

function receive(connection, chunk) {
  connection.received += chunk;
  const { received } = connection;
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return;
  const length = /content-length: (\d+)/i.exec(received)?.[1];
  if (length === undefined) throw new Error(`no content-length: ${received.slice(0, 300)}`);
  if (received.length < end + 4 + Number(length)) return;
  connection.received = '';
  connection.onResponse?.(received);
}

function isGood(response, loop) {
  if (Number(response.slice(9, 12)) !== 200 || (loop.expected !== undefined && !response.includes(loop.expected))) {
    fail(response.slice(0, 500));
    return false;
  }
  return true;
}

function fail(what) {
  errors += 1;
  example ??= what;
}
