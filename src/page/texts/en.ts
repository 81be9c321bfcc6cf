import { document } from './en/document.ts';

/** Every text of the pages in English, by part of the page. */
export const en = { language: 'en', document };

/** The texts of the pages in one language; what there is in English is in all of them. */
export type Texts = Omit<typeof en, 'language'> & {
  /** BCP 47. */
  readonly language: string;
};
