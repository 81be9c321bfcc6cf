import { browsers, signIn } from './en/access.ts';
import { adding, appliance, history } from './en/appliance.ts';
import { document, home, installer, shortLink } from './en/frame.ts';
import { code, result } from './en/login.ts';
import { overview, states } from './en/overview.ts';
import { pairing, round } from './en/pairing.ts';

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
