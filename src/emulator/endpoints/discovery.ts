import type { FastifyInstance } from 'fastify';
import { supportedGrantTypes } from '../grant-types.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route, addRoute } from '../http/routes.ts';
import { ASSERTION_ALGORITHMS } from '../oauth/client-assertions.ts';
import { OPENID_SCOPES, PROMPTS } from '../oauth/oauth2-authorization-request.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Settings } from '../settings/settings.ts';

/** Serves the metadata and the public keys of the generic OAuth 2.0 server (RFC 8414, 3; OpenID Connect Discovery, 4; RFC 7517, 5). */
export function serveDiscovery(app: FastifyInstance): void {
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    addOAuth2Route(app, `/.well-known/${name}`, 'discovery', {
      async GET(request, reply) {
        return reply.send(serverMetadata(requestContext(request).portal));
      },
    });
  }
  addOAuth2Route(app, '/oauth2/jwks', 'discovery', {
    async GET(request, reply) {
      return reply.send(requestContext(request).portal.signingKey.jwks());
    },
  });
}

/** Serves at the root of an origin what it is, and where to begin. */
export function serveOverview(app: FastifyInstance): void {
  addRoute(app, '/', 'unknown', {
    async GET(request, reply) {
      const { base, frontend } = requestContext(request).portal.origins();
      return reply.send({
        description: 'A portal emulator of Latchkey: a cloud for tests',
        base_url: base,
        issuer: frontend,
        metadata: `${frontend}/.well-known/openid-configuration`,
        console: `${base}/_emulator/`,
        api: `${base}/_emulator/openapi.json`,
      });
    },
  });
}

/** RFC 8414, 2. What a setting turns off is left out. */
function serverMetadata(portal: EmulatedPortal): object {
  const { settings } = portal;
  const issuer = portal.issuer();
  const hasCode = settings.flows !== 'device';
  const hasDevice = settings.flows !== 'code';
  const methods = AUTHENTICATION_METHODS[settings.clientAuthentication];
  return {
    issuer,
    ...(hasCode && {
      authorization_endpoint: `${issuer}/oauth2/authorize`,
      pushed_authorization_request_endpoint: `${issuer}/oauth2/par`,
      require_pushed_authorization_requests: settings.requirePushedAuthorizationRequests,
    }),
    token_endpoint: `${issuer}/oauth2/token`,
    ...(hasDevice && { device_authorization_endpoint: `${issuer}/oauth2/device_authorization` }),
    jwks_uri: `${issuer}/oauth2/jwks`,
    revocation_endpoint: `${issuer}/oauth2/revoke`,
    ...(settings.clientAuthentication !== 'none' && {
      introspection_endpoint: `${issuer}/oauth2/introspect`,
      introspection_endpoint_auth_methods_supported: methods.filter((method) => method !== 'none'),
      introspection_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    }),
    ...(settings.registration && { registration_endpoint: `${issuer}/oauth2/register` }),
    end_session_endpoint: `${issuer}/oauth2/logout`,
    userinfo_endpoint: `${issuer}/oauth2/userinfo`,
    scopes_supported: (settings.scopes ?? OPENID_SCOPES).split(' '),
    // Required and never empty (RFC 8414, 2 and 3.2).
    response_types_supported: [hasCode ? 'code' : 'none'],
    response_modes_supported: ['query'],
    request_uri_parameter_supported: false,
    grant_types_supported: supportedGrantTypes(settings),
    token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    revocation_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    ...(settings.pkce !== 'ignored' && { code_challenge_methods_supported: ['S256'] }),
    ...(settings.dpop !== 'ignored' && { dpop_signing_alg_values_supported: ASSERTION_ALGORITHMS }),
    authorization_response_iss_parameter_supported: settings.issInResponse,
    prompt_values_supported: PROMPTS,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  };
}

/** Names of the IANA registry. There is none for two methods at once. */
const AUTHENTICATION_METHODS: Readonly<Record<Settings['clientAuthentication'], readonly string[]>> = {
  any: ['client_secret_post', 'client_secret_basic', 'private_key_jwt', 'none'],
  post: ['client_secret_post'],
  basic: ['client_secret_basic'],
  both: ['client_secret_post', 'client_secret_basic'],
  none: ['none'],
  private_key_jwt: ['private_key_jwt'],
};
