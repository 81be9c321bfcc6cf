// Asks for a token again and again until there is one. Takes a job as JSON: the port, and the request as it goes over the wire.
// Says when it begins, and then when it had the token, in ms since 1970.
import { connect } from 'node:tls';

const { port, request } = JSON.parse(process.argv[2]);
const give = { host: '127.0.0.1', port, rejectUnauthorized: false };
console.log(JSON.stringify('asking'));
while (!(await hasToken()));
console.log(JSON.stringify(performance.timeOrigin + performance.now()));

function hasToken() {
  const { promise, resolve } = Promise.withResolvers();
  const socket = connect(give, () => socket.write(request));
  socket.setEncoding('latin1');
  socket.once('data', (answer) => {
    if (!answer.startsWith('HTTP/1.1 200')) throw new Error(answer.slice(0, 500));
    socket.end();
    resolve(true);
  });
  socket.once('error', () => setTimeout(resolve, 1, false));
  return promise;
}
