import type { FastifyRequest } from 'fastify';
import { textsFor } from './texts/choice.ts';
import type { Texts } from './texts/en.ts';

/** What every page is made with. */
export interface Frame {
  readonly hubName: string;
  /** In the language of the person who looks. */
  readonly texts: Texts;
}

/** The frame for whoever has sent a request. */
export function frameFor(hubName: string, { headers }: FastifyRequest): Frame {
  return { hubName, texts: textsFor(headers['accept-language']) };
}
