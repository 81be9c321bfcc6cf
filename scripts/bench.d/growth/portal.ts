// A portal with many grants: the emulator, and a port that says how many refreshes it has answered. Its log would say so too,
// but to read that would take longer than to answer them. Takes the lifetime of access tokens in seconds.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

const built = join(import.meta.dirname, '../../../dist/emulator/index.js');
const { startEmulator }: typeof import('../../../src/emulator/index.ts') = await import(built);
let answered = 0;
const emulator = await startEmulator({
  tokenLifetime: Number(process.argv[2]),
  intercept: {
    answering: ({ endpoint }) => {
      if (endpoint === 'token') answered += 1;
    },
  },
});
const counter = createServer((_request, response) => response.end(String(answered))).listen(0, '127.0.0.1');
await once(counter, 'listening');
const { baseUrl, frontendUrl, clientId, clientSecret } = emulator;
const { port } = counter.address() as AddressInfo;
console.log(JSON.stringify({ baseUrl, frontendUrl, clientId, clientSecret, countUrl: `http://127.0.0.1:${port}/` }));
