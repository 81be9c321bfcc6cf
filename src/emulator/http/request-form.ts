import type { FastifyRequest } from 'fastify';
import { FORM_MEDIA_TYPE, mediaTypeOf, parseForm } from '../../system/http/form.ts';

/** The query of a URL as it was sent, without the question mark. */
export function rawQuery(url: string): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start + 1);
}

/** A request's body as text; empty if there is none. */
export function bodyText(request: FastifyRequest): string {
  return typeof request.body === 'string' ? request.body : '';
}

/** The media type of a request's body in lower case, without its parameters; empty if there is none. */
export function mediaType(request: FastifyRequest): string {
  return mediaTypeOf(request.headers['content-type']);
}

/** The parameters of a form or a query; null if one is repeated (RFC 6749, 3.1 and 3.2). */
export function parseParameters(text: string): ReadonlyMap<string, string> | null {
  return parseForm(text);
}

/** The form in a request's body as text; empty if the body is not a form. */
export function formBody(request: FastifyRequest): string {
  return mediaType(request) === FORM_MEDIA_TYPE ? bodyText(request) : '';
}

/** A client's credentials (RFC 6749, 2.3.1). */
export interface BasicCredentials {
  readonly id: string;
  readonly secret: string;
}

/**
 * The credentials of an HTTP Basic header: form-encoded ID and secret, then Base64 (RFC 6749, 2.3.1).
 * @returns null if the header is malformed or has another scheme
 */
export function basicCredentials(header: string): BasicCredentials | null {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header)?.[1];
  if (encoded === undefined) return null;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  if (colon === -1) return null;
  try {
    return { id: decodeFormComponent(pair.slice(0, colon)), secret: decodeFormComponent(pair.slice(colon + 1)) };
  } catch {
    return null;
  }
}

/** The token of a Bearer header (RFC 6750, 2.1), or null if the header is malformed or has another scheme. */
export function bearerToken(header: string): string | null {
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(header)?.[1] ?? null;
}

/** A parameter of the path, if the route has it. */
export function pathParameter(request: FastifyRequest, name: string): string | undefined {
  return (request.params as Readonly<Record<string, string>>)[name];
}

function decodeFormComponent(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
