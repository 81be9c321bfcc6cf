import type { IncomingHttpHeaders } from 'node:http';
import type { SetupAccess } from '../../core/setup-access.ts';
import { isCrossOriginFetch, safeRedirectPath } from '../request-origin.ts';
import type { PageAuthentication } from '../sign-in/authenticated-routes.ts';

/**
 * Trusts the reverse proxy to forward only requests of people who are signed in there. The requests of a browser carry
 * no credential of the hub, so the forms of other sites are recognised by a CSRF token of the user, by Fetch Metadata,
 * and by `Origin`.
 */
export function ingressAuthentication(access: Pick<SetupAccess, 'proxiedCsrfToken'>): PageAuthentication {
  return {
    findSession: ({ ingress }) =>
      ingress === undefined ? null : { csrfToken: access.proxiedCsrfToken(ingress.userId) },
    // Without the hook of the ingress listener there is no session, and no way to get one.
    sendUnauthenticated: (_request, reply) => reply.code(403).send(),
    isSameOrigin: ({ headers }) =>
      !isCrossOriginFetch(headers) && (headers.origin === undefined || isOfParent(headers.origin, headers)),
    submittingPage: ({ headers, ingress }) => pageOf(headers, ingress?.basePath ?? ''),
    userName: ({ ingress }) => ingress?.userName ?? null,
  };
}

/** The page that a form was on, without the base path; `/` if the header does not name one below it. */
function pageOf(headers: IncomingHttpHeaders, basePath: string): string {
  const url = URL.parse(headers.referer ?? '');
  if (url === null || !isOfParent(url.origin, headers) || !url.pathname.startsWith(`${basePath}/`)) return '/';
  return safeRedirectPath(url.pathname.slice(basePath.length) + url.search);
}

/**
 * Whether an origin is that of the proxy's site, by the host that the browser has requested. Proxies pass it on as
 * `X-Forwarded-Host` or `Host`, some of them without the port.
 */
function isOfParent(origin: string, { host, ...headers }: IncomingHttpHeaders): boolean {
  const url = URL.parse(origin);
  const forwarded = String(headers['x-forwarded-host'] ?? '').split(',')[0] ?? '';
  return [forwarded.trim(), host ?? ''].some((requested) => {
    const wanted = requested.toLowerCase();
    return wanted !== '' && url !== null && (wanted === url.host || wanted === url.hostname);
  });
}
