import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import type { Administration, IssuedCredentials } from '../core/administration.ts';
import { Failure } from '../core/failure.ts';
import {
  type AuthorityAnswer,
  addRequest,
  type CredentialsAnswer,
  type PairingStarted,
  type TokenAnswer,
} from './messages.ts';

interface Named {
  readonly Params: { readonly name: string };
}

/** What the command line asks of the running hub, except the following of a pairing. */
export function serveAdministration(app: FastifyInstance, administration: Administration): void {
  app.get('/v1/status', () => administration.status());
  app.get('/v1/ca', async (): Promise<AuthorityAnswer> => administration.authority());

  app.post('/v1/appliances', async (request, reply) => {
    const { name, scope, portal } = parseAdd(request.body);
    const issued = await administration.addAppliance(name, scope, portal);
    return reply.code(201).send(credentials(issued));
  });
  app.delete<Named>('/v1/appliances/:name', async ({ params }, reply) => {
    await administration.removeAppliance(params.name);
    return reply.code(204).send();
  });
  app.post<Named>('/v1/appliances/:name/secret', async ({ params }) =>
    credentials(await administration.rotateSecret(params.name)),
  );
  app.post<Named>('/v1/appliances/:name/pairings', async ({ params }, reply) => {
    const started: PairingStarted = { pairing: await administration.pair(params.name) };
    return reply.code(201).send(started);
  });
  app.delete<Named>('/v1/appliances/:name/grant', async ({ params }, reply) => {
    await administration.unpair(params.name);
    return reply.code(204).send();
  });
  app.get<Named>('/v1/appliances/:name/token', async ({ params }): Promise<TokenAnswer> => {
    const token = await administration.token(params.name);
    return {
      access_token: token.accessToken.reveal(),
      token_type: 'Bearer',
      expires_in: token.expiresIn,
      ...(token.scope === null ? {} : { scope: token.scope }),
    };
  });
  app.post<Named>('/v1/appliances/:name/refresh', ({ params }) => administration.refresh(params.name));
}

function credentials(issued: IssuedCredentials): CredentialsAnswer {
  return {
    name: issued.name,
    client_id: issued.clientId,
    client_secret: issued.clientSecret.reveal(),
    token_endpoint: issued.tokenEndpoint,
    ca_fingerprint: issued.caFingerprint,
  };
}

/** @throws Failure `request_invalid` */
function parseAdd(body: unknown): v.InferOutput<typeof addRequest> {
  const parsed = v.safeParse(addRequest, body);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const where = v.getDotPath(issue) ?? 'the body';
  throw new Failure(
    'request_invalid',
    `${where}: found ${issue.received}; allowed is ${issue.expected ?? 'something else'}`,
  );
}
