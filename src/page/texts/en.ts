import { adding } from './en/adding.ts';
import { appliance } from './en/appliance.ts';
import { browsers } from './en/browsers.ts';
import { code } from './en/code.ts';
import { document } from './en/document.ts';
import { history } from './en/history.ts';
import { home } from './en/home.ts';
import { installer } from './en/installer.ts';
import { overview } from './en/overview.ts';
import { pairing } from './en/pairing.ts';
import { result } from './en/result.ts';
import { round } from './en/round.ts';
import { shortLink } from './en/short-link.ts';
import { signIn } from './en/sign-in.ts';
import { states } from './en/states.ts';

/** Every text of the pages in English, by part of the page. */
export const en = {
  language: 'en',
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

/** The texts of the pages in one language; what there is in English is in all of them. */
export type Texts = Omit<typeof en, 'language'> & {
  /** BCP 47. */
  readonly language: string;
};
