import type { FastifyRequest } from 'fastify';
import { de } from './texts/de.ts';
import { en, type Texts } from './texts/en.ts';

/** What every page is made with. */
export interface PageContext {
  readonly hubName: string;
  /** In the language of the person who looks. */
  readonly texts: Texts;
}

/** The context for whoever has sent a request. */
export function pageContext(hubName: string, { headers }: FastifyRequest): PageContext {
  return { hubName, texts: textsFor(headers['accept-language']) };
}

/** The languages of the pages; the first is for whoever wants none of them. */
const LANGUAGES: readonly Texts[] = [en, de];

/** A weight (RFC 9110, 12.4.2). */
const WEIGHT = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * The texts in the language that a browser wants most.
 * @param header its `Accept-Language` (RFC 9110, 12.5.4); what can't be read of it is passed over
 */
export function textsFor(header: string | undefined): Texts {
  const ranges = (header ?? '').split(',').map(read);
  const refused = new Set(ranges.filter(({ weight }) => weight === 0).map(({ language }) => language));
  const wanted = ranges.filter(({ weight }) => weight > 0).toSorted((a, b) => b.weight - a.weight);
  for (const { language } of wanted) {
    const found = LANGUAGES.find((texts) =>
      language === '*' ? !refused.has(texts.language) : texts.language === language,
    );
    if (found !== undefined) return found;
  }
  return en;
}

/** One range of a header, such as `de-AT;q=0.8`. A weight of NaN is none. */
function read(range: string): { language: string; weight: number } {
  const [tag = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  return {
    language: tag.split('-')[0] ?? '',
    weight: weight === undefined ? 1 : Number(WEIGHT.exec(weight)?.[1] ?? Number.NaN),
  };
}
