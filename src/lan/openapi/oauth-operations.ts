import type { ResponseDescription } from '../../system/http/openapi.ts';
import { RegistrationRequestSchema } from '../oauth/client-metadata.ts';
import type { OAuthErrorCode } from '../oauth/errors.ts';
import { DeviceAuthorizationFormSchema, RevocationFormSchema, TokenFormSchema } from '../oauth/request-schemas.ts';
import type { HubOperation } from './operation.ts';
import {
  DeviceAuthorizationResponseSchema,
  errorResponseSchema,
  MetadataResponseSchema,
  RegistrationResponseSchema,
  RevocationResponseSchema,
  TokenResponseSchema,
} from './response-schemas.ts';

const noStoreHeaders = { 'cache-control': 'no-store' };
const retryAfterHeaders = { ...noStoreHeaders, 'retry-after': 'Seconds' };

const badRequest = (...errors: OAuthErrorCode[]): ResponseDescription => ({
  description: 'The request is no good, or not now',
  body: errorResponseSchema(...errors),
  headers: noStoreHeaders,
});
const tooLarge: ResponseDescription = {
  description: 'The body is too large',
  body: errorResponseSchema('invalid_request'),
  headers: noStoreHeaders,
};
const tooManyRequests = (...errors: OAuthErrorCode[]): ResponseDescription => ({
  description: 'Too many such requests',
  body: errorResponseSchema(...errors),
  headers: retryAfterHeaders,
});
const unavailable = (description: string): ResponseDescription => ({
  description,
  body: errorResponseSchema('temporarily_unavailable'),
  headers: retryAfterHeaders,
});

/** What every endpoint answers that asks an appliance who it is. */
const clientAuthenticationResponses = {
  401: {
    description: 'The appliance did not prove who it is',
    body: errorResponseSchema('invalid_client'),
    headers: { ...noStoreHeaders, 'www-authenticate': 'Basic' },
  },
  413: tooLarge,
} as const;

const httpsOnly = ['https'] as const;

/** The OAuth authorization server. */
export const oauthOperations: readonly HubOperation[] = [
  {
    method: 'get',
    path: '/.well-known/oauth-authorization-server',
    ports: httpsOnly,
    id: 'metadata',
    summary: 'Authorization server metadata (RFC 8414)',
    responses: {
      200: { description: 'Every address is one of the host that was asked', body: MetadataResponseSchema },
    },
  },
  {
    method: 'post',
    path: '/oauth/token',
    ports: httpsOnly,
    id: 'token',
    summary: "Get the appliance's token (RFC 6749, 4.4 and 6; RFC 8628, 3.4)",
    security: 'client',
    form: TokenFormSchema,
    responses: {
      200: { description: 'The token', body: TokenResponseSchema, headers: noStoreHeaders },
      400: badRequest(
        'access_denied',
        'authorization_pending',
        'expired_token',
        'invalid_grant',
        'invalid_request',
        'invalid_scope',
        'slow_down',
        'unauthorized_client',
        'unsupported_grant_type',
      ),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client'),
      503: unavailable('There is no token at hand, and none to be had just now'),
    },
  },
  {
    method: 'post',
    path: '/oauth/device_authorization',
    ports: httpsOnly,
    id: 'deviceAuthorization',
    summary: 'The appliance starts its own pairing (RFC 8628, 3.1)',
    security: 'client',
    form: DeviceAuthorizationFormSchema,
    responses: {
      200: {
        description: 'The pairing waits for a person',
        body: DeviceAuthorizationResponseSchema,
        headers: noStoreHeaders,
      },
      400: badRequest('invalid_request', 'invalid_scope', 'unauthorized_client'),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client', 'temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or does not know the time that an assertion was made by"),
    },
  },
  {
    method: 'post',
    path: '/oauth/revoke',
    ports: httpsOnly,
    id: 'revoke',
    summary: 'The cloud refused the token that the appliance holds (RFC 7009)',
    description:
      "The access token is never handed out again, and the hub gets a new one, once a minute at most. A refresh token of the hub's own is ended. Anything else changes nothing.",
    security: 'client',
    form: RevocationFormSchema,
    responses: {
      200: { description: 'It is known', body: RevocationResponseSchema, headers: noStoreHeaders },
      400: badRequest('invalid_request', 'unauthorized_client'),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client'),
      503: unavailable("The hub can't write its store, or does not know the time that an assertion was made by"),
    },
  },
  {
    method: 'post',
    path: '/oauth/register',
    ports: httpsOnly,
    id: 'register',
    summary: 'An appliance introduces itself (RFC 7591)',
    description:
      'With an initial access token, or while an installer holds registration open; then it can do nothing until an installer approves it.',
    security: 'invite',
    json: RegistrationRequestSchema,
    responses: {
      201: { description: 'The appliance is registered', body: RegistrationResponseSchema, headers: noStoreHeaders },
      400: badRequest('invalid_request', 'invalid_client_metadata'),
      401: {
        description: 'Registration is closed, or the initial access token is no good',
        body: errorResponseSchema('invalid_token'),
        headers: { ...noStoreHeaders, 'www-authenticate': 'Bearer' },
      },
      413: tooLarge,
      429: tooManyRequests('temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or has as many appliances as it takes"),
    },
  },
];
