import { PRESET_PROVENANCE, presets } from '../portal/presets/catalogue.ts';
import type { Preset } from '../portal/presets/preset.ts';

/** What people should know about a preset. */
type PresetDescription = Pick<
  Preset,
  'name' | 'title' | 'summary' | 'register' | 'client_secret' | 'redirect' | 'known' | 'unverified' | 'sources'
>;

/** The catalogue of presets, in the order of their names; `provenance` says where all of them come from. */
export function presetCatalogue(): {
  readonly provenance: string;
  readonly presets: readonly PresetDescription[];
} {
  return {
    provenance: PRESET_PROVENANCE,
    presets: presets().map(
      ({ name, title, summary, register, client_secret, redirect, known, unverified, sources }) => ({
        ...{ name, title, summary, register, client_secret, redirect, known, unverified, sources },
      }),
    ),
  };
}
