// Loaded into the fuzzed hub before it starts: collects garbage when asked over a socket, and tells what is left, in bytes.
import { createServer } from 'node:net';

const path = process.env['FUZZ_HEAP_SOCKET'];
// The command line is started with the same surroundings.
if (path !== undefined && process.argv.includes('serve')) {
  const server = createServer((socket) => {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    socket.end(String(heapUsed + external));
  });
  server.listen(`\0${path}`).unref();
}
