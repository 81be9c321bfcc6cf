import * as v from 'valibot';
import type { ResponseDescription } from '../../system/http/openapi.ts';
import { UserCodeFormSchema } from '../oauth/request-schemas.ts';
import type { HubOperation } from './operation.ts';

const htmlResponse = (description: string): ResponseDescription => ({ description, body: 'text/html' });
const httpsOnly = ['https'] as const;
const bothPorts = ['http', 'https'] as const;

const unknownUserCode = htmlResponse('Unknown user code; the page asks for another one');
const tooManyUserCodes: ResponseDescription = {
  ...htmlResponse('Too many wrong user codes'),
  headers: { 'retry-after': 'Seconds' },
};

/** The pages for browsers, and other endpoints. */
export const pageOperations: readonly HubOperation[] = [
  {
    method: 'get',
    path: '/pair',
    ports: bothPorts,
    id: 'verificationPage',
    summary: 'The verification page of the device flow (RFC 8628, 3.3)',
    query: v.strictObject(UserCodeFormSchema.entries),
    responses: {
      200: htmlResponse('Asks for the user code, shows the appliance and its scope, or reports how the pairing ended'),
      307: {
        description: 'On the HTTP port: redirect to the HTTPS port',
        headers: { location: 'The same page over HTTPS' },
      },
      400: htmlResponse('Malformed request'),
      404: unknownUserCode,
      429: tooManyUserCodes,
    },
  },
  {
    method: 'post',
    path: '/pair',
    ports: httpsOnly,
    id: 'openLink',
    summary: "Submit the verification page and continue to the portal's login",
    form: UserCodeFormSchema,
    responses: {
      303: {
        description: "Redirect to the portal's login, or back to the verification page",
        headers: { location: "The portal's login or the verification page" },
      },
      400: htmlResponse('Malformed request'),
      403: htmlResponse('Cross-site request'),
      404: unknownUserCode,
      415: htmlResponse('The body is not a form'),
      429: tooManyUserCodes,
      503: htmlResponse('The portal is unreachable, or too many other pairings use it'),
    },
  },
  {
    method: 'get',
    path: '/callback/{nonce}',
    ports: ['http'],
    id: 'callback',
    summary: "Target of the portal's redirect (RFC 6749, 4.1.2)",
    params: v.strictObject({ nonce: v.string() }),
    query: v.strictObject({
      code: v.optional(v.pipe(v.string(), v.description('The authorization code'))),
      error: v.optional(v.pipe(v.string(), v.description('access_denied if the login was refused'))),
    }),
    responses: {
      200: htmlResponse('The result of the pairing'),
      400: htmlResponse('Not a valid authorization response'),
      404: htmlResponse('Unknown nonce'),
    },
  },
  {
    method: 'get',
    path: '/ca.pem',
    ports: bothPorts,
    id: 'ca',
    summary: "The hub's CA certificate",
    responses: {
      200: {
        description: 'PEM',
        body: 'application/x-pem-file',
        headers: { link: 'During a CA rotation: the path of the old CA (rel="predecessor-version")' },
      },
    },
  },
  {
    method: 'get',
    path: '/ca-old.pem',
    ports: bothPorts,
    id: 'oldCa',
    summary: 'The old CA certificate, during a CA rotation',
    responses: {
      200: { description: 'PEM', body: 'application/x-pem-file' },
      404: htmlResponse('There is no old CA'),
    },
  },
  {
    method: 'get',
    path: '/',
    ports: ['http'],
    id: 'home',
    summary: "A page that links to the installer's page on the HTTPS port",
    responses: { 200: htmlResponse('The page') },
  },
  {
    method: 'get',
    path: '/openapi.json',
    ports: httpsOnly,
    id: 'openapi',
    summary: 'This description',
    responses: { 200: { description: 'OpenAPI 3.1', body: v.looseObject({ openapi: v.literal('3.1.0') }) } },
  },
];
