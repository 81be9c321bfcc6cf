/** The names of all profiles, apart from the profiles themselves, which the help of the command line does not need. */
export const PROFILE_NAMES = [
  'home-connect',
  'tado',
  'netatmo',
  'myuplink',
  'viessmann',
  'husqvarna',
  'daikin',
  'miele',
  'tibber',
  'bmw',
  'withings',
  'nest',
  'tesla',
  'resideo',
  'smartthings',
  'hue',
  'enphase',
  'microsoft',
  'volvo',
] as const;

/** The name of a profile. */
export type ProfileName = (typeof PROFILE_NAMES)[number];
