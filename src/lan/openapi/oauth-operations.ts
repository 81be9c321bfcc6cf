import type { OperationDescription, ResponseDescription } from '../../system/http/openapi.ts';
import { RegistrationRequestSchema } from '../oauth/client-metadata.ts';
import type { OAuthErrorCode } from '../oauth/errors.ts';
import { DeviceAuthorizationFormSchema, RevocationFormSchema, TokenFormSchema } from '../oauth/request-schemas.ts';
import {
  DeviceAuthorizationResponseSchema,
  errorResponseSchema,
  MetadataResponseSchema,
  RegistrationResponseSchema,
  RevocationResponseSchema,
  TokenResponseSchema,
} from './response-schemas.ts';

/**
 * One method of an OAuth endpoint. Its responses leave out those that every path may give (400 for a request that is not
 * valid HTTP, 404 for an unknown path, 405, 413, 421).
 */
interface OAuthOperation extends OperationDescription {
  /** The credentials that the operation accepts; default: none. */
  readonly security?: 'client' | 'invite';
}

const noStoreHeaders = { 'cache-control': 'no-store' };
const retryAfterHeaders = { ...noStoreHeaders, 'retry-after': 'Seconds' };

const badRequest = (...errors: OAuthErrorCode[]): ResponseDescription => ({
  description: 'Invalid request, or not possible in the current state',
  body: errorResponseSchema(...errors),
  headers: noStoreHeaders,
});
const tooLarge: ResponseDescription = {
  description: 'The body is too large',
  body: errorResponseSchema('invalid_request'),
  headers: noStoreHeaders,
};
const tooManyRequests = (...errors: OAuthErrorCode[]): ResponseDescription => ({
  description: 'Too many requests of this kind',
  body: errorResponseSchema(...errors),
  headers: retryAfterHeaders,
});
const unavailable = (description: string): ResponseDescription => ({
  description,
  body: errorResponseSchema('temporarily_unavailable'),
  headers: retryAfterHeaders,
});

/** The responses of every endpoint that requires client authentication. */
const clientAuthenticationResponses = {
  401: {
    description: 'Client authentication failed',
    body: errorResponseSchema('invalid_client'),
    headers: { ...noStoreHeaders, 'www-authenticate': 'Basic' },
  },
  413: tooLarge,
} as const;

/** The operations of the OAuth authorization server. */
export const oauthOperations: readonly OAuthOperation[] = [
  {
    method: 'get',
    path: '/.well-known/oauth-authorization-server',
    id: 'metadata',
    summary: 'Authorization server metadata (RFC 8414)',
    responses: {
      200: { description: 'All URLs use the host of the request', body: MetadataResponseSchema },
    },
  },
  {
    method: 'post',
    path: '/oauth/token',
    id: 'token',
    summary: 'Get an access token (RFC 6749, 4.4 and 6; RFC 8628, 3.4)',
    security: 'client',
    form: TokenFormSchema,
    responses: {
      200: { description: 'An access token', body: TokenResponseSchema, headers: noStoreHeaders },
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
      503: unavailable('No valid token is available at present'),
    },
  },
  {
    method: 'post',
    path: '/oauth/device_authorization',
    id: 'deviceAuthorization',
    summary: 'Start a pairing with the device flow (RFC 8628, 3.1)',
    security: 'client',
    form: DeviceAuthorizationFormSchema,
    responses: {
      200: {
        description: 'The pairing has started and waits for a person',
        body: DeviceAuthorizationResponseSchema,
        headers: noStoreHeaders,
      },
      400: badRequest('invalid_request', 'invalid_scope', 'unauthorized_client'),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client', 'temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or does not know the time and can't check a client_assertion"),
    },
  },
  {
    method: 'post',
    path: '/oauth/revoke',
    id: 'revoke',
    summary: 'Report that the cloud rejected the access token, or revoke a refresh token (RFC 7009)',
    description:
      'For the current access token: the hub never issues it again and gets a new one, at most once a minute. For a refresh token that the hub issued: it becomes invalid. Any other token has no effect; the response is the same.',
    security: 'client',
    form: RevocationFormSchema,
    responses: {
      200: {
        description: 'Accepted, also for an unknown token',
        body: RevocationResponseSchema,
        headers: noStoreHeaders,
      },
      400: badRequest('invalid_request', 'unauthorized_client'),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client'),
      503: unavailable("The hub can't write its store, or does not know the time and can't check a client_assertion"),
    },
  },
  {
    method: 'post',
    path: '/oauth/register',
    id: 'register',
    summary: 'Register an appliance (RFC 7591)',
    description:
      'Requires an initial access token, or registration opened by an installer. Without an initial access token, the appliance can do nothing until an installer approves it.',
    security: 'invite',
    json: RegistrationRequestSchema,
    responses: {
      201: { description: 'The appliance is registered', body: RegistrationResponseSchema, headers: noStoreHeaders },
      400: badRequest('invalid_request', 'invalid_client_metadata'),
      401: {
        description: 'Registration is closed, or the initial access token is invalid',
        body: errorResponseSchema('invalid_token'),
        headers: { ...noStoreHeaders, 'www-authenticate': 'Bearer' },
      },
      413: tooLarge,
      429: tooManyRequests('temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or has reached its maximum number of appliances"),
    },
  },
];
