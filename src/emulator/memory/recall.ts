import * as v from 'valibot';
import { createPortal, type Origins, type Portal } from '../portal.ts';
import { type EffectiveSettings, settingsFrom } from '../settings/effective-settings.ts';
import type { EmulatorOptions } from '../settings/options.ts';
import { type Memory, PASSING, StateFileError } from './memory.ts';

/** The start of an emulator: as new, or as its state file has it. */
export interface Recalled {
  readonly settings: EffectiveSettings;
  readonly portal: Portal;
  readonly memory: Memory;
}

/**
 * Opens the state file, if there is to be one, and brings back what is in it: keys, grants, codes, runs, what was noted of
 * clients, how far the clock is ahead, and the client that was made up where none was named.
 * @throws OptionError, StateFileError
 */
export async function recall(options: EmulatorOptions, origins: () => Origins): Promise<Recalled> {
  const given = settingsFrom(options);
  const memory = given.state === null ? PASSING : await openStateFile(given.state);
  try {
    const settings = options.clients === undefined ? withKeptClient(options, given, memory) : given;
    return { settings, portal: createPortal(settings, origins, memory), memory };
  } catch (error) {
    memory.end();
    if (given.state !== null && (v.isValiError(error) || error instanceof SyntaxError)) {
      throw new StateFileError(`the state ${given.state} is damaged: choose another file`, { cause: error });
    }
    throw error;
  }
}

function withKeptClient(options: EmulatorOptions, given: EffectiveSettings, memory: Memory): EffectiveSettings {
  const kept = memory.setting('client');
  if (kept !== null) return settingsFrom({ ...options, clients: [v.parse(KeptClient, JSON.parse(kept))] });
  const { id, secret } = given.firstClient;
  memory.keepSetting('client', JSON.stringify({ id, secret }));
  return given;
}

async function openStateFile(path: string): Promise<Memory> {
  // Loaded only where it is wanted: SQLite is native code.
  const { StateFile } = await import('./state-file.ts');
  return StateFile.open(path);
}

const KeptClient = v.strictObject({ id: v.string(), secret: v.string() });
