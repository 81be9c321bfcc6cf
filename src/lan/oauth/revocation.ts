import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import type { FormGate } from './form-endpoint.ts';

/** The revocation endpoint (RFC 7009). */
export function serveRevocation(_app: FastifyInstance, _service: LanService, _gate: FormGate): void {}
