import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Secret } from '../core/secret.ts';
import { FORM_MEDIA_TYPE, mediaTypeOf, parseForm } from '../system/http/form.ts';

/** The value of the cookie of this name (RFC 6265, 4.2); null if the browser sent none. */
export function cookieValue({ headers }: FastifyRequest, name: string): string | null {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

/** What the hub's callback is told by a browser: it is plain HTTP, so not `Secure`; no other site's form is sent with it. */
const CALLBACK_COOKIE_ATTRIBUTES = 'Path=/callback; Max-Age=3600; HttpOnly; SameSite=Lax';

/**
 * Has a browser keep something for when it comes back from the portal, for an hour. Browsers don't tell ports apart, so what they
 * are given over HTTPS they bring over HTTP too, to the same name or address.
 */
export function setCallbackCookie(reply: FastifyReply, name: string, value: Secret): FastifyReply {
  return reply.header('set-cookie', `${name}=${value.reveal()}; ${CALLBACK_COOKIE_ATTRIBUTES}`);
}

/** The cookie of a browser that the hub itself sent to the portal. */
export const BROWSER_TOKEN_COOKIE = 'latchkey-sent';

/** Sends a browser to the portal, with a mark by which the hub knows it when it comes back. */
export function redirectToPortal(reply: FastifyReply, mark: Secret, authorizeUrl: string): FastifyReply {
  return setCallbackCookie(reply, BROWSER_TOKEN_COOKIE, mark)
    .headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    .redirect(authorizeUrl, 303);
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** It is for people with a browser alone, and no part of what the hub's OpenAPI document describes. */
    readonly forPeople?: true;
  }
}

/** The options of a route that is for people alone. */
export const BROWSER_ROUTE = { config: { forPeople: true } } as const;

/** The status of an answer to what is no form (415), or one that can't be read (400). */
export type FormErrorStatus = 400 | 415;

/** The form that was sent, or the status that says what is wrong: it is none, or can't be read. */
export function readFormBody({ headers, body }: FastifyRequest): ReadonlyMap<string, string> | FormErrorStatus {
  if (mediaTypeOf(headers['content-type']) !== FORM_MEDIA_TYPE) return 415;
  return parseForm(typeof body === 'string' ? body : '') ?? 400;
}

/** The query of an address, as a form has it; null if it can't be read. */
export function readQuery({ url }: FastifyRequest): ReadonlyMap<string, string> | null {
  return parseForm(url.split('?').slice(1).join('?'));
}
