import type { FastifyInstance, FastifyReply } from 'fastify';
import * as v from 'valibot';
import type { Administration, IssuedCredentials } from '../core/administration.ts';
import { Failure } from '../core/failure.ts';
import type { SetupCode } from '../core/setup-access.ts';
import {
  addRequest,
  approvalRequest,
  backupRequest,
  type CredentialsAnswer,
  type InviteAnswer,
  inviteRequest,
  keepRequest,
  type LabelAnswer,
  type PairingStarted,
  type RegistrationAnswer,
  type ReloadStarted,
  registrationRequest,
  restoreRequest,
  type SetupCodeAnswer,
  secretRequest,
  type TokenAnswer,
} from './messages.ts';

/** Bytes: a hub with the most appliances that it takes. */
const LARGEST_COPY = 64 * 1024 * 1024;

/** Keys whose value is never said back. */
const secrets = { ...backupRequest.entries, ...restoreRequest.entries };

interface Identified {
  readonly Params: { readonly id: string };
}

interface Named {
  readonly Params: { readonly name: string };
}

/** What the command line asks of the running hub, except the following of a pairing. */
export function serveAdministration(app: FastifyInstance, administration: Administration): void {
  app.get('/v1/status', () => administration.status());
  app.post('/v1/notices/test', () => administration.testNotices());
  app.get('/v1/ca', async () => administration.authority());
  app.post('/v1/ca', ({ body }) => administration.rotateAuthority(parse(keepRequest, body).keep));
  app.put('/v1/ca/old', ({ body }) => administration.keepOldAuthority(parse(keepRequest, body).keep));

  app.post('/v1/appliances', async (request, reply) => {
    const { name, scope, portal } = parse(addRequest, request.body);
    const issued = await administration.addAppliance(name, scope, portal);
    return reply.code(201).send(credentials(issued));
  });
  app.delete<Named>('/v1/appliances/:name', async ({ params }, reply) => {
    await administration.removeAppliance(params.name);
    return reply.code(204).send();
  });
  app.post<Named>('/v1/appliances/:name/secret', async ({ params, body }) => {
    const { replace_keys } = parse(secretRequest, body ?? {});
    return credentials(await administration.rotateSecret(params.name, replace_keys));
  });
  app.post<Named>('/v1/appliances/:name/approval', ({ params, body }) =>
    administration.approveAppliance(params.name, parse(approvalRequest, body ?? {}).code),
  );
  app.post('/v1/invites', async ({ body }, reply) => {
    const issued = await administration.invite(parse(inviteRequest, body));
    const answer: InviteAnswer = {
      token: issued.token.reveal(),
      name: issued.name,
      scope: issued.scope,
      expires_in: issued.expiresIn,
      registration_endpoint: issued.registrationEndpoint,
      ca_fingerprint: issued.caFingerprint,
    };
    return reply.code(201).send(answer);
  });
  app.put('/v1/registration', async ({ body }): Promise<RegistrationAnswer> => {
    const { open_for } = parse(registrationRequest, body);
    const place = await administration.openRegistration(open_for);
    return { open_for, registration_endpoint: place.registrationEndpoint, ca_fingerprint: place.caFingerprint };
  });
  app.post<Named>('/v1/appliances/:name/pairings', async ({ params }, reply) => {
    const started: PairingStarted = { pairing: await administration.pair(params.name) };
    return reply.code(201).send(started);
  });
  app.get<Named>('/v1/appliances/:name/label', async ({ params }): Promise<LabelAnswer> => {
    const { name, hubName, link, byAddress } = administration.label(params.name);
    return { name, hub_name: hubName, link, by_address: byAddress };
  });
  app.post('/v1/rounds', async (_request, reply) => reply.code(201).send(await administration.pairAll()));
  app.post<Identified>('/v1/rounds/:id/next', ({ params }) => administration.nextPairing(params.id));
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
  app.get<Named>('/v1/appliances/:name/history', ({ params }) => administration.history(params.name));
  app.post<Named>('/v1/appliances/:name/refresh', ({ params }) => administration.refresh(params.name));

  app.get('/v1/setup-code', async () => setupCode(await administration.setupCode()));
  app.post('/v1/setup-code', async () => setupCode(await administration.rotateSetupCode()));

  app.post('/v1/store-key', () => administration.rotateStoreKey());
  app.post('/v1/backup', ({ body }) => administration.backUp(parse(backupRequest, body).passphrase));
  app.post('/v1/restore', { bodyLimit: LARGEST_COPY }, async ({ body }, reply) => {
    const { copy, passphrase } = parse(restoreRequest, body);
    const { report, restart } = await administration.restore(copy, passphrase);
    onceAnswered(reply, restart);
    return report;
  });

  app.post('/v1/reload', async (_request, reply) => {
    const { id, begin } = await administration.reload();
    onceAnswered(reply, begin);
    return reply.code(202).send({ reload: id } satisfies ReloadStarted);
  });
  app.get<{ readonly Params: { readonly id: string } }>('/v1/reloads/:id', async ({ params }) =>
    administration.reloadOutcome(params.id),
  );
}

/** The hub that starts anew closes this connection: not before the answer is out, or whoever asked is gone. */
function onceAnswered({ raw }: FastifyReply, run: () => void): void {
  if (raw.closed) run();
  else raw.once('close', run);
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

function setupCode({ code, page, signIn, signInExpiresIn }: SetupCode): SetupCodeAnswer {
  return { code: code.reveal(), page, sign_in: signIn.reveal(), expires_in: signInExpiresIn };
}

/** @throws Failure `request_invalid` */
function parse<const Schema extends v.GenericSchema>(schema: Schema, body: unknown): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, body);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const where = v.getDotPath(issue) ?? 'the body';
  throw new Failure(
    'request_invalid',
    `${where}: found ${where in secrets ? 'something else' : issue.received}; allowed is ${issue.expected ?? 'something else'}`,
  );
}
