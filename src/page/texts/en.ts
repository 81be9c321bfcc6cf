import { code } from './en/code.ts';
import { document } from './en/document.ts';
import { home } from './en/home.ts';
import { installer } from './en/installer.ts';
import { result } from './en/result.ts';
import { signIn } from './en/sign-in.ts';

/** Every text of the pages in English, by part of the page. */
export const en = { language: 'en', document, signIn, code, home, result, installer };

/** The texts of the pages in one language; what there is in English is in all of them. */
export type Texts = Omit<typeof en, 'language'> & {
  /** BCP 47. */
  readonly language: string;
};
