import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';
import { rememberSecrets } from './logs.ts';

/** Starts a portal emulator in this process. When it closes, everything that it has issued is registered as secret. */
export async function startPortal(options: EmulatorOptions = {}): Promise<Emulator> {
  const emulator = await startEmulator(options);
  const end = emulator.close;
  const close = async () => {
    rememberSecrets(emulator.secretsIssued('code', 'access_token', 'refresh_token'));
    await end();
  };
  return Object.assign(emulator, { close, [Symbol.asyncDispose]: close });
}
