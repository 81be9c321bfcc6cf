import type { Answer } from '../../system/http/openapi.ts';
import { RegistrationRequest } from '../oauth/client-metadata.ts';
import type { OAuthErrorCode } from '../oauth/errors.ts';
import { DeviceAuthorizationForm, RevocationForm, TokenForm } from '../oauth/schemas.ts';
import type { Operation } from './operation.ts';
import {
  DeviceAuthorizationResponse,
  errorResponse,
  MetadataResponse,
  RegistrationResponse,
  RevocationResponse,
  TokenResponse,
} from './response-schemas.ts';

const noStore = { 'cache-control': 'no-store' };
const later = { ...noStore, 'retry-after': 'Seconds' };

const wrong = (...errors: OAuthErrorCode[]): Answer => ({
  description: 'The request is no good, or not now',
  body: errorResponse(...errors),
  headers: noStore,
});
const tooLarge: Answer = {
  description: 'The body is too large',
  body: errorResponse('invalid_request'),
  headers: noStore,
};
const tooMany = (...errors: OAuthErrorCode[]): Answer => ({
  description: 'Too many such requests',
  body: errorResponse(...errors),
  headers: later,
});
const unavailable = (description: string): Answer => ({
  description,
  body: errorResponse('temporarily_unavailable'),
  headers: later,
});

/** What every endpoint answers that asks an appliance who it is. */
const authenticated = {
  401: {
    description: 'The appliance did not prove who it is',
    body: errorResponse('invalid_client'),
    headers: { ...noStore, 'www-authenticate': 'Basic' },
  },
  413: tooLarge,
} as const;

const https = ['https'] as const;

/** The OAuth authorization server. */
export const oauthOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/.well-known/oauth-authorization-server',
    ports: https,
    id: 'metadata',
    summary: 'Authorization server metadata (RFC 8414)',
    answers: { 200: { description: 'Every address is one of the host that was asked', body: MetadataResponse } },
  },
  {
    method: 'post',
    path: '/oauth/token',
    ports: https,
    id: 'token',
    summary: "Get the appliance's token (RFC 6749, 4.4 and 6; RFC 8628, 3.4)",
    security: 'client',
    form: TokenForm,
    answers: {
      200: { description: 'The token', body: TokenResponse, headers: noStore },
      400: wrong(
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
      ...authenticated,
      429: tooMany('invalid_client'),
      503: unavailable('There is no token at hand, and none to be had just now'),
    },
  },
  {
    method: 'post',
    path: '/oauth/device_authorization',
    ports: https,
    id: 'deviceAuthorization',
    summary: 'The appliance starts its own pairing (RFC 8628, 3.1)',
    security: 'client',
    form: DeviceAuthorizationForm,
    answers: {
      200: { description: 'The pairing waits for a person', body: DeviceAuthorizationResponse, headers: noStore },
      400: wrong('invalid_request', 'invalid_scope', 'unauthorized_client'),
      ...authenticated,
      429: tooMany('invalid_client', 'temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or does not know the time that an assertion was made by"),
    },
  },
  {
    method: 'post',
    path: '/oauth/revoke',
    ports: https,
    id: 'revoke',
    summary: 'The cloud refused the token that the appliance holds (RFC 7009)',
    description:
      "The access token is never handed out again, and the hub gets a new one, once a minute at most. A refresh token of the hub's own is ended. Anything else changes nothing.",
    security: 'client',
    form: RevocationForm,
    answers: {
      200: { description: 'It is known', body: RevocationResponse, headers: noStore },
      400: wrong('invalid_request', 'unauthorized_client'),
      ...authenticated,
      429: tooMany('invalid_client'),
      503: unavailable("The hub can't write its store, or does not know the time that an assertion was made by"),
    },
  },
  {
    method: 'post',
    path: '/oauth/register',
    ports: https,
    id: 'register',
    summary: 'An appliance introduces itself (RFC 7591)',
    description:
      'With an initial access token, or while an installer holds registration open; then it can do nothing until an installer approves it.',
    security: 'invite',
    json: RegistrationRequest,
    answers: {
      201: { description: 'The appliance is registered', body: RegistrationResponse, headers: noStore },
      400: wrong('invalid_request', 'invalid_client_metadata'),
      401: {
        description: 'Registration is closed, or the initial access token is no good',
        body: errorResponse('invalid_token'),
        headers: { ...noStore, 'www-authenticate': 'Bearer' },
      },
      413: tooLarge,
      429: tooMany('temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or has as many appliances as it takes"),
    },
  },
];
