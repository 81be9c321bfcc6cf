import * as v from 'valibot';
import homeConnect from './home-connect.json' with { type: 'json' };
import { type Preset, presetSchema } from './preset.ts';
import tado from './tado.json' with { type: 'json' };
import withings from './withings.json' with { type: 'json' };

/** What is shown beside every preset. */
export const PRESET_PROVENANCE = 'from public sources; not tried against the cloud itself';

const FILES: readonly unknown[] = [homeConnect, tado, withings];

let parsed: readonly Preset[] | undefined;

/** All presets, in the order of their names. The files are parsed by the first call. */
export function presets(): readonly Preset[] {
  parsed ??= FILES.map((file) => v.parse(presetSchema, file));
  return parsed;
}

/** The preset of that name; undefined if there is none. */
export function findPreset(name: string): Preset | undefined {
  return presets().find((preset) => preset.name === name);
}
