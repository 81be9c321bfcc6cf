import fc from 'fast-check';
import { Secret } from '../../src/core/secret.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { httpResponse, type RawServer, startRawServer } from '../support/raw-server.ts';
import { findLeakedSecret, type ParserCase } from './parser-case.ts';
import { mutatedJson, mutatedTexts } from './parsers-mutations.ts';

/** With digits, as in tokens, because the hub shows an error code that has no digits. */
const SECRETS = [
  'refresh-t0ken-of-the-hub',
  'client-s3cret-of-the-hub',
  'access-t0ken-of-the-portal',
  'c0de-of-the-portal',
] as const;
const [REFRESH, CLIENT, ACCESS, CODE] = SECRETS;

/** Short, because the server always ends the connection. */
const LIMITS = {
  connectTimeout: 2000,
  headersTimeout: 2000,
  bodyTimeout: 2000,
  totalTimeout: 5000,
  maxResponseBytes: 20_000,
};

interface Response {
  readonly bytes: string;
  readonly operation: 'refresh' | 'exchange' | 'link' | 'poll';
}

/** The portal's client over real sockets, with responses that are nearly HTTP. */
export interface PortalParserCase extends AsyncDisposable {
  readonly trial: ParserCase<Response>;
}

export async function startPortalParserCase(): Promise<PortalParserCase> {
  await using starting = new AsyncDisposableStack();
  let bytes = '';
  const server: RawServer = starting.use(await startRawServer((socket) => socket.end(Buffer.from(bytes))));
  const { origin } = server;
  const portal = starting.use(
    new HelperPortal({
      baseUrl: origin,
      frontendUrl: origin,
      clientId: 'a',
      clientSecret: new Secret(CLIENT),
      credentialLocation: { portal: 'home' },
      ca: [],
      limits: LIMITS,
      redirectUrl: (nonce) => `http://127.0.0.1/callback/${nonce}`,
    }),
  );
  const link = {
    authorize_url: `${origin}/sso`,
    code_url: `${origin}/code`,
    accesstoken_request_url: `${origin}/sso/token`,
  };
  const polledLink = {
    kind: 'poll',
    authorizeUrl: `${origin}/sso`,
    codeUrl: `${origin}/code?state=s`,
    tokenUrl: `${origin}/sso/token`,
    redirect: null,
  } as const;
  const tokens = JSON.stringify({ access_token: ACCESS, refresh_token: REFRESH, expires_in: 3600, scope: null });
  const operations = {
    refresh: () => portal.refresh(new Secret(REFRESH)),
    exchange: () => portal.exchangeCode(polledLink, { code: new Secret(CODE), issuer: null }, 'Monitoring'),
    link: () => portal.requestLink({ nonce: CODE, scope: null }, new AbortController().signal),
    poll: () => portal.poll(polledLink, new AbortController().signal),
  };
  const resources = starting.move();
  const body = fc.oneof(
    mutatedTexts(tokens, JSON.stringify(link), JSON.stringify({ code: CODE }), `{"error":"${REFRESH}"}`),
    mutatedJson({ error: ['invalid_grant', 'invalid_client', ACCESS], error_description: [REFRESH] }),
  );
  const status = fc.oneof(fc.constantFrom(200, 400, 401, 404, 429, 503), fc.integer({ min: 100, max: 999 }));
  const whole = fc
    .record({ status, body })
    .map((one) => httpResponse(one.status, one.body, { 'retry-after': '7', date: 'Tue, 15 Nov 1994 08:12:31 GMT' }));
  const broken = mutatedTexts(
    httpResponse(200, tokens),
    httpResponse(400, '{"error":"invalid_grant"}', { date: 'Tue, 15 Nov 1994 08:12:31 GMT' }),
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"acc\r\n0\r\n\r\n',
    `HTTP/1.1 302 Found\r\nlocation: https://elsewhere.example/?${ACCESS}\r\ncontent-length: 0\r\n\r\n`,
  );
  return {
    trial: {
      name: 'portal responses over a connection',
      inputs: fc.record({
        bytes: fc.oneof(whole, broken),
        operation: fc.constantFrom('refresh', 'exchange', 'link', 'poll'),
      }),
      async try(response) {
        bytes = response.bytes;
        return findLeakedSecret(JSON.stringify(await operations[response.operation]()), SECRETS);
      },
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
