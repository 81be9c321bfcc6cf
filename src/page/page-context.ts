import type { FastifyRequest } from 'fastify';
import { de } from './texts/de.ts';
import { en, type Texts } from './texts/en.ts';

/** What every page needs. */
export interface PageContext {
  readonly hubName: string;
  /** In the language of the browser. */
  readonly texts: Texts;
}

/** The context of the response to a request. */
export function pageContext(hubName: string, { headers }: FastifyRequest): PageContext {
  return { hubName, texts: textsFor(headers['accept-language']) };
}

/**
 * The texts in the first language of a browser's list that the hub supports. Browsers list languages in the order of
 * preference, so the weights are not needed.
 * @param header `Accept-Language` (RFC 9110, 12.5.4)
 */
export function textsFor(header = ''): Texts {
  const languages = header.split(',').map((range) => /^\s*([a-z]+)/i.exec(range)?.[1]?.toLowerCase());
  return languages.find((language) => language === 'en' || language === 'de') === 'de' ? de : en;
}
