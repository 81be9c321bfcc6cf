import type { FastifyInstance } from 'fastify';
import type { LanService } from '../core/lan-service.ts';
import type { LimitSurroundings } from './limits.ts';

/** The verification page of the device flow (RFC 8628, 3.3): takes the user code, and goes on to the portal. */
export function servePairPage(
  _app: FastifyInstance,
  _service: LanService,
  _hubName: string,
  _surroundings: LimitSurroundings,
): void {}
