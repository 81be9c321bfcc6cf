import * as v from 'valibot';
import type { Answer } from '../../system/http/openapi.ts';
import { UserCodeForm } from '../oauth/schemas.ts';
import type { Operation } from './operation.ts';

const page = (description: string): Answer => ({ description, body: 'text/html' });
const https = ['https'] as const;
const both = ['http', 'https'] as const;

const unknown = page('No pairing waits with this code; it takes another');
const tooMany: Answer = { ...page('Too many codes that nobody was given'), headers: { 'retry-after': 'Seconds' } };

/** What people and browsers come to, and what else there is. */
export const pageOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/pair',
    ports: both,
    id: 'verificationPage',
    summary: 'The verification page of the device flow (RFC 8628, 3.3)',
    query: v.strictObject(UserCodeForm.entries),
    answers: {
      200: page('It takes the code, names the appliance and its scope, or says how the pairing ended'),
      307: { description: 'On the HTTP port: on to the other one', headers: { location: 'Where to' } },
      400: page('It can not be read'),
      404: unknown,
      429: tooMany,
    },
  },
  {
    method: 'post',
    path: '/pair',
    ports: https,
    id: 'openLink',
    summary: "What the verification page sends: on to the portal's login",
    form: UserCodeForm,
    answers: {
      303: { description: 'On to the portal, or back to the page', headers: { location: 'Where to' } },
      400: page('It can not be read'),
      403: page('It came from a page of somebody else'),
      404: unknown,
      415: page('It is no form'),
      429: tooMany,
      503: page('The portal is out of reach, or asked for too many other pairings'),
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
    answers: {
      200: page('What became of the pairing'),
      400: page('It is not what the portal sends'),
      404: page('No pairing has this nonce'),
    },
  },
  {
    method: 'get',
    path: '/ca.pem',
    ports: both,
    id: 'ca',
    summary: "The hub's CA certificate",
    answers: {
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
    ports: both,
    id: 'oldCa',
    summary: 'The CA before the present one, while appliances that trust no other are served',
    answers: {
      200: { description: 'PEM', body: 'application/x-pem-file' },
      404: page('There is none'),
    },
  },
  {
    method: 'get',
    path: '/',
    ports: ['http'],
    id: 'home',
    summary: "A page that sends people to the installer's, on the other port",
    answers: { 200: page('For people') },
  },
  {
    method: 'get',
    path: '/openapi.json',
    ports: https,
    id: 'openapi',
    summary: 'This description',
    answers: { 200: { description: 'OpenAPI 3.1', body: v.looseObject({ openapi: v.literal('3.1.0') }) } },
  },
];
