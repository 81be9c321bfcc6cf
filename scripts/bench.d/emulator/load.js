// Drives one server over raw sockets, one request at a time on each: an HTTP library would need more of its core than the
// server does. Takes a job as JSON and prints what came of it.
import { connect } from 'node:net';

const job = JSON.parse(process.argv[2]);
const latencies = [];
let sent = 0;
let errors = 0;
let example = null;
let counting = false;
let stopping = false;

const chains = job.tokens.map((token) => ({ token }));
const started = performance.now();
const all = chains.map((chain) => run(chain));
setTimeout(() => {
  counting = true;
}, job.warmUp * 1000);
setTimeout(
  () => {
    counting = false;
    stopping = true;
  },
  (job.warmUp + job.seconds) * 1000,
);
await Promise.all(all);
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(share * latencies.length))] ?? null;
const cpu = process.cpuUsage();
console.log(
  JSON.stringify({
    rate: latencies.length / job.seconds,
    p50: at(0.5),
    p99: at(0.99),
    sent,
    errors,
    example,
    driverCpu: (cpu.user + cpu.system) / 1000 / (performance.now() - started),
    tokens: chains.map(({ token }) => token),
  }),
);

function run(chain) {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: job.port, noDelay: true });
    let began = 0;
    let received = '';
    socket.setEncoding('latin1');
    socket.on('connect', send);
    socket.on('data', (chunk) => {
      received += chunk;
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = /content-length: (\d+)/i.exec(received)?.[1];
      if (length === undefined) throw new Error(`no length: ${received.slice(0, 300)}`);
      if (received.length < end + 4 + Number(length)) return;
      if (counting) latencies.push(performance.now() - began);
      if (Number(received.slice(9, 12)) !== job.status) {
        errors += 1;
        example ??= received.slice(0, 500);
      } else if (job.rotate) {
        const start = received.indexOf('"refresh_token":"', end);
        if (start !== -1) chain.token = received.slice(start + 17, received.indexOf('"', start + 17));
      }
      received = '';
      if (stopping) socket.end();
      else send();
    });
    socket.on('error', (error) => {
      errors += 1;
      example ??= String(error);
    });
    socket.on('close', resolve);

    function send() {
      sent += 1;
      began = performance.now();
      if (job.rotate) {
        const body = `${job.form}&refresh_token=${encodeURIComponent(chain.token)}`;
        socket.write(
          `POST ${job.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
      } else {
        socket.write(`GET ${chain.token} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
      }
    }
  });
}
