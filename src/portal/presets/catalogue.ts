import * as v from 'valibot';
import bmw from './bmw.json' with { type: 'json' };
import daikin from './daikin.json' with { type: 'json' };
import enphase from './enphase.json' with { type: 'json' };
import homeConnect from './home-connect.json' with { type: 'json' };
import hue from './hue.json' with { type: 'json' };
import husqvarna from './husqvarna.json' with { type: 'json' };
import microsoft from './microsoft.json' with { type: 'json' };
import miele from './miele.json' with { type: 'json' };
import myuplink from './myuplink.json' with { type: 'json' };
import nest from './nest.json' with { type: 'json' };
import netatmo from './netatmo.json' with { type: 'json' };
import { type Preset, presetSchema } from './preset.ts';
import resideo from './resideo.json' with { type: 'json' };
import smartthings from './smartthings.json' with { type: 'json' };
import tado from './tado.json' with { type: 'json' };
import tesla from './tesla.json' with { type: 'json' };
import tibber from './tibber.json' with { type: 'json' };
import viessmann from './viessmann.json' with { type: 'json' };
import volvo from './volvo.json' with { type: 'json' };
import withings from './withings.json' with { type: 'json' };

/** What is shown beside every preset. */
export const PRESET_PROVENANCE = 'from public sources; not tried against the cloud itself';

const FILES: readonly unknown[] = [
  bmw,
  daikin,
  enphase,
  homeConnect,
  hue,
  husqvarna,
  microsoft,
  miele,
  myuplink,
  nest,
  netatmo,
  resideo,
  smartthings,
  tado,
  tesla,
  tibber,
  viessmann,
  volvo,
  withings,
];

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
