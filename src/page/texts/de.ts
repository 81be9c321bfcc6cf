import { addAppliance, appliance, history } from './de/appliance.ts';
import { footer, landing, layout, shortLink } from './de/layout.ts';
import { loginResult, userCode } from './de/login.ts';
import { health, overview } from './de/overview.ts';
import { pairing, pairingBatch } from './de/pairing.ts';
import { signedInBrowsers, signIn } from './de/sign-in.ts';
import type { Texts } from './en.ts';

/**
 * Every text of the pages in German. Its words: Gerät (appliance), Kopplung (pairing), Anmeldung (login), Einrichtungscode
 * (setup code), Hinweis (notice), Portal, Hub. People are spoken to with "Sie".
 */
export const de: Texts = {
  language: 'de',
  document: footer,
  signIn,
  browsers: signedInBrowsers,
  code: userCode,
  home: landing,
  result: loginResult,
  installer: layout,
  adding: addAppliance,
  appliance,
  history,
  overview,
  states: health,
  pairing,
  round: pairingBatch,
  shortLink,
};
