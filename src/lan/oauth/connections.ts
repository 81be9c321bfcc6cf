import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { setNoStore } from './errors.ts';
import { type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';

/**
 * An endpoint of Latchkey's own: tells an appliance which connections it uses, of which clouds and in which state, so that
 * a home automation can offer them to people.
 */
export function serveConnectionsEndpoint(
  app: FastifyInstance,
  service: Pick<LanService, 'hub' | 'describeConnections'>,
  context: FormEndpointContext,
): void {
  serveFormEndpoint(app, '/oauth/connections', context, ({ appliance, reply }) =>
    setNoStore(reply).send({ hub: service.hub, connections: service.describeConnections(appliance) }),
  );
}
