// Loaded into the fuzzed program before it starts: collects garbage when asked over a socket, and tells what is left, in bytes.
import { createServer } from 'node:net';

const path = process.env['FUZZ_HEAP_SOCKET'];
// Other commands are started with the same environment.
if (path !== undefined && ['serve', 'emulator'].some((command) => process.argv.includes(command))) {
  const server = createServer((socket) => {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    socket.end(String(heapUsed + external));
  });
  server.listen(`\0${path}`).unref();
}
