import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import type { LimitSurroundings } from '../limits.ts';
import type { FormGate } from './form-endpoint.ts';

/** The device authorization endpoint (RFC 8628, 3.1). */
export function serveDeviceAuthorization(
  _app: FastifyInstance,
  _service: LanService,
  _gate: FormGate,
  _surroundings: LimitSurroundings,
): void {}
