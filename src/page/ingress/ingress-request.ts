import type { IncomingHttpHeaders } from 'node:http';

/** A request that a reverse proxy has forwarded, after it has signed the user in. */
export interface IngressRequest {
  /** The path below which the proxy shows the page, without a slash at the end; empty for the root of its site. */
  readonly basePath: string;
  /** The user's id at the proxy; empty if the proxy names nobody. */
  readonly userId: string;
  /** The name with which the user signs in at the proxy; null if the proxy does not send it. */
  readonly loginName: string | null;
  /** The id and the login name exactly as the proxy sent them: another user's may look the same. */
  readonly identities: readonly string[];
  /** The user's name, for the log and the history; null if the proxy names nobody. */
  readonly userName: string | null;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Only the ingress listener sets this; at the hub's own address the headers of a proxy have no effect. */
    ingress?: IngressRequest;
  }
}

/** Characters of the path: that of Home Assistant has about 65. */
const MAX_BASE_PATH_LENGTH = 256;
/** Segments of unreserved characters (RFC 3986, 2.3), so that the path needs no escaping anywhere. */
const BASE_PATH = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;
const MAX_USER_ID_LENGTH = 128;
/** Characters of a name that the log and the history keep. */
const MAX_USER_NAME_LENGTH = 64;

/**
 * Reads the headers of a reverse proxy: `X-Ingress-Path`, and `X-Remote-User-Id`, `-Name` and `-Display-Name`.
 * @returns null if the path is missing or unusable
 */
export function readIngressRequest(headers: IncomingHttpHeaders): IngressRequest | null {
  const path = headers['x-ingress-path'];
  if (typeof path !== 'string' || path === '' || path.length > MAX_BASE_PATH_LENGTH) return null;
  if (!BASE_PATH.test(path) || path.split('/').some((segment) => segment === '.' || segment === '..')) return null;
  const loginName = cleanName(headers['x-remote-user-name']);
  return {
    basePath: path.replace(/\/$/, ''),
    userId: textOf(headers['x-remote-user-id']).slice(0, MAX_USER_ID_LENGTH) || (loginName ?? ''),
    loginName,
    identities: [headers['x-remote-user-id'], headers['x-remote-user-name']].map(textOf).filter((text) => text !== ''),
    userName: cleanName(headers['x-remote-user-display-name']) ?? loginName,
  };
}

/** Whether a user may open the page. @param users login names and ids; empty for everybody whom the proxy lets through */
export function isPermittedUser({ identities }: IngressRequest, users: readonly string[]): boolean {
  return users.length === 0 || identities.some((identity) => users.includes(identity));
}

/** A name on one line, without characters that are invisible or change the direction of text; null if nothing is left. */
function cleanName(header: string | string[] | undefined): string | null {
  const visible = textOf(header)
    .normalize('NFC')
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim();
  return [...visible].slice(0, MAX_USER_NAME_LENGTH).join('').trim() || null;
}

/** Node reads headers as Latin-1, but proxies send names as UTF-8. */
function textOf(header: string | string[] | undefined): string {
  const received = typeof header === 'string' ? header : '';
  const bytes = Buffer.from(received, 'latin1');
  const text = bytes.toString('utf8');
  return text.includes('\ufffd') ? received : text;
}
