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

/**
 * The texts in the first language of a browser's list that there are texts in. Browsers name what their user wants most
 * first, so that weights say nothing more.
 * @param header its `Accept-Language` (RFC 9110, 12.5.4)
 */
export function textsFor(header = ''): Texts {
  const languages = header.split(',').map((range) => /^\s*([a-z]+)/i.exec(range)?.[1]?.toLowerCase());
  return languages.find((language) => language === 'en' || language === 'de') === 'de' ? de : en;
}
