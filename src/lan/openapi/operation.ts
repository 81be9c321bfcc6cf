import type { OperationDescription } from '../../system/http/openapi.ts';

/**
 * One method of one path, as `GET /openapi.json` tells it. What every path may answer (400 for what is no HTTP, 404 for
 * none, 405, 413, 421) is left out of its answers.
 */
export interface HubOperation extends OperationDescription {
  /** The ports that serve it. */
  readonly ports: readonly ('http' | 'https')[];
  /** What an appliance shows of itself; default: nothing. */
  readonly security?: 'client' | 'invite';
}
