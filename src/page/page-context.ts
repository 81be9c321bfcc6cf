import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { PageSession } from '../core/setup-access.ts';
import type { IngressRequest } from './ingress/ingress-request.ts';
import { de } from './texts/de.ts';
import { en, type Texts } from './texts/en.ts';

/** What every page needs. */
export interface PageContext {
  readonly hubName: string;
  /** In the language of the browser. */
  readonly texts: Texts;
  /** The reverse proxy that shows the page in a frame of its own site; left out at the hub's own address. */
  readonly ingress?: IngressRequest;
}

/** What a page for somebody who is signed in is made from. */
export interface PageRequest {
  readonly reply: FastifyReply;
  readonly context: PageContext;
  readonly session: PageSession;
}

/** A request of somebody who is signed in. */
export interface AuthenticatedRequest extends PageRequest {
  readonly request: FastifyRequest;
  /** The operations, in the name of the user if that is known. Everything that a request changes goes through it. */
  readonly administration: Administration;
  /** Whether the session has not ended since. */
  isSignedIn(): boolean;
}

/** A form that a signed-in user sent from the hub's own page. */
export interface FormSubmission extends AuthenticatedRequest {
  readonly form: ReadonlyMap<string, string>;
}

/** The context of the response to a request. */
export function pageContext(hubName: string, { headers, ingress }: FastifyRequest): PageContext {
  return { hubName, texts: textsFor(headers['accept-language']), ...(ingress !== undefined && { ingress }) };
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
