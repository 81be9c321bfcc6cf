/**
 * Runs a portal emulator on a host of a test's LAN. The first argument is its options as JSON. It writes its addresses
 * and its client as one line of JSON.
 */
import { dirname, join } from 'node:path';
import { MAIN } from '../support/program.ts';

const built = join(dirname(MAIN), 'emulator/index.js');
const { startEmulator } = (await import(built)) as typeof import('../../src/emulator/index.ts');
const emulator = await startEmulator(JSON.parse(process.argv[2] ?? '{}'));
process.once('SIGTERM', () => void emulator.close());

const { baseUrl, frontendUrl, clientId, clientSecret } = emulator;
console.log(JSON.stringify({ baseUrl, frontendUrl, clientId, clientSecret }));
