import { type EmulatorOptions, startEmulator } from '../../../src/emulator/index.ts';
import { HubProcess } from '../../support/hub-process.ts';

/** A hub with the connection `wallbox` at the emulator as a generic cloud. @param keys of the portal, lines of TOML */
export async function startCloudHub(keys: string, client: object, options: EmulatorOptions) {
  await using starting = new AsyncDisposableStack();
  const emulator = starting.use(await startEmulator({ clients: [{ id: 'the-hub', ...client }], ...options }));
  const toml = `[portals.cloud]
type = "oauth2"
issuer = "${emulator.frontendUrl}"
client_id = "the-hub"
${keys}
[connections.wallbox]`;
  const hub = starting.use(await HubProcess.start({ here: true, toml }));
  const parts = starting.move();
  return { emulator, hub, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}
