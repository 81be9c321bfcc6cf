import * as appliance from './de/appliance.ts';
import * as connection from './de/connection.ts';
import * as health from './de/health.ts';
import * as layout from './de/layout.ts';
import * as login from './de/login.ts';
import * as overview from './de/overview.ts';
import * as pairing from './de/pairing.ts';
import * as portal from './de/portal.ts';
import * as signIn from './de/sign-in.ts';
import type { Texts } from './en.ts';

/**
 * All texts of the pages in German, with "Sie". One word for one thing: Gerät (appliance), verbinden and trennen
 * (connect and disconnect), Anmeldung (login), Zugang (access), Berechtigungen (permissions), Passwort (secret),
 * Einrichtungscode (setup code), Einmal-Link (one-time address).
 */
export const de: Texts = {
  language: 'de',
  ...appliance,
  ...connection,
  ...health,
  ...layout,
  ...login,
  ...overview,
  ...pairing,
  ...portal,
  ...signIn,
};
