import * as v from 'valibot';
import type { ResponseDescription } from '../../system/http/openapi.ts';
import { UserCodeFormSchema } from '../oauth/request-schemas.ts';
import type { HubOperation } from './operation.ts';

const htmlResponse = (description: string): ResponseDescription => ({ description, body: 'text/html' });
const httpsOnly = ['https'] as const;
const bothPorts = ['http', 'https'] as const;

const unknownUserCode = htmlResponse('No pairing waits with this code; it takes another');
const tooManyUserCodes: ResponseDescription = {
  ...htmlResponse('Too many codes that nobody was given'),
  headers: { 'retry-after': 'Seconds' },
};

/** What people and browsers come to, and what else there is. */
export const pageOperations: readonly HubOperation[] = [
  {
    method: 'get',
    path: '/pair',
    ports: bothPorts,
    id: 'verificationPage',
    summary: 'The verification page of the device flow (RFC 8628, 3.3)',
    query: v.strictObject(UserCodeFormSchema.entries),
    responses: {
      200: htmlResponse('It takes the code, names the appliance and its scope, or says how the pairing ended'),
      307: { description: 'On the HTTP port: on to the other one', headers: { location: 'Where to' } },
      400: htmlResponse('It can not be read'),
      404: unknownUserCode,
      429: tooManyUserCodes,
    },
  },
  {
    method: 'post',
    path: '/pair',
    ports: httpsOnly,
    id: 'openLink',
    summary: "What the verification page sends: on to the portal's login",
    form: UserCodeFormSchema,
    responses: {
      303: { description: 'On to the portal, or back to the page', headers: { location: 'Where to' } },
      400: htmlResponse('It can not be read'),
      403: htmlResponse('It came from a page of somebody else'),
      404: unknownUserCode,
      415: htmlResponse('It is no form'),
      429: tooManyUserCodes,
      503: htmlResponse('The portal is out of reach, or asked for too many other pairings'),
    },
  },
  {
    method: 'get',
    path: '/callback/{nonce}',
    ports: ['http'],
    id: 'callback',
    summary: "Where the portal's redirect lands",
    params: v.strictObject({ nonce: v.string() }),
    query: v.strictObject({
      code: v.optional(v.pipe(v.string(), v.description('The authorization code'))),
      error: v.optional(v.pipe(v.string(), v.description('Of a refused login: access_denied'))),
    }),
    responses: {
      200: htmlResponse('What became of the pairing'),
      400: htmlResponse('It is not what the portal sends'),
      404: htmlResponse('No pairing has this nonce'),
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
        headers: { link: 'During a rotation: where the CA before it is (rel="predecessor-version")' },
      },
    },
  },
  {
    method: 'get',
    path: '/ca-old.pem',
    ports: bothPorts,
    id: 'oldCa',
    summary: 'The CA before the present one, while appliances that trust no other are served',
    responses: {
      200: { description: 'PEM', body: 'application/x-pem-file' },
      404: htmlResponse('There is none'),
    },
  },
  {
    method: 'get',
    path: '/',
    ports: ['http'],
    id: 'home',
    summary: "A page that sends people to the installer's, on the other port",
    responses: { 200: htmlResponse('For people') },
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
