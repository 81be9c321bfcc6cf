import { make } from './dom.ts';

/** RFC 9110, section 15: those that the portal or a fault is likely to answer. */
const NAMES: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  204: 'No Content',
  302: 'Found',
  303: 'See Other',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};
const CLASSES = ['', 'Informational', 'Success', 'Redirection', 'Client Error', 'Server Error'];

/** An answer's status, coloured by its class and named. @param status null: no answer arrived whole */
export function statusBadge(status: number | null): HTMLElement {
  if (status === null) return make('span', { class: 'status s0' }, 'no answer');
  const kind = Math.floor(status / 100);
  return make('span', { class: `status s${kind}` }, `${status} ${NAMES[status] ?? CLASSES[kind] ?? ''}`.trim());
}
