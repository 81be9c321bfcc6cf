import * as appliance from './en/appliance.ts';
import * as connection from './en/connection.ts';
import * as health from './en/health.ts';
import * as layout from './en/layout.ts';
import * as login from './en/login.ts';
import * as overview from './en/overview.ts';
import * as pairing from './en/pairing.ts';
import * as portal from './en/portal.ts';
import * as signIn from './en/sign-in.ts';

/** All texts of the pages in English, by the names that these files export. */
export const en = {
  language: 'en' as const,
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

/** The texts of the pages in one language. English defines which texts there are. */
export type Texts = Omit<typeof en, 'language'> & {
  /** BCP 47. */
  readonly language: 'en' | 'de';
};
