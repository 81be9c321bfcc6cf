/**
 * Runs a portal emulator over TLS on a host of a test's LAN, reached by a name that only DNS knows. The first argument is
 * JSON: `name`, `tokenLifetime` in seconds, `caFile`. It writes where it is and its client as one line of JSON.
 */
import { startEmulator } from '../../src/emulator/index.ts';

const { name, ...options } = JSON.parse(process.argv[2] ?? '');
const emulator = await startEmulator({ ...options, tls: true, host: '0.0.0.0', publicHost: name });
process.once('SIGTERM', () => void emulator.close());

const { baseUrl, frontendUrl, clientId, clientSecret } = emulator;
console.log(JSON.stringify({ baseUrl, frontendUrl, clientId, clientSecret }));
