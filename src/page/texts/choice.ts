import { de } from './de.ts';
import { en, type Texts } from './en.ts';

/** The languages of the pages; the first is for whoever wants none of them. */
const LANGUAGES: readonly Texts[] = [en, de];

/**
 * The texts in the language that a browser wants most.
 * @param header its `Accept-Language` (RFC 9110, 12.5.4)
 */
export function textsFor(header: string | undefined): Texts {
  const wanted = (header ?? '')
    .split(',')
    .map((range) => {
      const [tag = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith('q='));
      return { language: tag.split('-')[0], quality: quality === undefined ? 1 : Number(quality.slice(2)) };
    })
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality);
  for (const { language } of wanted) {
    const found = LANGUAGES.find((texts) => texts.language === language);
    if (found !== undefined) return found;
  }
  return en;
}
