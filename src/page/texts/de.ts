import { adding } from './de/adding.ts';
import { appliance } from './de/appliance.ts';
import { browsers } from './de/browsers.ts';
import { code } from './de/code.ts';
import { document } from './de/document.ts';
import { history } from './de/history.ts';
import { home } from './de/home.ts';
import { installer } from './de/installer.ts';
import { overview } from './de/overview.ts';
import { pairing } from './de/pairing.ts';
import { result } from './de/result.ts';
import { round } from './de/round.ts';
import { shortLink } from './de/short-link.ts';
import { signIn } from './de/sign-in.ts';
import { states } from './de/states.ts';
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
