import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Secret } from '../core/secret.ts';
import { FORM_MEDIA_TYPE, mediaTypeOf, parseForm } from '../system/http/form.ts';

/** The value of the cookie of this name (RFC 6265, 4.2); null if the browser sent none. */
export function cookieValue({ headers }: FastifyRequest, name: string): string | null {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

/** Not `Secure`, because the callback is plain HTTP. With `SameSite=Lax` no form of another site sends the cookie. */
const CALLBACK_COOKIE_ATTRIBUTES = 'Path=/callback; Max-Age=3600; HttpOnly; SameSite=Lax';

/**
 * Sets a cookie that the browser sends when the portal redirects it to the callback within an hour. Cookies do not
 * depend on the port, so a cookie that was set over HTTPS is sent to the same host over HTTP too.
 */
export function setCallbackCookie(reply: FastifyReply, name: string, value: Secret): FastifyReply {
  return reply.header('set-cookie', `${name}=${value.reveal()}; ${CALLBACK_COOKIE_ATTRIBUTES}`);
}

/** The cookie that marks a browser which the hub itself sent to the portal. */
export const BROWSER_TOKEN_COOKIE = 'latchkey-sent';

/** The status for a body that is not a form (415) or that cannot be parsed (400). */
export type FormErrorStatus = 400 | 415;

/** The fields of the request's form, or the status to answer with. */
export function readFormBody({ headers, body }: FastifyRequest): ReadonlyMap<string, string> | FormErrorStatus {
  if (mediaTypeOf(headers['content-type']) !== FORM_MEDIA_TYPE) return 415;
  return parseForm(typeof body === 'string' ? body : '') ?? 400;
}

/** The parameters of the request's query; null if it cannot be parsed. */
export function readQuery({ url }: FastifyRequest): ReadonlyMap<string, string> | null {
  return parseForm(url.split('?').slice(1).join('?'));
}

/** A parameter of the request's path; empty if there is none. */
export function pathParameter({ request: { params } }: { readonly request: FastifyRequest }, name: string): string {
  return typeof params === 'object' && params !== null ? String(Reflect.get(params, name) ?? '') : '';
}
