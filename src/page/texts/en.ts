import { addAppliance, appliance, history } from './en/appliance.ts';
import { addConnection, connection, connectionChoice } from './en/connection.ts';
import { health } from './en/health.ts';
import { footer, landing, layout, shortLink } from './en/layout.ts';
import { loginResult, portalCode, userCode } from './en/login.ts';
import { overview } from './en/overview.ts';
import { pairing, pairingBatch } from './en/pairing.ts';
import { portal } from './en/portal.ts';
import { setupCode, signedInBrowsers, signIn } from './en/sign-in.ts';

/** All texts of the pages in English, by part of the page. */
export const en = {
  language: 'en' as const,
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

/** The texts of the pages in one language. English defines which texts there are. */
export type Texts = Omit<typeof en, 'language'> & {
  /** BCP 47. */
  readonly language: 'en' | 'de';
};
