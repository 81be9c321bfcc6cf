// Requests a token repeatedly until it gets one. Takes a job as JSON: the port, and the bytes of the request. It prints
// a line when it begins, and the time of the token in ms since 1970.
import { connect } from 'node:tls';

const { port, request } = JSON.parse(process.argv[2]);
const options = { host: '127.0.0.1', port, rejectUnauthorized: false };
console.log(JSON.stringify('asking'));
while (!(await hasToken()));
console.log(JSON.stringify(performance.timeOrigin + performance.now()));

function hasToken() {
  const { promise, resolve } = Promise.withResolvers();
  const socket = connect(options, () => socket.write(request));
  socket.setEncoding('latin1');
  socket.once('data', (response) => {
    if (!response.startsWith('HTTP/1.1 200')) throw new Error(response.slice(0, 500));
    socket.end();
    resolve(true);
  });
  socket.once('error', () => setTimeout(resolve, 1, false));
  return promise;
}
