import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import type { LimitSurroundings } from '../limits.ts';

/** The client registration endpoint (RFC 7591, 3). */
export function serveRegistration(
  _app: FastifyInstance,
  _service: LanService,
  _surroundings: LimitSurroundings,
): void {}
