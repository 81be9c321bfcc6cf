import { addAppliance, appliance, history } from './de/appliance.ts';
import { addConnection, connection, connectionChoice } from './de/connection.ts';
import { health } from './de/health.ts';
import { footer, landing, layout, shortLink } from './de/layout.ts';
import { loginResult, portalCode, userCode } from './de/login.ts';
import { overview } from './de/overview.ts';
import { pairing, pairingBatch } from './de/pairing.ts';
import { portal } from './de/portal.ts';
import { setupCode, signedInBrowsers, signIn } from './de/sign-in.ts';
import type { Texts } from './en.ts';

/**
 * All texts of the pages in German, with "Sie". One word for one thing: Gerät (appliance), verbinden and trennen
 * (connect and disconnect), Anmeldung (login), Zugang (access), Berechtigungen (permissions), Passwort (secret),
 * Einrichtungscode (setup code), Einmal-Link (one-time address).
 */
export const de: Texts = {
  language: 'de',
  document: footer,
  signIn,
  setupCode,
  browsers: signedInBrowsers,
  code: userCode,
  landing: landing,
  result: loginResult,
  installer: layout,
  adding: addAppliance,
  appliance,
  connection,
  addConnection,
  connectionChoice,
  history,
  overview,
  states: health,
  pairing,
  portal,
  portalCode,
  batch: pairingBatch,
  shortLink,
};
