import type { DescribedOperation } from '../../system/openapi.ts';

/**
 * One method of one path, as `GET /_emulator/openapi.json` tells it. What every path may answer (404 for none, 405, 413,
 * whatever a fault says) is left out of its answers.
 */
export interface Operation extends DescribedOperation {
  /** Which of the two origins serves it. */
  readonly origin: 'base' | 'frontend';
  /** The ways to authenticate; default: none. */
  readonly security?: 'client' | 'bearer';
}
