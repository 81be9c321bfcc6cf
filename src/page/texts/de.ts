import { browsers, signIn } from './de/access.ts';
import { adding, appliance, history } from './de/appliance.ts';
import { document, home, installer, shortLink } from './de/frame.ts';
import { code, result } from './de/login.ts';
import { overview, states } from './de/overview.ts';
import { pairing, round } from './de/pairing.ts';
import type { Texts } from './en.ts';

/**
 * Every text of the pages in German. Its words: Gerät (appliance), Kopplung (pairing), Anmeldung (login), Einrichtungscode
 * (setup code), Hinweis (notice), Portal, Hub. People are spoken to with "Sie".
 */
export const de: Texts = {
  language: 'de',
  document,
  signIn,
  browsers,
  code,
  home,
  result,
  installer,
  adding,
  appliance,
  history,
  overview,
  states,
  pairing,
  round,
  shortLink,
};
