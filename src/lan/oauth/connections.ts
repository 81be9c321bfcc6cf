import type { FastifyInstance } from 'fastify';
import { setNoStore } from './errors.ts';
import { type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';

/**
 * An endpoint of Latchkey's own: tells an appliance which connections it uses, of which clouds and in which state, so that
 * a home automation can offer them to people.
 */
export function serveConnectionsEndpoint(app: FastifyInstance, context: FormEndpointContext): void {
  const { service } = context;
  serveFormEndpoint(app, '/oauth/connections', context, ({ appliance, reply }) =>
    setNoStore(reply).send({ hub: service.hub, connections: service.describeConnections(appliance) }),
  );
}
