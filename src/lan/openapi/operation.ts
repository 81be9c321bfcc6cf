import type { OperationDescription } from '../../system/http/openapi.ts';

/**
 * One method of one path, as `GET /openapi.json` describes it. Its responses leave out those that every path may give
 * (400 for a request that is not valid HTTP, 404 for an unknown path, 405, 413, 421).
 */
export interface HubOperation extends OperationDescription {
  /** The ports that serve it. */
  readonly ports: readonly ('http' | 'https')[];
  /** The credentials that the operation accepts; default: none. */
  readonly security?: 'client' | 'invite';
}
