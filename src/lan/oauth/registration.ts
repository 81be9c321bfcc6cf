import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';

/** The client registration endpoint (RFC 7591, 3). */
export function serveRegistration(_app: FastifyInstance, _service: LanService): void {}
