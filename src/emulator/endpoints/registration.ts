import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import * as v from 'valibot';
import { systemRandom } from '../../system/random.ts';
import { bearerToken, bodyText, mediaType, pathParameter, requestContext } from '../http/request-context.ts';
import { addOAuth2Route, sendNotFound } from '../http/routes.ts';
import type { EmulatedPortal } from '../portal.ts';
import { type RegisteredClient, RegistrationMetadata } from '../settings/client-registry.ts';

/** Serves the registration of clients by themselves (RFC 7591), and its management (RFC 7592). */
export function serveRegistration(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/register', 'register', {
    async POST(request, reply) {
      const { portal } = requestContext(request);
      if (!portal.settings.registration) return sendNotFound(reply);
      const metadata = readMetadata(request);
      if ('error' in metadata) return reply.code(400).send(metadata);
      const client = portal.settings.clients.register({ ...toClient(metadata), registeredAt: portal.now() });
      portal.issuedSecrets.record('registration_token', client.registrationToken);
      return reply.code(201).send(describe(portal, client));
    },
  });
  addOAuth2Route(app, '/oauth2/register/:registered', 'register', {
    async GET(request, reply) {
      const client = authenticate(request, reply);
      return client === undefined ? reply : reply.send(describe(requestContext(request).portal, client));
    },
    async PUT(request, reply) {
      const client = authenticate(request, reply);
      if (client === undefined) return reply;
      const metadata = readMetadata(request);
      if ('error' in metadata) return reply.code(400).send(metadata);
      const { portal } = requestContext(request);
      const changed = { ...client, ...toClient(metadata, client.secret) };
      portal.settings.clients.replace(changed);
      return reply.send(describe(portal, changed));
    },
    async DELETE(request, reply) {
      const client = authenticate(request, reply);
      if (client === undefined) return reply;
      const { grants, settings } = requestContext(request).portal;
      settings.clients.remove(client.id);
      for (const grant of grants.all()) if (grant.clientId === client.id) grants.revoke(grant, 'grant');
      return reply.code(204).send();
    },
  });
}

/** The client of the registration access token; if it is wrong, undefined, and the response is sent (RFC 7592, 2). */
function authenticate(request: FastifyRequest, reply: FastifyReply): RegisteredClient | undefined {
  const { portal, authorization = '' } = requestContext(request);
  const id = pathParameter(request, 'registered') ?? '';
  const client = portal.settings.clients.authenticate(id, bearerToken(authorization) ?? '');
  if (client === undefined) {
    reply.code(401).header('www-authenticate', 'Bearer realm="registration", error="invalid_token"');
    reply.send({ error: 'invalid_token' });
  }
  return client;
}

/** The metadata in a request, or the error response (RFC 7591, 3.2.2). */
function readMetadata(request: FastifyRequest): RegistrationMetadata | { error: string; error_description: string } {
  const fail = (error: string, error_description: string) => ({ error, error_description });
  // A web page of another origin can send no other type without asking first.
  if (mediaType(request) !== 'application/json')
    return fail('invalid_client_metadata', 'the body must be application/json');
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), RegistrationMetadata), bodyText(request));
  if (!parsed.success) {
    const path = v.getDotPath(parsed.issues[0]) ?? 'the body';
    const error = path.includes('redirect_uris') ? 'invalid_redirect_uri' : 'invalid_client_metadata';
    return fail(error, `${path} is missing or has a value that is not supported`);
  }
  const { output } = parsed;
  if (output.grant_types.includes('authorization_code') && output.redirect_uris.length === 0)
    return fail('invalid_redirect_uri', 'redirect_uris is missing');
  if (output.token_endpoint_auth_method === 'private_key_jwt' && output.jwks === undefined)
    return fail('invalid_client_metadata', 'jwks is missing');
  return output;
}

/** @param secret the former one, which stays */
function toClient(metadata: RegistrationMetadata, secret: string | null = null) {
  const method = metadata.token_endpoint_auth_method;
  const hasSecret = method === 'client_secret_basic' || method === 'client_secret_post';
  return {
    secret: hasSecret ? (secret ?? systemRandom.token(24)) : null,
    jwks: metadata.jwks ?? null,
    name: metadata.client_name ?? 'A client that has registered itself',
    redirectUrl: 'accept',
    redirectUris: metadata.redirect_uris,
    postLogoutRedirectUris: metadata.post_logout_redirect_uris,
    claims: {},
    metadata,
  } as const;
}

/** RFC 7591, 3.2.1. */
function describe({ issuer }: EmulatedPortal, client: RegisteredClient): object {
  return {
    ...client.metadata,
    client_id: client.id,
    client_id_issued_at: Math.floor(client.registeredAt / 1000),
    ...(client.secret !== null && { client_secret: client.secret, client_secret_expires_at: 0 }),
    registration_access_token: client.registrationToken,
    registration_client_uri: `${issuer()}/oauth2/register/${client.id}`,
  };
}
